// What the real server logs about calls that take long: which, and what the time was spent on.
#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/integration/slow_model.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTraceId = "4bf92f3577b34da6a3ce929d0e0e4736";

double Number(const std::string& line, const std::string& field) {
  const size_t at = line.find(" " + field + "=");
  double number = -1;
  if (at != std::string::npos) number = std::strtod(line.c_str() + at + field.size() + 2, nullptr);
  return number;
}

// The line's parts add up to its total, but for the rounding to microseconds.
void ExpectPartsAddUp(const std::string& line) {
  double sum = 0;
  for (const char* part : {"receive_ms", "queue_ms", "parse_ms", "load_ms", "lock_ms", "work_ms",
                           "commit_ms", "write_ms"}) {
    EXPECT_GE(Number(line, part), 0) << part << ": " << line;
    sum += Number(line, part);
  }
  EXPECT_NEAR(sum, Number(line, "total_ms"), 0.01 + 0.01 * sum) << line;
}

class SlowCallTest : public ServerTest {
 protected:
  explicit SlowCallTest(const std::string& threshold = "100ms")
      : ServerTest({"--slow-call", threshold}) {}

  // A prediction that takes some 50 ms a row.
  grpc::Status PredictSlowly(int rows, grpc::ClientContext& context) {
    v1::PredictRequest request = SlowPrediction("models/slow");
    request.mutable_columns()->mutable_values()->Truncate(rows);
    v1::PredictResponse response;
    return predictions_->Predict(&context, request, &response);
  }
  std::string AwaitLine(const std::string& method) {
    const std::string line =
        server_.AwaitLog(absl::StrCat("slow call method=/perceptron.v1.", method, " "));
    ExpectPartsAddUp(line);
    return line;
  }
  std::vector<std::string> SlowLines() {
    std::vector<std::string> lines;
    for (const std::string& line : server_.Log()) {
      if (absl::StrContains(line, "slow call")) lines.push_back(line);
    }
    return lines;
  }
};

// Every call is slow.
class EveryCallTest : public SlowCallTest {
 protected:
  EveryCallTest() : SlowCallTest("1us") {}
};

TEST_F(SlowCallTest, AnExpensivePredictionIsWorkAndNamesModelPeerAndTrace) {
  Create("slow", SlowSettings());
  grpc::ClientContext context;
  context.AddMetadata("traceparent", absl::StrCat("00-", kTraceId, "-00f067aa0ba902b7-01"));
  ASSERT_TRUE(PredictSlowly(10, context).ok());
  const std::string line = AwaitLine("PredictionService/Predict");
  EXPECT_THAT(line,
              AllOf(HasSubstr(" model=models/slow peer=ipv4:127.0.0.1:"),
                    HasSubstr(absl::StrCat(" trace_id=", kTraceId, " span_id=00f067aa0ba902b7 ")),
                    HasSubstr(" rows=10 status=OK ")));
  EXPECT_GT(Number(line, "bytes"), 40);
  EXPECT_GT(Number(line, "work_ms"), 0.8 * Number(line, "total_ms"));
}

TEST_F(SlowCallTest, AnInvalidTraceIsLeftOut) {
  Create("slow", SlowSettings());
  grpc::ClientContext context;
  context.AddMetadata("traceparent", absl::StrCat("00-", kTraceId, "-0000000000000000-01"));
  ASSERT_TRUE(PredictSlowly(10, context).ok());
  EXPECT_THAT(AwaitLine("PredictionService/Predict"), Not(HasSubstr("trace_id")));
}

TEST_F(SlowCallTest, ACallThatItsClientGaveUpIsCancelled) {
  Create("slow", SlowSettings());
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(150)));
  EXPECT_EQ(PredictSlowly(40, context).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(
      AwaitLine("PredictionService/Predict"),
      AllOf(HasSubstr(" peer=ipv4:127.0.0.1:"),
            // Whether the server's clock or the client tells first.
            AnyOf(HasSubstr(" status=CANCELLED "), HasSubstr(" status=DEADLINE_EXCEEDED "))));
}

TEST_F(SlowCallTest, ACallThatWaitsForAWorkerSpendsItsTimeInTheQueue) {
  Create("slow", SlowSettings());
  // Several times the workers, which are at least four and one a processor.
  const unsigned calls = 3 * std::max(4U, std::thread::hardware_concurrency());
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < calls; ++i) {
    clients.emplace_back([this] {
      grpc::ClientContext context;
      EXPECT_TRUE(PredictSlowly(4, context).ok());
    });
  }
  for (std::thread& client : clients) client.join();
  AwaitLine("PredictionService/Predict");
  double longest = 0;
  for (const std::string& line : SlowLines()) {
    ExpectPartsAddUp(line);
    longest = std::max(longest, Number(line, "queue_ms"));
  }
  EXPECT_GT(longest, 100);
}

TEST_F(EveryCallTest, ReadingAModelFromTheJournalIsLoading) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(1 << 20);
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  for (uint32_t i = 0; i < 1 << 20; ++i) {
    start.add_indices(i);
    start.add_values(1);
  }
  Create("large", settings);
  ASSERT_EQ(server_.Terminate(), 0);
  Restart();
  v1::PredictRequest request;
  request.set_model("models/large");
  request.add_examples()->mutable_sparse();
  v1::PredictResponse response;
  ASSERT_TRUE(Predict(request, &response).ok());
  const std::string line = AwaitLine("PredictionService/Predict");
  EXPECT_GT(Number(line, "load_ms"), 0.5 * Number(line, "total_ms")) << line;
}

