// One memory budget holds whatever clients do: those that do not read, models that do not fit, and
// allocations that fail.
#include <sys/resource.h>

#include <cstdio>

#include "tests/integration/memory_fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;

constexpr size_t kBudget = 128 * kMiB;
// What the process may take: docs/operate.md, Size.
constexpr size_t kAllowed = kBudget + kBudget / 2 + 100 * kMiB;

class MemoryTest : public ServerTest {
 protected:
  MemoryTest()
      : ServerTest({"--memory-budget=128MiB", "--max-message-bytes=2MiB", "--write-timeout=2s",
                    "--durability=none"}) {}

  double Metric(absl::string_view series) { return MetricOf(server_.metrics_port(), series); }
  void CreateHashed(const std::string& id, int bits) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_hashed()->set_bits(bits);
    Create(id, settings);
  }
  // Gives the first `count` features weights.
  void Fill(const std::string& id, uint32_t count) {
    constexpr uint32_t kAtOnce = 100'000;
    for (uint32_t begin = 0; begin < count; begin += kAtOnce) {
      v1::LearnRequest request;
      request.set_model("models/" + id);
      v1::ExampleColumns& columns = *request.mutable_columns();
      for (uint32_t i = begin; i < std::min(count, begin + kAtOnce); ++i) {
        columns.add_indices(i);
        columns.add_values(1 + static_cast<float>(i % 7));
      }
      columns.add_row_ends(columns.indices_size());
      columns.add_labels(begin / kAtOnce % 2 == 0 ? 1 : -1);
      grpc::Status status;
      const absl::Time deadline = absl::Now() + absl::Seconds(30);
      do {
        status = Learn(request);
      } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
               absl::Now() < deadline);
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  }
  static v1::PredictRequest Rows(const std::string& id, int rows) {
    v1::PredictRequest request;
    request.set_model("models/" + id);
    for (int i = 0; i < rows; ++i) {
      request.mutable_columns()->add_indices(i);
      request.mutable_columns()->add_values(1);
      request.mutable_columns()->add_row_ends(i + 1);
    }
    return request;
  }
  // What a client that reads sees: an answer, if need be after a moment.
  void ExpectServed(const std::string& id) {
    grpc::Status status;
    v1::PredictResponse response;
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    do {
      status = Predict(Rows(id, 10), &response);
    } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && absl::Now() < deadline);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.scores_size(), 10);
  }
  // Opens streams that send `message` until the server reads no more.
  std::vector<std::unique_ptr<UnreadCall>> OpenUnreadStreams(int count,
                                                             const v1::PredictRequest& message) {
    std::vector<std::unique_ptr<UnreadCall>> calls;
    const std::string bytes = message.SerializeAsString();
    for (int i = 0; i < count; ++i) {
      calls.push_back(std::make_unique<UnreadCall>(
          narrow_channel_, "/perceptron.v1.PredictionService/PredictStream"));
      for (int sent = 0; sent < 200; ++sent) {
        if (!calls.back()->Send(bytes, absl::Milliseconds(100))) break;
      }
    }
    return calls;
  }
  void AwaitSlowConsumers(double count) {
    EXPECT_TRUE(Eventually([&] { return Metric("perceptrond_slow_consumers_total") >= count; }));
  }

  const std::shared_ptr<grpc::Channel> narrow_channel_ = NarrowChannel();
};

