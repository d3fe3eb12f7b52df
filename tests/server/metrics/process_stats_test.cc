#include "server/metrics/stats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

TEST(ProcessStats, AreTheFiguresOfTheFilesOfProc) {
  const testing::TempDir proc;
  std::filesystem::create_directories(proc.path() + "/self/fd");
  const auto write_file = [&](const std::string& path, const std::string& text) {
    std::ofstream(proc.path() + "/" + path) << text;
  };
  write_file(
      "self/stat",
      "7 (odd) name ( 9) S 1 2 3 4 5 6 7 8 9 10 250 150 13 14 15 16 17 18 1000 4096000 25 99\n");
  write_file("stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
  write_file("self/limits",
             "Limit                     Soft Limit           Hard Limit           Units\n"
             "Max open files            1024                 524288               files\n");
  write_file("self/fd/0", "");
  write_file("self/fd/1", "");
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const ProcessStats stats = ReadProcessStats(proc.path());
  EXPECT_DOUBLE_EQ(*stats.cpu_seconds, 400 / ticks);
  EXPECT_EQ(stats.virtual_bytes, 4096000u);
  EXPECT_EQ(stats.resident_bytes, 25u * sysconf(_SC_PAGESIZE));
  EXPECT_DOUBLE_EQ(*stats.start_time_seconds, 1700000000 + 1000 / ticks);
  EXPECT_EQ(stats.open_fds, 2u);
  EXPECT_EQ(stats.max_fds, 1024u);
  write_file("self/limits",
             "Max open files            unlimited            unlimited      files\n");
  EXPECT_FALSE(ReadProcessStats(proc.path()).max_fds.has_value());
}

TEST(ProcessStats, WhatCannotBeReadIsAbsent) {
  const ProcessStats stats = ReadProcessStats("/nonexistent");
  EXPECT_FALSE(stats.cpu_seconds.has_value());
  EXPECT_FALSE(stats.resident_bytes.has_value());
  EXPECT_FALSE(stats.virtual_bytes.has_value());
  EXPECT_FALSE(stats.open_fds.has_value());
  EXPECT_FALSE(stats.max_fds.has_value());
  EXPECT_FALSE(stats.start_time_seconds.has_value());
}

}  // namespace
}  // namespace perceptrond
