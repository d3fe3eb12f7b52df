// perceptronctl while something happens to it: a signal, a server that goes, comes back or stands still, an alias
// that moves.
#include <csignal>
#include <filesystem>
#include <tuple>

#include "absl/strings/match.h"
#include "tests/integration/ctl_fixture.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

class CtlRunTest : public CtlTest {
 protected:
  // A run whose input the test writes, piece by piece.
  class Run {
   public:
    Run(const CtlRunTest& test, const std::string& arguments)
        : Run(test.Command(arguments), test.dir_.path() + "/run") {}
    Run(const std::string& command, const std::string& path) : path_(path) {
      for (const char* of_last_run : {".pid", ".out", ".err"})
        std::filesystem::remove(path_ + of_last_run);
      // Servers that the test starts must not hold the input open.
      input_ = popen(absl::StrCat("echo $$ > ", path_, ".pid; exec ", command, " > ", path_,
                                  ".out 2> ", path_, ".err")
                         .c_str(),
                     "we");
      while (pid() == 0) {
      }
    }
    void Write(const std::string& lines) {
      std::fputs(lines.c_str(), input_);
      std::fflush(input_);
    }
    void Interrupt() const { kill(pid(), SIGINT); }
    // Ends the input and returns the exit code.
    int Wait() { return WEXITSTATUS(pclose(input_)); }
    std::string out() const { return ReadAll(path_ + ".out"); }
    std::string err() const { return ReadAll(path_ + ".err"); }
    // True once it has prepared for signals.
    bool CatchesInterrupts() const {
      const std::string process = absl::StrCat("/proc/", pid());
      std::error_code ended;
      if (std::filesystem::read_symlink(process + "/exe", ended) != PerceptronctlBinary())
        return false;
      const std::string status = ReadAll(process + "/status");
      const size_t caught = status.find("SigCgt:");
      return caught != std::string::npos &&
             (std::stoull(status.substr(caught + 7), nullptr, 16) & (1U << (SIGINT - 1))) != 0;
    }

   private:
    pid_t pid() const { return std::atoi(ReadAll(path_ + ".pid").c_str()); }
    const std::string path_;
    std::FILE* input_ = nullptr;
  };
};

TEST_F(CtlRunTest, ARunOutlivesItsServerAndEachModelLearnsEachExampleOnce) {
  for (const char* name : {"a", "b"}) Expect(0, absl::StrCat("create ", name, " --dimension 2"));
  Run run(*this, "learn a --also b -o json" + svmlight_);
  // Each is a mistake, so that its count is durable.
  std::string rows;
  for (int i = 0; i < 50; ++i) rows += "+1 1:1\n-1 1:1\n";
  for (uint64_t learned = 100; learned <= 300; learned += 100) {
    run.Write(rows);
    while (Examples("a") < learned || Examples("b") < learned) {
    }
    server_.Kill();
    Restart();
  }
  EXPECT_EQ(run.Wait(), 0) << run.err();
  const auto summary = Parse<google::protobuf::Struct>(run.out());
  for (const auto& value : summary.fields().at("models").list_value().values()) {
    const google::protobuf::Struct& model = value.struct_value();
    EXPECT_EQ(Number(model, "rows"), 300);
    // Answers are lost with the server that gave them.
    EXPECT_EQ(
        Number(model, "examples") + Number(model, "duplicates") + Number(model, "lostAnswers"),
        300);
  }
  for (const char* name : {"a", "b"}) EXPECT_EQ(Examples(name), 300) << name;
}

TEST_F(CtlRunTest, AnInterruptEndsLearningWithASummaryOfAllThatWasRead) {
  Expect(0, "create m --dimension 2");
  Run run(*this, "learn m -o json" + svmlight_);
  run.Write(and_);
  while (Examples("m") < 4) {
  }
  run.Interrupt();
  EXPECT_EQ(run.Wait(), 130);
  const auto summary = Parse<google::protobuf::Struct>(run.out());
  for (const char* figure : {"rows", "examples"}) EXPECT_EQ(Number(summary, figure), 4) << figure;
  EXPECT_EQ(Number(summary, "lostAnswers"), 0);
}

