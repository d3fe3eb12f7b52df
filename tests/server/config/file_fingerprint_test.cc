// Notices that a file changed, and not before it is whole.
#include "server/config/file_fingerprint.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

class FileWatchTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(path_) << text; }

  const perceptrond::testing::TempDir dir_;
  const std::string path_ = dir_.path() + "/settings";
};

TEST_F(FileWatchTest, AChangeIsNoticedOnceAndOnlyAfterTheFileWasLeftAlone) {
  Write("a");
  FileWatch watch(path_);
  EXPECT_FALSE(watch.HasChanged());
  Write("ab");
  EXPECT_FALSE(watch.HasChanged());
  Write("abc");
  EXPECT_FALSE(watch.HasChanged());
  EXPECT_TRUE(watch.HasChanged());
  EXPECT_FALSE(watch.HasChanged());
}

TEST_F(FileWatchTest, WhatIsReadForAnotherReasonIsNoChange) {
  Write("a");
  FileWatch watch(path_);
  Write("ab");
  watch.OnRead();
  EXPECT_FALSE(watch.HasChanged());
  EXPECT_FALSE(watch.HasChanged());
}

TEST_F(FileWatchTest, AFileThatGoesAndAnotherThatComesAreChanges) {
  Write("a");
  FileWatch watch(path_);
  std::remove(path_.c_str());
  EXPECT_FALSE(watch.HasChanged());
  EXPECT_TRUE(watch.HasChanged());
  Write("ab");
  EXPECT_FALSE(watch.HasChanged());
  EXPECT_TRUE(watch.HasChanged());
}

TEST(FileWatchWithoutAFileTest, NothingChanges) {
  FileWatch watch("");
  EXPECT_FALSE(watch.HasChanged());
  EXPECT_FALSE(watch.HasChanged());
}

}  // namespace
}  // namespace perceptrond
