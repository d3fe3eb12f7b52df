// perceptronctl export and import that are interrupted while they wait for the server, and what they show meanwhile.
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/integration/ctl_fixture.h"
#include "tests/integration/transfer_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

class CtlTransferTest : public Transfers<CtlTest> {
 protected:
  CtlTransferTest() {
    CreateLarge("m", 1);
    std::filesystem::create_directory(folder_);
  }
  // Runs it on a server that stands still, until `waits`, and interrupts it.
  template <typename Waits>
  CommandResult InterruptOnStoppedServer(const std::string& arguments, const Waits& waits) {
    const std::string pid_file = dir_.path() + "/pid";
    server_.Signal(SIGSTOP);
    CommandResult result;
    std::thread running([&] {
      result =
          RunCommand("sh -c 'echo $$ > " + pid_file + "; exec " + PERCEPTRONCTL_BINARY +
                     " --server " + server_.address() + " " + arguments + " --timeout 60 2>&1'");
    });
    pid_t pid = 0;
    while (pid == 0) std::ifstream(pid_file) >> pid;
    while (!CatchesInterrupts(pid) || !waits()) {
    }
    const absl::Time interrupted = absl::Now();
    kill(pid, SIGINT);
    running.join();
    // Otherwise it waits 20 s for a connection.
    EXPECT_LT(absl::Now() - interrupted, absl::Seconds(10));
    server_.Signal(SIGCONT);
    return result;
  }
  // Whether perceptronctl runs in the process and has prepared for them.
  static bool CatchesInterrupts(pid_t pid) {
    const std::string process = absl::StrCat("/proc/", pid);
    std::error_code ended;
    if (std::filesystem::read_symlink(process + "/exe", ended) != PERCEPTRONCTL_BINARY)
      return false;
    std::ifstream status(process + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigCgt:", 0) == 0)
        return (std::stoull(line.substr(8), nullptr, 16) & (1U << (SIGINT - 1))) != 0;
    }
    return false;
  }
  bool FolderIsEmpty() const { return std::filesystem::is_empty(folder_); }

  const std::string folder_ = dir_.path() + "/out";
};

TEST_F(CtlTransferTest, AnInterruptEndsAnExportThatWaitsForTheServerAndLeavesNoFile) {
  const CommandResult ended = InterruptOnStoppedServer("export m " + folder_ + "/m.model",
                                                       [&] { return !FolderIsEmpty(); });
  EXPECT_EQ(ended.exit_code, 130);
  EXPECT_THAT(ended.out, HasSubstr("export m: interrupted"));
  EXPECT_TRUE(FolderIsEmpty());
}

TEST_F(CtlTransferTest, AnInterruptEndsAnImportThatWaitsForTheServerAndLeavesNoModel) {
  const std::string file = Write("m.model", Export("m"));
  const CommandResult ended = InterruptOnStoppedServer("import n " + file, [] { return true; });
  EXPECT_EQ(ended.exit_code, 130);
  EXPECT_THAT(ended.out, HasSubstr("import n: interrupted; no model was created"));
  EXPECT_FALSE(Exists("n"));
}

TEST_F(CtlTransferTest, AnExportLeavesOneFileThatCanBeImported) {
  const CommandResult exported = Ctl("export m " + folder_ + "/m.model");
  EXPECT_EQ(exported.exit_code, 0) << exported.out;
  const CommandResult imported = Ctl("import n " + folder_ + "/m.model");
  EXPECT_EQ(imported.exit_code, 0) << imported.out;
  std::filesystem::remove(folder_ + "/m.model");
  EXPECT_TRUE(FolderIsEmpty());
}

TEST_F(CtlTransferTest, ALongImportShowsOnATerminalHowMuchItHasSent) {
  // Not in a jail without /dev/pts.
  if (RunCommand("script -qec true /dev/null 2>/dev/null").exit_code != 0)
    GTEST_SKIP() << "no pseudo-terminals here";
  const std::string file = Write("m.model", Export("m"));
  const CommandResult shown = RunCommand("script -qec '(head -c 1000000; sleep 1; cat) < " + file +
                                         " | " PERCEPTRONCTL_BINARY " --server " +
                                         server_.address() + " import n -' /dev/null");
  EXPECT_EQ(shown.exit_code, 0) << shown.out;
  EXPECT_THAT(shown.out, HasSubstr(" MB"));
  EXPECT_TRUE(Exists("n"));
}

}  // namespace
}  // namespace perceptrond::testing
