// perceptronctl analyze, examples, and learn --analyze against the real server.
#include <csignal>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(CtlTest, AnalyzeReplacesTheWeightsByTheBestSeparator) {
  Ctl("create and --dimension 2 --store-sample 10");
  Ctl("learn and - --format svmlight --index-base 1", and_);
  const CommandResult analyzed = Ctl("analyze and");
  EXPECT_EQ(analyzed.exit_code, 0) << analyzed.out;
  EXPECT_THAT(analyzed.out, HasSubstr("SEPARABLE, margin at least 0.2425"));
  EXPECT_THAT(analyzed.out, HasSubstr("(R/margin)^2 = 51.0000"));
  const auto result = Json<v1::AnalysisResult>("analyze and --replace-weights");
  EXPECT_EQ(result.new_revision(), Json<v1::Model>("get and").revision());
  EXPECT_THAT(Ctl("get and").out,
              HasSubstr("sample of different examples: 4, at most 10 (all examples seen)"));
  EXPECT_EQ(Ctl("analyze and --replace-weights --if-revision 1").exit_code, 1);
  EXPECT_EQ(Ctl("analyze and --if-revision 1").exit_code, 2);
}

// Learning and analysis follow each other: together they take no longer than the command.
TEST_F(CtlTest, TheTimeOfAnAnalysisIsNotCountedAsLearning) {
  // Labels by lot, so that a proof of inseparability has to be found, which takes a while.
  std::mt19937 random(2);
  std::string examples;
  for (int n = 0; n < 600; ++n) {
    examples += random() % 2 == 0 ? "+1" : "-1";
    for (int i = 1; i <= 120; ++i)
      absl::StrAppend(&examples, " ", i, ":", static_cast<int>(random() % 2001) - 1000);
    examples += "\n";
  }
  Ctl("create lot --dimension 120 --store-sample 600");
  const std::string file = Write("lot.svm", examples);
  const absl::Time started = absl::Now();
  const auto said =
      Object(CtlOut("learn lot " + file + " --index-base 1 --analyze --timeout 300 -o json").out);
  const double took = absl::ToDoubleSeconds(absl::Now() - started);
  const double analysis = Number(said.fields().at("analysis").struct_value(), "runDuration");
  EXPECT_GT(analysis, 0);
  EXPECT_LE(Number(said, "seconds") + analysis, took);
}

TEST_F(CtlTest, ExamplesAreListedWithTheirRevisions) {
  Ctl("create and --dimension 2 --store-updates 5");
  EXPECT_THAT(Ctl("examples and").out, HasSubstr("the model stores no examples"));
  Ctl("learn and - --format svmlight --index-base 1", and_);
  const CommandResult listed = CtlOut("examples and");
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out, ::testing::StartsWith("-1"));
  EXPECT_THAT(listed.out, HasSubstr("# update 1, score 0"));
  EXPECT_THAT(listed.out, HasSubstr("+1 0:1 1:1 # update "));
  EXPECT_THAT(CtlOut("examples and -o json").out, HasSubstr("\"updateRevision\":\"1\""));
}

TEST_F(CtlTest, AnAnalysisKeepsToTheLimitsItIsGiven) {
  Ctl("create xor --dimension 2 --store-sample 10");
  // Nothing separates them, and no proof takes fewer than three examples.
  const std::string xor_ = "1 1:-1 2:-1\n1 1:1 2:1\n-1 1:-1 2:1\n-1 1:1 2:-1\n";
  EXPECT_EQ(Ctl("learn xor - --format svmlight --index-base 1", xor_).exit_code, 0);
  const auto undecided = Json<v1::AnalysisResult>("analyze xor --max-certificate-examples 2");
  EXPECT_EQ(undecided.analysis().separability(), v1::SEPARABILITY_UNDECIDED)
      << undecided.end_reason();
  EXPECT_EQ(Json<v1::AnalysisResult>("analyze xor").analysis().separability(),
            v1::SEPARABILITY_NOT_SEPARABLE);

  for (const char* wrong :
       {"analyze xor --gap 1", "analyze xor --max-rounds 0", "analyze xor --max-rounds 1000001",
        "analyze xor --max-support-vectors 20001", "analyze xor --max-certificate-examples 0",
        "analyze xor --time-limit 0", "analyze xor --time-limit soon",
        "learn xor - --analyze-gap 0.1", "learn xor - --analyze-max-rounds 9"})
    EXPECT_EQ(Ctl(wrong).exit_code, 2) << wrong;
}

