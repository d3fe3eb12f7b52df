// The real server's settings: refused ones, and what SIGHUP has it read again.
#include <csignal>
#include <fstream>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ConfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& content) const {
    const std::string path = dir_.path() + "/perceptrond.conf";
    std::ofstream(path) << content;
    return path;
  }

  const TempDir dir_;
};

TEST_F(ConfigTest, WrongArgumentsOfMigrateExitWithTwoAndNoPasswordIsRepeated) {
  for (const char* const arguments :
       {"migrate", "migrate /tmp/a /tmp/b", "migrate postgres://user:secret@n/d /tmp/a",
        "--journal postgres://user:top@secret@n/d", "backup postgres://n/d /tmp/a"}) {
    const CommandResult refused = RunServer(arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments;
    EXPECT_THAT(refused.out, ::testing::Not(::testing::HasSubstr("secret"))) << arguments;
  }
}

TEST_F(ConfigTest, OnSighupTheLogLevelChangesAndWhatNeedsAStartIsNamed) {
  const std::string file = Write("log-level = \"info\"\n");
  const ServerProcess server(dir_.path() + "/data", {"--config", file});
  Write("log-level = \"debug\"\nmemory-budget = \"2GiB\"\n");
  server.Signal(SIGHUP);
  EXPECT_THAT(server.AwaitLog("at the next start"), ::testing::HasSubstr("settings=memory-budget"));
  EXPECT_NE(server.AwaitLog("log_level=debug"), "");
  Write("log-level = \"shout\"\n");
  server.Signal(SIGHUP);
  EXPECT_THAT(server.AwaitLog("cannot use the settings"), ::testing::HasSubstr("shout"));
}

}  // namespace
}  // namespace perceptrond::testing
