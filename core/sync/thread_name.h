// Names for threads, so that a list of threads (top -H, /proc/PID/task) says what each works on.
#pragma once

#include <pthread.h>

namespace perceptrond {

// Of the calling thread; at most 15 bytes.
inline void NameThisThread(const char* name) { pthread_setname_np(pthread_self(), name); }

}  // namespace perceptrond
