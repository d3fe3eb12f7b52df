// What perceptronctl does while time passes: progress, Ctrl-C, timeouts, a server that comes and
// goes.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

TEST_F(CtlTest, HealthFollowsTheServer) {
  EXPECT_EQ(Ctl("health").exit_code, 0);
  EXPECT_EQ(Ctl("health --service perceptron.v1.LearningService").exit_code, 0);
  EXPECT_EQ(server_.Terminate(), 0);
  const CommandResult result = Ctl("health");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, ::testing::HasSubstr(server_.address()));
}

TEST_F(CtlTest, HealthAsksWhereTheEnvironmentSaysThatTheServerServes) {
  const auto health = [](const std::string& environment) {
    return RunCommand("env -u PERCEPTROND_SERVER -u PERCEPTROND_ADDRESS " + environment + " " +
                      PERCEPTRONCTL_BINARY + " health --timeout 1 2>&1");
  };
  const std::string port = server_.address().substr(server_.address().rfind(':'));
  EXPECT_EQ(health("PERCEPTROND_ADDRESS=" + server_.address()).exit_code, 0);
  EXPECT_EQ(health("PERCEPTROND_ADDRESS=0.0.0.0" + port).exit_code, 0);
  EXPECT_EQ(health("PERCEPTROND_ADDRESS=0.0.0.0" + port + ",unix:/none").exit_code, 0);
  EXPECT_EQ(health("PERCEPTROND_ADDRESS='*" + port + "'").exit_code, 0);
  // It listens on 127.0.0.1 only; what is asked of [::] is the other loopback address.
  const CommandResult other = health("PERCEPTROND_ADDRESS='[::]" + port + "'");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.out, ::testing::HasSubstr("ipv6:%5B::1%5D" + port));
  // Who names a server means that one.
  EXPECT_EQ(
      health("PERCEPTROND_ADDRESS=unix:/none PERCEPTROND_SERVER=" + server_.address()).exit_code,
      0);
  const CommandResult none = health("PERCEPTROND_ADDRESS=unix:/none");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.out, ::testing::HasSubstr("unix:/none"));
}

TEST_F(CtlTest, ACrashInTheMiddleOfAFileLosesNothingAndRepeatsNothing) {
  Ctl("create m --dimension 3");
  std::string lines;
  constexpr int kLines = 200'000;
  for (int i = 0; i < kLines; ++i) lines += i % 7 < 3 ? "+1 1:1 3:-2\n" : "-1 1:1 2:1\n";
  const std::string file = Write("many.svm", lines);
  CommandResult learned;
  std::thread learning(
      [&] { learned = Ctl("learn m " + file + " --format svmlight --index-base 1 --batch 50"); });
  // Once it is under way.
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() == 0) {
  }
  server_.Kill();
  server_.Restart();
  learning.join();
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("reconnecting"));
  Connect();
  EXPECT_EQ(Get("m").report().examples(), kLines);
}

TEST_F(CtlTest, CtrlCFinishesWhatIsUnderWayAndSaysWhatWasLearned) {
  Ctl("create m --dimension 3");
  const std::string pid_file = dir_.path() + "/pid";
  CommandResult learned;
  // A pipe that has no end.
  std::thread learning([&] {
    learned = RunCommand("yes '+1 1:1 3:-2\n-1 1:1 2:1' | sh -c 'echo $$ > " + pid_file +
                         "; exec " + PERCEPTRONCTL_BINARY + " --server " + server_.address() +
                         " learn m - --format svmlight --index-base 1 --batch 20 -o json'");
  });
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() == 0) {
  }
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  kill(pid, SIGINT);
  learning.join();
  EXPECT_EQ(learned.exit_code, 130);
  const google::protobuf::Struct summary = Object(learned.out);
  const auto examples = static_cast<double>(Get("m").report().examples());
  EXPECT_GT(examples, 0);
  // Every example taken from the pipe, as perceptronctl counted them by the answers it had.
  EXPECT_EQ(Number(summary, "examples"), examples);
  EXPECT_EQ(Number(summary, "rows"), examples);
  EXPECT_EQ(Number(summary, "lostAnswers"), 0);
}

