// What the kernel says about this process, read from /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace perceptrond {

// Absent is not known: the file could not be read.
struct ProcessStats {
  // User and system time.
  std::optional<double> cpu_seconds;
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> virtual_bytes;
  std::optional<uint64_t> open_fds;
  // The soft limit; absent if there is none.
  std::optional<uint64_t> max_fds;
  // Since the Unix epoch.
  std::optional<double> start_time_seconds;
};

// Reads a handful of small files: tens of microseconds, and one more for every hundred open files.
// Any thread. `proc` is where procfs is mounted.
ProcessStats ReadProcessStats(const std::string& proc = "/proc");

}  // namespace perceptrond
