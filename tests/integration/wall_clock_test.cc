// A server whose machine's wall clock is set while it runs.
#include <cstdlib>
#include <fstream>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class WallClockTest : public ::testing::Test {
 protected:
  WallClockTest() {
    Set(absl::ZeroDuration());
    setenv("WALL_CLOCK", clock_.c_str(), 1);
    setenv("LD_PRELOAD", WALL_CLOCK_LIBRARY, 1);
    server_ = std::make_unique<ServerProcess>(dir_.path() + "/data");
    unsetenv("LD_PRELOAD");
  }
  // The clock is ahead by this.
  void Set(absl::Duration difference) const {
    const int64_t nanos = absl::ToInt64Nanoseconds(difference);
    std::fstream file(clock_, std::ios::binary | std::ios::in | std::ios::out);
    if (!file) file.open(clock_, std::ios::binary | std::ios::out);
    file.write(reinterpret_cast<const char*>(&nanos), sizeof nanos);
  }

  const TempDir dir_;
  const std::string clock_ = dir_.path() + "/clock";
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(WallClockTest, OneThatIsSetForwardIsFollowedAndOneThatIsSetFarBackEndsTheServer) {
  Set(absl::Hours(2));
  server_->Signal(SIGHUP);
  server_->AwaitLog("read the settings again");
  Set(-absl::Hours(1));
  EXPECT_EQ(server_->Wait(), 1);
}

}  // namespace
}  // namespace perceptrond::testing