TEST_F(CtlRunTest, AnInterruptEndsACommandThatWaitsForTheServerAndLeavesNothing) {
  Expect(0, "create m --dimension 2 --store-sample 10");
  Expect(0, "learn m" + svmlight_, and_);
  const std::string file = dir_.path() + "/m.model";
  Expect(0, "export m " + file);
  const std::string folder = dir_.path() + "/folder";
  std::filesystem::create_directory(folder);
  server_.Signal(SIGSTOP);
  for (const std::string& command : {"export m " + folder + "/m.model", "import n " + file,
                                     std::string("analyze m --replace-weights")}) {
    Run run(*this, command);
    while (!run.CatchesInterrupts()) {
    }
    run.Interrupt();
    EXPECT_EQ(run.Wait(), 130) << command << run.err();
    EXPECT_EQ(run.out(), "");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  server_.Signal(SIGCONT);
  Expect(1, "get n");
}

TEST_F(CtlRunTest, WithoutAnAnswerInTimeTheExitCodeIsFour) {
  Expect(0, "create m --dimension 2");
  server_.Signal(SIGSTOP);
  Expect(4, "list --timeout 0.2");
  Expect(4, "learn m --timeout 0.2" + svmlight_, and_);
  server_.Signal(SIGCONT);
}

TEST_F(CtlRunTest, WatchPrintsEachChangeGoesOnAfterARollbackAndEndsWellOnAnInterrupt) {
  Expect(0, "create m --dimension 2");
  Expect(0, "snapshot m zero");
  Run run(*this, "watch m --interval 0.05 -o json");
  const auto await = [&](int64_t revision) {
    WaitUntil([&] {
      return absl::StrContains(run.out(), absl::StrCat("\"revision\":\"", revision, "\""));
    });
  };
  await(0);
  Expect(0, "learn m" + svmlight_, "+1 1:1\n");
  await(1);
  Expect(0, "rollback m zero");
  await(2);
  run.Interrupt();
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

// A run of predictions by an alias that moves from a model of the labels ham and spam to another in the middle of it.
TEST_F(CtlRunTest, PredictionsByAnAliasAreNamedByTheModelThatAnsweredOrEndWhereThatHasNoMeaning) {
  Expect(0, "create a --named --labels ham,spam");
  Expect(0, "learn a - --format text", "spam\tfree\nham\tlunch\n");
  Expect(0, "create two --named --labels no,yes");
  Expect(0, "create many --named --classes 3 --labels red,green,blue");
  Expect(0, "create same --named --labels ham,spam --tie positive");
  Expect(0, "learn many - --format text", "blue\tfree\nred\tlunch\n");
  const std::tuple<std::string, std::string, int, std::string> moves[] = {
      {"two", "free\n", 0, "\nno\t"},
      {"many", "free\n", 0, "\nblue\t"},
      {"same", "spam\tfree\n", 0, "\nspam\t"},
      // The label was read as one of a's.
      {"two", "spam\tfree\n", 1, ""},
  };
  for (const auto& [model, row, exit_code, answer] : moves) {
    Expect(0, "alias prod a");
    Run run(*this, "predict aliases/prod - --format text");
    run.Write(row);
    WaitUntil([&] { return run.out().ends_with('\n'); });
    Expect(0, "alias prod " + model);
    run.Write(row);
    EXPECT_EQ(run.Wait(), exit_code) << model << run.err();
    EXPECT_THAT(run.out(), ::testing::StartsWith("spam\t"));
    EXPECT_THAT(run.out(), HasSubstr(answer)) << model;
  }
}

TEST_F(CtlRunTest, OnATerminalDeleteAsksPredictionsHaveAHeaderAndAWatchNamesTheLabels) {
  const auto terminal = [&](const std::string& arguments) {
    // Some shells stay and die of the interrupt themselves.
    return "script -qec 'exec " + Command(arguments) + "' /dev/null";
  };
  const auto on_terminal = [&](const std::string& arguments, const std::string& typed) {
    return RunCommand(terminal(arguments), typed);
  };
  if (on_terminal("--version", "").exit_code != 0) GTEST_SKIP() << "no pseudo-terminals here";
  Expect(0, "create m --dimension 2 --learner logistic-regression --labels ham,spam");
  const std::string file = Write("rows.svm", "1:1\n");
  EXPECT_THAT(on_terminal("predict m --index-base 1 " + file, "").out,
              HasSubstr("LABEL\tSCORE\tDISTANCE\tP(spam)"));
  Run watch(terminal("watch m"), dir_.path() + "/watch");
  WaitUntil([&] { return absl::StrContains(watch.out(), "-1 ham, +1 spam"); });
  watch.Write("\x03");
  EXPECT_EQ(watch.Wait(), 0);
  EXPECT_EQ(on_terminal("delete m", "n\n").exit_code, 130);
  Expect(0, "get m");
  EXPECT_EQ(on_terminal("delete m", "y\n").exit_code, 0);
  Expect(1, "get m");
}

}  // namespace
}  // namespace perceptrond::testing
