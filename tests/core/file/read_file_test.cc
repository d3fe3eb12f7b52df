#include "core/file/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace perceptrond::testing {
namespace {

TEST(ReadFile, ReadsUpToItsLimit) {
  const TempDir dir;
  const std::string path = dir.path() + "/file";
  std::ofstream(path) << "12345";
  struct stat found = {};
  EXPECT_EQ(ReadFileUpTo(path, 5, FileKind::kRegular, &found).value(), "12345");
  EXPECT_EQ(found.st_size, 5);
  for (const FileKind kind : {FileKind::kRegular, FileKind::kAny})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadFileUpTo(path, 4, kind).status()));
  const std::string long_text(200'000, 'a');
  std::ofstream(path) << long_text;
  EXPECT_EQ(ReadFileUpTo(path, size_t{1} << 30, FileKind::kAny).value(), long_text);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadFileUpTo("/dev/zero", 5, FileKind::kAny).status()));
}

TEST(ReadFile, OfARegularFileReadsNoDeviceDirectoryOrPipe) {
  const TempDir dir;
  const std::string pipe = dir.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {std::string("/dev/zero"), dir.path(), pipe})
    EXPECT_TRUE(absl::IsFailedPrecondition(ReadFileUpTo(path, 5, FileKind::kRegular).status()))
        << path;
  EXPECT_TRUE(absl::IsNotFound(ReadFileUpTo(dir.path() + "/none", 5, FileKind::kRegular).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadFileUpTo(dir.path(), 5, FileKind::kAny).status()));
}

}  // namespace
}  // namespace perceptrond::testing
