// Ctrl-C, made polite: the first asks to stop, the second kills.
#pragma once

namespace perceptrond::client {

// Takes over SIGINT and SIGTERM. Call once, before other threads start.
void CatchInterrupts();

// True once a signal came. Threads: any.
bool Interrupted();

// Waits until `descriptor` can be read without blocking; false if a signal came first. Threads:
// any.
bool WaitReadable(int descriptor);

// Blocks until a signal came or `descriptor` (-1: none) can be read. Threads: any.
void WaitInterrupted(int descriptor);

}  // namespace perceptrond::client