TEST_F(CtlTest, AnAnalysisEndsWithTheGapOrTheLimitThatComesFirst) {
  const std::string file = SharedData("sms_tfidf.train");
  if (file.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  const auto gap = [](const v1::Analysis& analysis) {
    return (analysis.margin_upper() - analysis.margin_lower()) / analysis.margin_upper();
  };
  Ctl("create sms --dimension 7856 --store-sample 10000");
  const CommandResult learned = CtlOut(
      "learn sms " + file +
      " --format svmlight --index-base 1 --analyze --analyze-max-support-vectors 300 -o json");
  EXPECT_EQ(learned.exit_code, 0);
  // It has more than 1,000 support vectors.
  EXPECT_GT(gap(Json<v1::Model>("get sms").report().analysis()), 1e-3);
  EXPECT_GT(gap(Json<v1::AnalysisResult>("analyze sms --max-rounds 1").analysis()), 1e-6);
  EXPECT_LE(gap(Json<v1::AnalysisResult>("analyze sms").analysis()), 1e-6);
}

// A command whose analysis takes seconds, and a signal once the server is at it.
class CtlInterruptedAnalysis : public CtlTest {
 protected:
  CtlInterruptedAnalysis() : analysis_(v1::AnalysisService::NewStub(channel_)) {
    Ctl("create noise --dimension 450 --store-sample 10000");
    Ctl("create and --dimension 2 --store-sample 10");
    Ctl("learn and - --format svmlight --index-base 1", and_);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::string lines;
    for (int i = 0; i < 1350; ++i) {
      lines += random() % 2 == 0 ? "1" : "-1";
      for (int j = 0; j < 450; ++j) absl::StrAppend(&lines, " ", j, ":", normal(random));
      lines += "\n";
    }
    noise_ = Write("noise.svm", lines);
  }
  // Runs it until its analysis has begun and another of the model has to wait for it, and sends it
  // the signal. That other one then begins, since the server has given up the first.
  CommandResult Interrupt(const std::string& arguments, int signal) {
    const std::string pid_file = dir_.path() + "/pid";
    const int begun = StartedCalls(server_.metrics_port(), "Analyze");
    CommandResult result;
    std::thread running([&] {
      result =
          RunCommand("sh -c 'echo $$ > " + pid_file + "; exec " + PERCEPTRONCTL_BINARY +
                     " --server " + server_.address() + " " + arguments + " 2> " + words_ + "'");
    });
    while (StartedCalls(server_.metrics_port(), "Analyze") == begun) {
    }
    bool waited = false;
    while (!waited) {
      grpc::ClientContext context;
      v1::AnalyzeRequest request;
      request.set_model("models/noise");
      const auto stream = analysis_->Analyze(&context, request);
      v1::AnalyzeResponse response;
      while (stream->Read(&response)) {
        if (response.progress().stage() != v1::ANALYSIS_STAGE_WAITING) {
          context.TryCancel();
        } else if (!std::exchange(waited, true)) {
          pid_t pid = 0;
          std::ifstream(pid_file) >> pid;
          EXPECT_GT(pid, 0);
          kill(pid, signal);
        }
      }
      EXPECT_FALSE(response.has_result());
    }
    running.join();
    return result;
  }
  std::string Words() const { return ReadAll(words_); }

  const std::unique_ptr<v1::AnalysisService::Stub> analysis_;
  const std::string words_ = dir_.path() + "/words";
  std::string noise_;
};

TEST_F(CtlInterruptedAnalysis, EndsAnalyzeWithoutOutputAndCancelsItOnTheServer) {
  ASSERT_EQ(Ctl("learn noise " + noise_ + " --index-base 0").exit_code, 0);
  const int64_t revision = Get("noise").revision();
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const char* arguments :
         {"analyze noise", "analyze noise -o json",
          "analyze noise --replace-weights --max-certificate-examples 2000"}) {
      const CommandResult result = Interrupt(arguments, signal);
      EXPECT_EQ(result.exit_code, 130) << arguments;
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(Words(), HasSubstr("analyze noise: interrupted; the analysis was cancelled"));
    }
  }
  EXPECT_FALSE(Get("noise").report().has_analysis());
  EXPECT_EQ(Get("noise").revision(), revision);
}

TEST_F(CtlInterruptedAnalysis, ByATimeLimitHasAResult) {
  ASSERT_EQ(Ctl("learn noise " + noise_ + " --index-base 0").exit_code, 0);
  const auto result = Json<v1::AnalysisResult>("analyze noise --time-limit 0.25");
  EXPECT_EQ(result.end_reason(), "the time limit is reached");
}

TEST_F(CtlInterruptedAnalysis, EndsLearningWithItsSummaryAndWithoutAnalysis) {
  const CommandResult result =
      Interrupt("learn noise " + noise_ + " --index-base 0 --analyze -o json", SIGINT);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(Words(), HasSubstr("the analysis was cancelled"));
  const google::protobuf::Struct summary = Object(result.out);
  EXPECT_EQ(Number(summary, "examples"), 1350);
  EXPECT_FALSE(summary.fields().contains("analysis"));
  EXPECT_FALSE(Get("noise").report().has_analysis());
}

// The lecture's theorem on real data, by one command.
TEST_F(CtlTest, MushroomsConvergeWithinTheBoundOfTheirBestMargin) {
  const std::string file = SharedData("agaricus.train");
  if (file.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  Ctl("create agaricus --dimension 127 --store-sample 10000");
  const CommandResult learned = Ctl(
      "learn agaricus " + file + " --format svmlight --index-base 1 --until-converged --analyze");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, HasSubstr("(R/margin)^2 = 304.675"));
  EXPECT_THAT(learned.out, HasSubstr("the model made 139 updates, which is within the bound"));
  const v1::Model model = Json<v1::Model>("get agaricus");
  EXPECT_EQ(model.report().analysis().examples(), 6513U);
  // 304 - 139 before the pass without an update.
  EXPECT_EQ(model.report().updates_left(), 0U);
}

}  // namespace
}  // namespace perceptrond::testing
