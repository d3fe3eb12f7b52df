// How many threads and how much memory a server takes, on the machine it runs on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

namespace perceptrond {

// Threads that poll the completion queue. One keeps up with a few processors and never passes the
// polling role on. From eight processors on a third.
inline int PollingThreads() {
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  return processors < 8 ? 1 : std::min((processors + 1) / 3, 16);
}

// Threads for work that takes long. Some of them wait for the disk.
inline int WorkerThreads() {
  return std::max(4, static_cast<int>(std::thread::hardware_concurrency()));
}

// Memory of the process without its open streams, above which the transport closes the connections
// that hold the most without finishing it: what docs/operate.md says that it needs, less a quarter of the budget for what
// arrives until that is noticed, and of a large budget less.
inline uint64_t MostResidentBytes(uint64_t memory_budget) {
  return memory_budget + std::min<uint64_t>(memory_budget / 4 + 100'000'000, uint64_t{512} << 20);
}

}  // namespace perceptrond
