// `perceptronctl bench` against the real server.
#include <chrono>
#include <csignal>
#include <thread>
#include <tuple>
#include <utility>

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
  // Runs in this shell's place, so that pid_file_ is where to send signals.
  CommandResult BenchWithPid(const std::string& arguments) {
    return RunCommand("sh -c 'echo $$ > " + pid_file_ + "; exec " + PERCEPTRONCTL_BINARY +
                      " --server " + server_.address() + " bench " + arguments + " -o json'");
  }
  bool HasModels() { return CtlOut("list").out.find("bench-") != std::string::npos; }
  const std::string pid_file_ = dir_.path() + "/pid";
};

TEST_F(CtlBenchTest, SendsWhatWasAskedForAndLeavesNoModelBehind) {
  const auto report =
      Bench("--rate 4000 --batch 20 --streams 2 --mistakes 0.1 --seconds 1 --warmup 2");
  EXPECT_EQ(Number(report, "examples"), 4000);
  EXPECT_EQ(Number(report, "messages"), 200);
  // No faster than it was asked; on a busy machine the last answers are late.
  EXPECT_LT(Number(report, "examplesPerSecond"), 4100);
  EXPECT_NEAR(Number(report, "examplesPerSecond") * Number(report, "seconds"), 4000, 1);
  EXPECT_EQ(Number(report, "updates"), Number(report, "mistakes"));
  // A tenth for ever, and what is new in the first rounds.
  EXPECT_GT(Number(report, "mistakes"), 300);
  EXPECT_LE(Latency(report, "p50"), Latency(report, "p99"));
  EXPECT_LE(Latency(report, "p99.9"), Latency(report, "max"));
  EXPECT_GT(Latency(report, "p50"), 0);
  EXPECT_FALSE(HasModels());
}

TEST_F(CtlBenchTest, WhatTheServerHasToRefuseIsCountedAndNothingElseIsLost) {
  const auto report = Bench("--rate 2000 --batch 10 --invalid 0.25 --seconds 1 --warmup 0");
  EXPECT_EQ(Number(report, "examples") + Number(report, "rowErrors"), 2000);
  EXPECT_NEAR(Number(report, "rowErrors"), 500, 1);
}

TEST_F(CtlBenchTest, SendsNamesIntoNamedAndHashedSpaces) {
  for (const char* space : {"--named --size 5000", "--named --size 5000 --hash-bits 18 --compact",
                            "--named --size 5000 --work predict", "--named --work call"}) {
    const auto report =
        Bench(std::string(space) + " --rate 1000 --batch 10 --seconds 0.5 --warmup 0");
    EXPECT_EQ(Number(report, "examples"), 500) << space;
    EXPECT_EQ(Number(report, "rowErrors"), 0) << space;
  }
  EXPECT_EQ(Ctl("bench --named --dense").exit_code, 2);
  EXPECT_EQ(Ctl("bench --hash-bits 8").exit_code, 2);
  ASSERT_EQ(Ctl("create byindex --dimension 100").exit_code, 0);
  EXPECT_EQ(Ctl("bench byindex --named").exit_code, 2);
}

TEST_F(CtlBenchTest, ASmallModelsExamplesHaveNoMoreFeaturesThanItHasDimensions) {
  for (const char* size : {"--size 50", "--size 50 --dense"}) {
    const auto report =
        Bench(std::string(size) + " --rate 1000 --batch 10 --seconds 0.2 --warmup 0");
    EXPECT_EQ(Number(report, "examples"), 200) << size;
  }
  const CommandResult asked = Ctl("bench --size 50 --features 51");
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.out, ::testing::HasSubstr("--features must not be greater than --size"));
}

TEST_F(CtlBenchTest, AServerThatStandsStillShowsInEveryLatencyThatWasDueMeanwhile) {
  Ctl("create m --dimension 1000");
  google::protobuf::Struct report;
  std::thread bench([&] { report = Bench("m --rate 200 --batch 1 --seconds 6 --warmup 0"); });
  // The first comes before the clock runs.
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() < 2) {
  }
  server_.Signal(SIGSTOP);
  // The stall under test, a fifth of the run. A bench that measured only what it could send would
  // report one late answer.
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  server_.Signal(SIGCONT);
  bench.join();
  EXPECT_EQ(Number(report, "messages"), 1200);
  EXPECT_GT(Latency(report, "max"), 1'100'000);
  EXPECT_GT(Latency(report, "p90"), 300'000);
}

TEST_F(CtlBenchTest, AModelThatIsThereIsLoadedAndStays) {
  Ctl("create words --named");
  Bench("words --rate 1000 --batch 10 --seconds 1 --warmup 0");
  // And the message before the clock runs.
  EXPECT_EQ(Get("words").report().examples(), 1010);
  Bench("words --work call --rate 100 --seconds 1 --warmup 0");
  EXPECT_EQ(Get("words").report().examples(), 1010);
  Ctl("create digits --dimension 64 --classes 10");
  const CommandResult row_errors = Ctl("bench digits");
  EXPECT_EQ(row_errors.exit_code, 2);
  EXPECT_THAT(row_errors.out, ::testing::HasSubstr("--work predict"));
  EXPECT_EQ(Number(Bench("digits --work predict --rate 1000 --seconds 1 --warmup 0"), "examples"),
            1000);
}

