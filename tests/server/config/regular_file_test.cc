#include "server/config/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temp_dir.h"

namespace perceptrond::testing {
namespace {

TEST(RegularFile, IsReadUpToItsLimit) {
  const TempDir dir;
  const std::string path = dir.path() + "/file";
  std::ofstream(path) << "12345";
  struct stat found = {};
  EXPECT_EQ(ReadRegularFile(path, 5, &found).value(), "12345");
  EXPECT_EQ(found.st_size, 5);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadRegularFile(path, 4, nullptr).status()));
}

TEST(RegularFile, IsNoDeviceDirectoryOrPipe) {
  const TempDir dir;
  const std::string pipe = dir.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {std::string("/dev/zero"), dir.path(), pipe, dir.path() + "/none"})
    EXPECT_TRUE(absl::IsNotFound(ReadRegularFile(path, 5, nullptr).status())) << path;
}

}  // namespace
}  // namespace perceptrond::testing