TEST_F(EveryCallTest, AMessageOfALearningStreamHasALineOfItsOwn) {
  CreateDense("m", 2);
  RawLearnStream stream(*learning_, "m");
  stream.Open();
  v1::LearnStreamRequest request;
  *request.add_examples() = SparseExample(1, {{0, 1.0F}});
  *request.add_examples() = SparseExample(-1, {{1, 1.0F}});
  stream.Ask(request);
  ASSERT_TRUE(stream.Finish().ok());
  ASSERT_THAT(server_.AwaitLog(" message=1 "), HasSubstr(" model=models/m "));
  const std::string line = server_.AwaitLog(" message=1 ");
  ExpectPartsAddUp(line);
  EXPECT_THAT(line, AllOf(HasSubstr("LearningService/LearnStream"), HasSubstr(" rows=2 ")));
}

TEST_F(EveryCallTest, AUnaryCallThatLearnsWaitsForItsCommit) {
  CreateDense("m", 2);
  v1::LearnRequest request;
  request.set_model("models/m");
  *request.add_examples() = SparseExample(1, {{0, 1.0F}});
  ASSERT_TRUE(Learn(request).ok());
  const std::string line = AwaitLine("LearningService/Learn");
  EXPECT_GT(Number(line, "commit_ms"), 0) << line;
  EXPECT_EQ(Number(line, "rows"), 1) << line;
}

TEST_F(SlowCallTest, AnswersThatTheClientDoesNotReadWaitToBeWritten) {
  CreateDense("m", 1);
  v1::PredictRequest request;
  request.set_model("models/m");
  request.mutable_columns()->set_dense_width(1);
  for (int i = 0; i < 20'000; ++i) request.mutable_columns()->add_values(1);
  const auto predictions = v1::PredictionService::NewStub(NarrowChannel());
  grpc::ClientContext context;
  auto stream = predictions->PredictStream(&context);
  constexpr int kMessages = 20;
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) stream->Write(request);
    stream->WritesDone();
  });
  // The client is busy with other things for longer than the threshold.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  v1::PredictResponse response;
  int answers = 0;
  while (stream->Read(&response)) ++answers;
  sender.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers, kMessages);
  const std::string line = AwaitLine("PredictionService/PredictStream");
  EXPECT_GT(Number(line, "write_ms"), 0.5 * Number(line, "total_ms")) << line;
}

TEST_F(EveryCallTest, AnAnalysisIsLoggedAsACall) {
  CreateDense("m", 2);
  v1::LearnRequest learn;
  learn.set_model("models/m");
  *learn.add_examples() = SparseExample(1, {{0, 1.0F}});
  ASSERT_TRUE(Learn(learn).ok());
  grpc::ClientContext context;
  v1::AnalyzeRequest request;
  request.set_model("models/m");
  auto stream = v1::AnalysisService::NewStub(channel_)->Analyze(&context, request);
  v1::AnalyzeResponse response;
  while (stream->Read(&response)) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  const std::string line = AwaitLine("AnalysisService/Analyze");
  EXPECT_THAT(line, HasSubstr(" model=models/m "));
  EXPECT_GT(Number(line, "work_ms"), 0) << line;
}

class SlowCallSettingTest : public ::testing::Test {
 protected:
  void Start() {
    std::ofstream(settings_) << "slow-call = \"30s\"\n";
    server_.emplace(dir_.path() + "/data", std::vector<std::string>{"--config", settings_});
  }
  void ListModels() {
    const auto channel =
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    v1::ListModelsResponse models;
    EXPECT_TRUE(v1::ModelService::NewStub(channel)
                    ->ListModels(&context, v1::ListModelsRequest(), &models)
                    .ok());
  }

  const TempDir dir_;
  const std::string settings_ = dir_.path() + "/settings";
  std::optional<ServerProcess> server_;
};

TEST_F(SlowCallSettingTest, FastCallsAreNotLogged) {
  Start();
  ListModels();
  // A call is timed until after its client has the answer, and before the server ends.
  EXPECT_EQ(server_->Terminate(), 0);
  EXPECT_THAT(server_->Log(), Each(Not(HasSubstr("slow call"))));
}

TEST_F(SlowCallSettingTest, AChangeOfTheConfigFileChangesWhatIsSlow) {
  Start();
  std::ofstream(settings_) << "slow-call = \"1us\"\n";
  ASSERT_NE(server_->AwaitLog("read the settings again"), "");
  ListModels();
  EXPECT_NE(server_->AwaitLog("slow call method=/perceptron.v1.ModelService/ListModels "), "");
}

TEST_F(SlowCallSettingTest, SighupChangesWhatIsSlow) {
  Start();
  std::ofstream(settings_) << "slow-call = \"1us\"\n";
  server_->Signal(SIGHUP);
  ASSERT_NE(server_->AwaitLog("read the settings again"), "");
  ListModels();
  EXPECT_NE(server_->AwaitLog("slow call method=/perceptron.v1.ModelService/ListModels "), "");
  EXPECT_THAT(server_->Log(), Each(Not(HasSubstr("at the next start"))));
}

}  // namespace
}  // namespace perceptrond::testing