TEST_F(CtlTest, ProgressIsDrawnOnATerminalAndNowhereElse) {
  // Not in a jail without /dev/pts.
  if (RunCommand("script -qec true /dev/null 2>/dev/null").exit_code != 0)
    GTEST_SKIP() << "no pseudo-terminals here";
  Ctl("create m --dimension 2");
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "+1 1:1\n-1 2:1\n";
  const std::string file = Write("many.svm", lines);
  for (const std::string& command : {"learn m " + file + " --index-base 1 --passes 2",
                                     "predict m " + file + " --index-base 1 --summary"}) {
    EXPECT_THAT(Ctl(command).out, ::testing::Not(::testing::HasSubstr("\r")));
    const CommandResult drawn = RunCommand("script -qec '" PERCEPTRONCTL_BINARY " --server " +
                                           server_.address() + " " + command + "' /dev/null");
    EXPECT_EQ(drawn.exit_code, 0);
    EXPECT_THAT(drawn.out, ::testing::ContainsRegex("\r.\\[K\\[[=> ]+\\] [0-9]+ %  ")) << command;
  }
}

TEST_F(CtlTest, AFullTableOfProducersIsAnErrorAndNotWorkedAround) {
  CreateDense("m", 2);
  for (int i = 0; i < 10'000; ++i) {
    v1::LearnRequest request;
    request.set_model("models/m");
    request.set_producer_id("p" + std::to_string(i));
    request.set_first_offset(0);
    *request.add_examples() = SparseExample(1, {{0, 1.0F}});
    ASSERT_TRUE(Learn(request).ok());
  }
  const std::string learn = "learn m - --format svmlight --index-base 1";
  const CommandResult row_errors = Ctl(learn, "+1 1:1\n");
  EXPECT_EQ(row_errors.exit_code, 1);
  EXPECT_THAT(row_errors.out, ::testing::HasSubstr("PRODUCER_LIMIT"));
  EXPECT_THAT(row_errors.out, ::testing::HasSubstr("hint: use a --producer"));
  EXPECT_EQ(Ctl(learn + " --producer p7", "+1 1:1\n").exit_code, 0);
  EXPECT_EQ(Ctl(learn + " --unnumbered", "+1 1:1\n").exit_code, 0);
  EXPECT_EQ(Get("m").report().examples(), 10'002);
}

TEST_F(CtlTest, TimeoutBoundsHowLongAStreamWaitsForAServerThatIsSilent) {
  Ctl("create m --dimension 3");
  CommandResult learned;
  std::thread learning([&] {
    learned = RunCommand("yes '+1 1:1' | " PERCEPTRONCTL_BINARY " --server " + server_.address() +
                         " learn m - --format svmlight --index-base 1 --timeout 1 2>&1");
  });
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() == 0) {
  }
  server_.Signal(SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  learning.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  server_.Signal(SIGCONT);
  EXPECT_EQ(learned.exit_code, 4) << learned.out;
  EXPECT_THAT(learned.out, ::testing::ContainsRegex(
                               "perceptronctl: learn m: gave up after 1s without an answer[^\n]*"
                               "\n  hint: [^\n]*--timeout[^\n]*\n$"));
}

TEST_F(CtlTest, TimeoutEndsReconnectingAlsoWhileTheInputIsIdle) {
  const std::string pipe = dir_.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Ctl("create m --dimension 3");
  CommandResult learned;
  std::thread learning(
      [&] { learned = Ctl("learn m " + pipe + " --format svmlight --index-base 1 --timeout 2"); });
  // One example, and the pipe stays open: what is there is learned, not held back for a batch.
  std::ofstream input(pipe);
  input << "+1 1:1\n" << std::flush;
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() == 0) {
  }
  server_.Kill();
  learning.join();
  EXPECT_EQ(learned.exit_code, 4) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("reconnecting"));
  EXPECT_THAT(learned.out, ::testing::HasSubstr("gave up after 2s without an answer"));
}

