// `perceptronctl bench` against the real server.
#include <chrono>
#include <csignal>
#include <thread>

#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

class CtlBenchTest : public CtlTest {
 protected:
  google::protobuf::Struct Bench(const std::string& arguments, int exit_code = 0) {
    const CommandResult result = CtlOut("bench " + arguments + " -o json");
    EXPECT_EQ(result.exit_code, exit_code) << result.out;
    return Object(result.out);
  }
  static double Latency(const google::protobuf::Struct& report, const std::string& key) {
    return Number(report.fields().at("latencyMicroseconds").struct_value(), key);
  }
  bool HasModels() { return CtlOut("list").out.find("bench-") != std::string::npos; }
};

TEST_F(CtlBenchTest, SendsWhatWasAskedForAndLeavesNoModelBehind) {
  const auto report =
      Bench("--rate 4000 --batch 20 --streams 2 --mistakes 0.1 --seconds 1 --warmup 2");
  EXPECT_EQ(Number(report, "examples"), 4000);
  EXPECT_EQ(Number(report, "messages"), 200);
  EXPECT_EQ(Number(report, "examplesPerSecond"), 4000);
  EXPECT_EQ(Number(report, "updates"), Number(report, "mistakes"));
  // A tenth for ever, and what is new in the first rounds.
  EXPECT_GT(Number(report, "mistakes"), 300);
  EXPECT_LE(Latency(report, "p50"), Latency(report, "p99"));
  EXPECT_LE(Latency(report, "p99.9"), Latency(report, "max"));
  EXPECT_GT(Latency(report, "p50"), 0);
  EXPECT_FALSE(HasModels());
}

TEST_F(CtlBenchTest, WhatTheServerHasToRefuseIsCountedAndNothingElseIsLost) {
  const auto report = Bench("--rate 2000 --batch 10 --refused 0.25 --seconds 1 --warmup 0");
  EXPECT_EQ(Number(report, "examples") + Number(report, "refused"), 2000);
  EXPECT_NEAR(Number(report, "refused"), 500, 1);
}

TEST_F(CtlBenchTest, AServerThatStandsStillShowsInEveryLatencyThatWasDueMeanwhile) {
  Ctl("create m --dimension 1000");
  google::protobuf::Struct report;
  std::thread bench([&] { report = Bench("m --rate 200 --batch 1 --seconds 3 --warmup 0"); });
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() == 0) {
  }
  server_.Signal(SIGSTOP);
  // A fifth of the time: whoever measured only what could be sent would see one late answer.
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  server_.Signal(SIGCONT);
  bench.join();
  EXPECT_EQ(Number(report, "messages"), 600);
  EXPECT_GT(Latency(report, "max"), 550'000);
  EXPECT_GT(Latency(report, "p90"), 150'000);
}

TEST_F(CtlBenchTest, AModelThatIsThereIsLoadedAndStays) {
  Ctl("create words --named");
  Bench("words --rate 1000 --batch 10 --seconds 1 --warmup 0");
  EXPECT_EQ(Get("words").report().examples(), 1000);
  Bench("words --work call --rate 100 --seconds 1 --warmup 0");
  EXPECT_EQ(Get("words").report().examples(), 1000);
  Ctl("create digits --dimension 64 --classes 10");
  const CommandResult refused = Ctl("bench digits");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, ::testing::HasSubstr("--work predict"));
  EXPECT_EQ(Number(Bench("digits --work predict --rate 1000 --seconds 1 --warmup 0"), "examples"),
            1000);
}

TEST_F(CtlBenchTest, CtrlCEndsItWithWhatWasMeasuredAndWithoutTheModel) {
  const std::string pid_file = dir_.path() + "/pid";
  CommandResult run;
  std::thread bench([&] {
    run = RunCommand("sh -c 'echo $$ > " + pid_file + "; exec " + PERCEPTRONCTL_BINARY +
                     " --server " + server_.address() +
                     " bench --warmup 0 --seconds 600 --rate 1000 -o json'");
  });
  while (!HasModels()) {
  }
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  kill(pid, SIGINT);
  bench.join();
  EXPECT_EQ(run.exit_code, 130) << run.out;
  EXPECT_LT(Number(Object(run.out), "seconds"), 600);
  EXPECT_FALSE(HasModels());
}

TEST_F(CtlBenchTest, WhatCannotBeIsSaidBeforeAnythingIsSent) {
  for (const char* wrong :
       {"--features 10 --size 5", "--work call --mistakes 0.1", "--work predict --refused 0.1",
        "--rate 0", "--work learn --streams 0"}) {
    const CommandResult result = Ctl(std::string("bench ") + wrong);
    EXPECT_EQ(result.exit_code, 2) << wrong << result.out;
  }
  EXPECT_EQ(Ctl("bench nosuch").exit_code, 1);
  EXPECT_FALSE(HasModels());
}

}  // namespace
}  // namespace perceptrond::testing
