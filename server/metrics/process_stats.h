// The figures of this process that the kernel exports in /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace perceptrond {

// A figure is absent if its file cannot be read.
struct ProcessStats {
  // User and system time together.
  std::optional<double> cpu_seconds;
  std::optional<uint64_t> resident_bytes;
  std::optional<uint64_t> virtual_bytes;
  std::optional<uint64_t> open_fds;
  // The soft limit; absent if there is none.
  std::optional<uint64_t> max_fds;
  // Since the Unix epoch.
  std::optional<double> start_time_seconds;
};

// Reads a few small files, in tens of microseconds plus one for every hundred open files. Any
// thread. `proc` is the mount point of procfs.
ProcessStats ReadProcessStats(const std::string& proc = "/proc");

}  // namespace perceptrond