TEST_F(CtlBenchTest, ASignalEndsItWithWhatWasMeasuredAndWithoutTheModel) {
  // Not ignored, as nohup has it.
  signal(SIGHUP, SIG_DFL);
  for (const int sent : {SIGINT, SIGTERM, SIGHUP}) {
    CommandResult run;
    std::thread bench([&] { run = BenchWithPid("--warmup 0 --seconds 600 --rate 1000"); });
    while (!HasModels()) {
    }
    pid_t pid = 0;
    std::ifstream(pid_file_) >> pid;
    ASSERT_GT(pid, 0);
    kill(pid, sent);
    bench.join();
    EXPECT_EQ(run.exit_code, 130) << run.out;
    EXPECT_LT(Number(Object(run.out), "seconds"), 600);
    EXPECT_FALSE(HasModels());
  }
}

TEST_F(CtlBenchTest, EveryStreamIsReadyBeforeTheClockRuns) {
  // Each sends at the start, and waits for the answer; none is still making its examples.
  const auto report = Bench("--streams 100 --window 1 --seconds 2 --warmup 0");
  EXPECT_GE(Number(report, "messages"), 100);
}

TEST_F(CtlBenchTest, StreamsOfEachWorkRunTogether) {
  for (const char* work : {"learn", "predict", "call"}) {
    const auto report =
        Bench(std::string("--streams 4 --batch 10 --seconds 0.3 --warmup 0 --work ") + work);
    EXPECT_GE(Number(report, "messages"), 4) << work;
    EXPECT_EQ(Number(report, "examples"), 10 * Number(report, "messages")) << work;
  }
}

TEST_F(CtlBenchTest, ARateThatCannotBeReachedEndsInTimeAndIsSaid) {
  const CommandResult result =
      Ctl("bench --work predict --rate 1e9 --batch 1 --seconds 0.2 --warmup 0");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, ::testing::HasSubstr("did not keep up"));
  const auto report = Bench("--work call --rate 1e9 --seconds 0.2 --warmup 0");
  EXPECT_FALSE(report.fields().at("keptUp").bool_value());
  EXPECT_GT(Number(report, "overdue"), 0);
  EXPECT_NEAR(Number(report, "examplesPerSecond") * Number(report, "seconds"),
              Number(report, "examples"), 1);
}

TEST_F(CtlBenchTest, WhatDoesNotFitIntoMemoryIsRefusedBeforeAnythingIsMade) {
  const CommandResult result = Ctl("bench --streams 1000 --size 268435456 --dense");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, ::testing::HasSubstr("GiB"));
  EXPECT_EQ(StartedCalls(server_.metrics_port(), "CreateModel"), 0);
}

TEST_F(CtlBenchTest, TheShareOfMistakesIsMeasured) {
  const auto report = Bench("--mistakes 0.5 --size 100 --rate 2000 --seconds 0.5 --warmup 0");
  EXPECT_EQ(Number(report, "requestedMistakes"), 0.5);
  EXPECT_EQ(Number(report, "mistakeShare"),
            Number(report, "mistakes") / Number(report, "examples"));
  const CommandResult far =
      Ctl("bench --mistakes 1 --size 20 --features 10 --rate 2000 --seconds 0.5 --warmup 0");
  EXPECT_THAT(far.out, ::testing::HasSubstr("(requested: 100.00 %)"));
  EXPECT_THAT(far.out, ::testing::HasSubstr("the share of mistakes differs from --mistakes"));
}

TEST_F(CtlBenchTest, ARestartOfTheServerIsWaitedForAndIsOneBreak) {
  const std::tuple<const char*, const char*, bool> works[] = {{"learn", "LearnStream", false},
                                                              {"predict", "PredictStream", false},
                                                              {"call", "Predict", false},
                                                              {"call", "Predict", true}};
  for (const auto& [work, method, orderly] : works) {
    const int before = StartedCalls(server_.metrics_port(), method);
    google::protobuf::Struct report;
    std::thread bench([&, work = work] {
      report = Bench(std::string("--rate 200 --batch 1 --seconds 5 --warmup 0 --work ") + work);
    });
    while (StartedCalls(server_.metrics_port(), method) == before) {
    }
    orderly ? static_cast<void>(server_.Terminate()) : server_.Kill();
    server_.Restart();
    bench.join();
    EXPECT_EQ(Number(report, "reconnects"), 1) << work;
    EXPECT_EQ(Number(report, "examples") + Number(report, "lostAnswers"), 1000) << work;
    EXPECT_FALSE(HasModels());
  }
}

TEST_F(CtlBenchTest, AFailureKeepsWhatWasMeasured) {
  Ctl("create m --dimension 1000");
  google::protobuf::Struct report;
  std::thread bench([&] { report = Bench("m --rate 1000 --batch 1 --seconds 600 --warmup 0", 1); });
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() < 100) {
  }
  Ctl("delete m");
  bench.join();
  EXPECT_GT(Number(report, "examples"), 50);
  EXPECT_LT(Number(report, "seconds"), 600);
}

TEST_F(CtlBenchTest, WhatCannotBeIsSaidBeforeAnythingIsSent) {
  for (const char* wrong :
       {"--features 10 --size 5", "--work call --mistakes 0.1", "--work predict --invalid 0.1",
        "--rate 0", "--work learn --streams 0"}) {
    const CommandResult result = Ctl(std::string("bench ") + wrong);
    EXPECT_EQ(result.exit_code, 2) << wrong << result.out;
  }
  EXPECT_EQ(Ctl("bench nosuch").exit_code, 1);
  EXPECT_FALSE(HasModels());
}

}  // namespace
}  // namespace perceptrond::testing
