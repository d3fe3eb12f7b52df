#include "server/metrics/stats.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace perceptrond {
namespace {

class FakeProc : public ::testing::Test {
 protected:
  FakeProc() : root_(::testing::TempDir() + "/proc_" + std::to_string(getpid())) {
    std::filesystem::create_directories(root_ + "/self/fd");
  }
  ~FakeProc() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ + "/" + path) << text;
  }

  const std::string root_;
};

TEST_F(FakeProc, ReadsEveryFigure) {
  Write("self/stat",
        "7 (odd) name ( 9) S 1 2 3 4 5 6 7 8 9 10 250 150 13 14 15 16 17 18 1000 4096000 25 99\n");
  Write("stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
  Write("self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n"
        "Max open files            1024                 524288               files\n");
  Write("self/fd/0", "");
  Write("self/fd/1", "");
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));

  const ProcessStats stats = ReadProcessStats(root_);

  EXPECT_DOUBLE_EQ(*stats.cpu_seconds, 400 / ticks);
  EXPECT_EQ(stats.virtual_bytes, 4096000u);
  EXPECT_EQ(stats.resident_bytes, 25u * sysconf(_SC_PAGESIZE));
  EXPECT_DOUBLE_EQ(*stats.start_time_seconds, 1700000000 + 1000 / ticks);
  EXPECT_EQ(stats.open_fds, 2u);
  EXPECT_EQ(stats.max_fds, 1024u);
  Write("self/limits", "Max open files            unlimited            unlimited      files\n");
  EXPECT_FALSE(ReadProcessStats(root_).max_fds.has_value());
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
