// What the real server logs about calls that take long: which, and what the time was spent on.
#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/integration/memory_fixture.h"
#include "tests/integration/slow_model.h"
#include "tests/support/eventually.h"

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

// Returns the line of the first call that spent more than `share` of its time on `part`: a busy machine may keep some
// calls waiting for other things. `line_of` makes a call and returns its line.
std::string ExpectMostly(const std::string& part, double share,
                         const std::function<std::string(int attempt)>& line_of) {
  std::string line;
  for (int attempt = 0; attempt < 6; ++attempt) {
    line = line_of(attempt);
    if (Number(line, part) > share * Number(line, "total_ms")) return line;
  }
  ADD_FAILURE() << part << " is never most of the time: " << line;
  return line;
}

class SlowCallTest : public ServerTest {
 protected:
  explicit SlowCallTest(const std::string& threshold = "100ms")
      : ServerTest({"--slow-call", threshold}) {}

  // A prediction that takes some 50 ms a row.
  grpc::Status PredictSlowly(int rows, grpc::ClientContext& context) {
    v1::PredictRequest request = SlowPrediction("models/slow");
    request.mutable_columns()->mutable_values()->Resize(rows, 1);
    v1::PredictResponse response;
    return predictions_->Predict(&context, request, &response);
  }
  // The line about call `number` of the method.
  std::string AwaitLine(const std::string& method, size_t number = 0) {
    EXPECT_TRUE(Eventually([&] { return SlowLines(method).size() > number; }));
    const std::vector<std::string> lines = SlowLines(method);
    const std::string line = lines.size() > number ? lines[number] : "";
    ExpectPartsAddUp(line);
    return line;
  }
  std::vector<std::string> SlowLines(const std::string& method) {
    const std::string begin = absl::StrCat("slow call method=/perceptron.v1.", method, " ");
    std::vector<std::string> lines;
    for (const std::string& line : server_.Log()) {
      if (absl::StrContains(line, begin)) lines.push_back(line);
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
  const std::string line = ExpectMostly("work_ms", 0.8, [&](int attempt) {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", absl::StrCat("00-", kTraceId, "-00f067aa0ba902b7-01"));
    EXPECT_TRUE(PredictSlowly(10, context).ok());
    return AwaitLine("PredictionService/Predict", attempt);
  });
  EXPECT_THAT(line,
              AllOf(HasSubstr(" model=models/slow peer=ipv4:127.0.0.1:"),
                    HasSubstr(absl::StrCat(" trace_id=", kTraceId, " span_id=00f067aa0ba902b7 ")),
                    HasSubstr(" rows=10 status=OK ")));
  EXPECT_GT(Number(line, "bytes"), 40);
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
  // Until the server has the call for longer than the threshold: on a busy machine it begins late.
  absl::Duration time = absl::Milliseconds(150);
  do {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + time));
    ASSERT_EQ(PredictSlowly(60, context).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
    time *= 3;
  } while (!Eventually([this] { return !SlowLines("PredictionService/Predict").empty(); },
                       absl::Seconds(5)));
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
  double longest = 0;
  EXPECT_TRUE(Eventually([&] {
    for (const std::string& line : SlowLines("PredictionService/Predict")) {
      ExpectPartsAddUp(line);
      longest = std::max(longest, Number(line, "queue_ms"));
    }
    return longest > 100;
  })) << longest;
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
  v1::PredictRequest request;
  request.set_model("models/large");
  request.add_examples()->mutable_sparse();
  ExpectMostly("load_ms", 0.5, [&](int /*attempt*/) {
    EXPECT_EQ(server_.Terminate(), 0);
    Restart();
    v1::PredictResponse response;
    EXPECT_TRUE(Predict(request, &response).ok());
    return AwaitLine("PredictionService/Predict");
  });
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
  constexpr int kMessages = 20;
  ExpectMostly("write_ms", 0.5, [&](int attempt) {
    const size_t lines = SlowLines("PredictionService/PredictStream").size();
    grpc::ClientContext context;
    const auto stream = predictions->PredictStream(&context);
    std::thread sender([&] {
      for (int i = 0; i < kMessages; ++i) stream->Write(request);
      stream->WritesDone();
    });
    EXPECT_TRUE(Eventually([this] {
      return MetricOf(server_.metrics_port(),
                      "perceptrond_memory_reserved_bytes{use=\"answers\"}") > 0;
    }));
    // The client is busy with other things for longer than the threshold.
    std::this_thread::sleep_for(std::chrono::milliseconds(500) * (1 << attempt));
    v1::PredictResponse response;
    int answers = 0;
    while (stream->Read(&response)) ++answers;
    sender.join();
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(answers, kMessages);
    return AwaitLine("PredictionService/PredictStream", lines);
  });
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