TEST_F(CtlTest, AFailedPredictionSaysWhatItIsWorthAndThenTheError) {
  Ctl("create m --dimension 2");
  const std::string options = " --format svmlight --index-base 1";
  const CommandResult nothing = Ctl("predict m - --min-revision 9" + options, "1 1:1\n");
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.out, ::testing::StartsWith("perceptronctl: predict m: "));
  EXPECT_THAT(nothing.out, ::testing::Not(::testing::HasSubstr("predicted at")));
  const CommandResult partial = Ctl("predict m - --batch 1" + options, "1 1:1\n1 oops\n");
  EXPECT_EQ(partial.exit_code, 2);
  EXPECT_THAT(partial.out, ::testing::ContainsRegex("\npartial: 1 predicted at revision 0(.|\n)*"
                                                    "\nperceptronctl: standard input:2: .*\n$"));
  const CommandResult empty = Ctl("predict m -" + options);
  EXPECT_EQ(empty.exit_code, 0);
  EXPECT_THAT(empty.out, ::testing::HasSubstr("the input contains no examples"));
}

TEST_F(CtlTest, WatchPrintsEachChangeGoesOnAfterARollbackAndEndsWellOnCtrlC) {
  CreateDense("m", 2);
  Ctl("snapshot m zero");
  const std::string pid_file = dir_.path() + "/pid";
  std::FILE* const watch =
      popen(("sh -c 'echo $$ > " + pid_file + "; exec " + PERCEPTRONCTL_BINARY + " --server " +
             server_.address() + " watch m --interval 0.05 -o json'")
                .c_str(),
            "r");
  ASSERT_NE(watch, nullptr);
  const auto next = [watch] {
    char line[8192] = "";
    EXPECT_NE(std::fgets(line, sizeof line, watch), nullptr);
    v1::Model model;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(line, &model).ok()) << line;
    return model;
  };
  EXPECT_EQ(next().revision(), 0);
  v1::LearnRequest request;
  request.set_model("models/m");
  *request.add_examples() = SparseExample(1, {{0, 1.0F}});
  EXPECT_TRUE(Learn(request).ok());
  const v1::Model changed = next();
  EXPECT_EQ(changed.revision(), 1);
  EXPECT_EQ(changed.report().examples(), 1);
  EXPECT_EQ(Ctl("rollback m zero").exit_code, 0);
  EXPECT_EQ(next().revision(), 2);
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  kill(pid, SIGINT);
  EXPECT_EQ(pclose(watch), 0);
}

// Returns once somebody has connected to the address, who finds that nobody is there.
void TurnOneAway(const std::string& address) {
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(listen(listening, 1), 0);
  const int connection = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
  close(listening);
  close(connection);
}

TEST_F(CtlTest, ACallFindsAServerThatComesBackWhileItTriesAgain) {
  EXPECT_EQ(server_.Terminate(), 0);
  CommandResult listed;
  std::thread list([&] { listed = Ctl("list"); });
  TurnOneAway(server_.address());
  server_.Restart();
  list.join();
  EXPECT_EQ(listed.exit_code, 0) << listed.out;
}

TEST_F(CtlTest, AServerThatIsNotThereIsSaidSoWithoutALongWait) {
  EXPECT_EQ(server_.Terminate(), 0);
  const auto begin = std::chrono::steady_clock::now();
  for (const char* arguments : {"list", "learn m - --timeout 1 --format svmlight --index-base 1"}) {
    const CommandResult result = Ctl(arguments, "+1 1:1\n");
    EXPECT_EQ(result.exit_code, 1) << arguments;
    EXPECT_THAT(result.out, ::testing::HasSubstr("is perceptrond running there?")) << arguments;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace perceptrond::testing