TEST_F(MemoryTest, UnreadStreamsAreHeldToTheBudgetAndEndedWhileOthersAreServed) {
  CreateHashed("m", 18);
  std::vector<std::unique_ptr<UnreadCall>> calls = OpenUnreadStreams(60, Rows("m", 20'000));
  ExpectServed("m");
  EXPECT_LT(PeakMemory(server_.pid()), kAllowed);
  AwaitSlowConsumers(1);
  const grpc::Status status = calls.front()->AwaitEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("--write-timeout"));
  ExpectServed("m");
  calls.clear();
  for (const char* use : {"answers", "requests"}) {
    EXPECT_TRUE(Eventually([&] {
      return Metric(absl::StrCat("perceptrond_memory_reserved_bytes{use=\"", use, "\"}")) == 0;
    })) << use;
  }
}

TEST_F(MemoryTest, ModelsStreamsAnswersAndAnalysesAtOnceStayWithinWhatIsDocumented) {
  for (int i = 0; i < 12; ++i) {
    CreateHashed(absl::StrCat("m", i), 22);
    Fill(absl::StrCat("m", i), 200'000);
  }
  std::vector<std::unique_ptr<UnreadCall>> calls = OpenUnreadStreams(20, Rows("m0", 20'000));
  for (int i = 0; i < 12; ++i) {
    v1::GetModelRequest request;
    request.set_name(absl::StrCat("models/m", i));
    request.set_view(v1::MODEL_VIEW_WEIGHTS);
    calls.push_back(
        std::make_unique<UnreadCall>(narrow_channel_, "/perceptron.v1.ModelService/GetModel"));
    calls.back()->Send(request.SerializeAsString(), absl::Seconds(30));
    calls.push_back(
        std::make_unique<UnreadCall>(narrow_channel_, "/perceptron.v1.AnalysisService/Analyze"));
    // The field `model` of AnalyzeRequest.
    v1::PredictRequest analyze;
    analyze.set_model(absl::StrCat("models/m", i));
    calls.back()->Send(analyze.SerializeAsString(), absl::Seconds(30));
    ExpectServed(absl::StrCat("m", 11 - i));
  }
  EXPECT_LT(PeakMemory(server_.pid()), kAllowed);
  EXPECT_GT(Metric("perceptrond_evictions_total"), 0);
}

TEST_F(MemoryTest, AClientThatWaitsForAWatchedModelStays) {
  CreateHashed("m", 18);
  grpc::ClientContext context;
  v1::WatchModelRequest request;
  request.set_name("models/m");
  const auto watch = models_->WatchModel(&context, request);
  v1::WatchModelResponse response;
  ASSERT_TRUE(watch->Read(&response));
  const std::vector<std::unique_ptr<UnreadCall>> calls = OpenUnreadStreams(40, Rows("m", 20'000));
  AwaitSlowConsumers(1);
  Fill("m", 10);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.model().revision(), 1);
}

// Anybody can send such a request to a server without an access file.
TEST(ManyFieldsTest, ARequestOfEmptyFieldsTakesWhatItIsHeldToAndLongerOnesAreNotLookedAt) {
  const TempDir dir;
  ServerProcess server(dir.path() + "/data");
  const auto channel = grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials());
  // CreateModelRequest.model.feature_space.composition.inputs[].model = "a".
  v1::CreateModelRequest one;
  one.mutable_model()->mutable_feature_space()->mutable_composition()->add_inputs()->set_model("a");
  const std::string field = one.SerializeAsString();
  const size_t before = PeakMemory(server.pid());
  for (const size_t size : {16 * kMiB, 60 * kMiB}) {
    std::string bytes;
    while (bytes.size() + field.size() <= size) bytes += field;
    UnreadCall call(channel, "/perceptron.v1.ModelService/CreateModel");
    EXPECT_TRUE(call.Send(bytes, absl::Seconds(60)));
    EXPECT_FALSE(call.AwaitEnd().ok());
  }
  std::printf("%zu MB before, %zu MB at most\n", before / 1'000'000,
              PeakMemory(server.pid()) / 1'000'000);
  // Parsing takes up to sixteen times a message; of the longer one its own bytes are held.
  EXPECT_LT(PeakMemory(server.pid()), before + (16 + 1) * 16 * kMiB + 2 * 60 * kMiB);
}

// What fails is the allocation of the weights: the budget is larger than what the process may have.
TEST(OutOfMemoryTest, AModelThatCannotBeAllocatedIsRefusedAndTheServerGoesOn) {
  const TempDir dir;
  ServerProcess server(dir.path() + "/data", {"--memory-budget=64GiB"});
  // Far less than a model of 2^28 weights needs.
  const size_t most = AddressSpace(server.pid()) + 400 * kMiB;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_AS, &limit, nullptr), 0);
  const auto channel = grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials());
  const auto models = v1::ModelService::NewStub(channel);
  const auto create = [&](const std::string& id, int bits) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    request.set_model_id(id);
    request.mutable_model()->mutable_feature_space()->mutable_hashed()->set_bits(bits);
    v1::Model model;
    return models->CreateModel(&context, request, &model);
  };
  for (const char* id : {"large", "another"}) {
    const grpc::Status status = create(id, 28);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_EQ(Reason(status), "OUT_OF_MEMORY");
  }
  const grpc::Status small = create("small", 10);
  EXPECT_TRUE(small.ok()) << small.error_message();
  EXPECT_EQ(server.Terminate(), 0);
}

}  // namespace
}  // namespace perceptrond
