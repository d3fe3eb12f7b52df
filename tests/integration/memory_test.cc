// One memory budget holds whatever clients do: those that do not read or send no further, models that do not fit, and
// allocations that fail.
#include <grpcpp/generic/generic_stub.h>
#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/integration/transfer_fixture.h"

namespace perceptrond::testing {
namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kBudget = 128 * kMiB;
// The most memory that the process may take: docs/operate.md, Size.
constexpr size_t kAllowed = kBudget + kBudget / 2 + 100 * kMiB;

// A size in /proc/PID/status, in bytes.
size_t ProcessSize(pid_t pid, absl::string_view name) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  size_t kilobytes = 0;
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, name) || !absl::ConsumeSuffix(&rest, " kB")) continue;
    EXPECT_TRUE(absl::SimpleAtoi(absl::StripAsciiWhitespace(rest), &kilobytes));
  }
  return kilobytes << 10;
}
size_t PeakMemory(pid_t pid) { return ProcessSize(pid, "VmHWM:"); }

// A call of any method that sends and never reads.
class UnreadCall {
 public:
  UnreadCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(this);
    Await(absl::Seconds(30));
  }
  ~UnreadCall() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    for (bool ok = false; queue_.Next(&tag, &ok);) {
    }
  }

  // Returns whether the message was sent within `timeout`: if not, the server does not read, and
  // nothing more can be sent.
  bool Send(const std::string& message, absl::Duration timeout) {
    const grpc::Slice slice(message);
    call_->Write(grpc::ByteBuffer(&slice, 1), this);
    return Await(timeout);
  }
  // Reads what is left, and returns the status that the server ended the call with.
  grpc::Status AwaitEnd() {
    grpc::ByteBuffer message;
    do {
      call_->Read(&message, &read_);
    } while (AwaitTag(&read_));
    grpc::Status status;
    call_->Finish(&status, &finished_);
    AwaitTag(&finished_);
    return status;
  }

 private:
  bool Await(absl::Duration timeout) {
    void* tag = nullptr;
    bool ok = false;
    return queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + timeout)) ==
               grpc::CompletionQueue::GOT_EVENT &&
           ok;
  }

  // Passes over a write that was still pending.
  bool AwaitTag(const char* wanted) {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok) && tag != wanted) {
    }
    return ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  char read_ = 0;
  char finished_ = 0;
};

class MemoryTest : public Transfers<ServerTest> {
 protected:
  explicit MemoryTest(const std::string& flag = "--max-message-bytes=2MiB")
      : Transfers(std::vector<std::string>{"--memory-budget=128MiB", "--write-timeout=2s",
                                           "--durability=none", flag}) {}

  double Figure(const std::string& sample) {
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(Metric(server_, sample), &value)) << sample;
    return value;
  }
  void AwaitNothingReserved() {
    for (const char* use : {"answers", "requests"}) {
      WaitUntil([&] {
        return Figure(absl::StrCat("perceptrond_memory_reserved_bytes{use=\"", use, "\"}")) == 0;
      });
    }
  }
  void AwaitSlowConsumer() {
    WaitUntil([&] { return Figure("perceptrond_slow_consumers_total") >= 1; });
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
  // A client that reads gets an answer, if need be after a moment.
  void ExpectServed(const std::string& id) {
    grpc::Status status;
    v1::PredictResponse response;
    WaitUntil([&] {
      status = Predict(Rows(id, 10), &response);
      return status.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED;
    });
    EXPECT_EQ(Outcome(status), "OK");
  }
  void ExpectWithinBudget() { EXPECT_LT(PeakMemory(server_.pid()), kAllowed); }
  // A call of one message in text format that never reads.
  std::unique_ptr<UnreadCall> OpenUnread(const std::string& method,
                                         const google::protobuf::Message& message) {
    auto call = std::make_unique<UnreadCall>(narrow_channel_, "/perceptron.v1." + method);
    EXPECT_TRUE(call->Send(message.SerializeAsString(), absl::Seconds(30)));
    return call;
  }
  // Opens streams that send rows until the server reads no more.
  std::vector<std::unique_ptr<UnreadCall>> OpenUnreadStreams(int count, const std::string& id) {
    std::vector<std::unique_ptr<UnreadCall>> calls;
    const v1::PredictRequest message = Rows(id, 20'000);
    const std::string bytes = message.SerializeAsString();
    for (int i = 0; i < count; ++i) {
      calls.push_back(OpenUnread("PredictionService/PredictStream", message));
      for (int sent = 0; sent < 200 && calls.back()->Send(bytes, absl::Milliseconds(100)); ++sent)
        continue;
    }
    return calls;
  }

  const std::shared_ptr<grpc::Channel> narrow_channel_ = NarrowChannel();
};

TEST_F(MemoryTest, UnreadStreamsAreHeldToTheBudgetAndEndedWhileOthersAreServed) {
  Create("m", "feature_space { hashed { bits: 18 } }");
  grpc::ClientContext context;
  const auto watch =
      models_->WatchModel(&context, FromText<v1::WatchModelRequest>("name: 'models/m'"));
  v1::WatchModelResponse response;
  ASSERT_TRUE(watch->Read(&response));
  std::vector<std::unique_ptr<UnreadCall>> calls = OpenUnreadStreams(60, "m");
  ExpectServed("m");
  ExpectWithinBudget();
  AwaitSlowConsumer();
  const grpc::Status status = calls.front()->AwaitEnd();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("--write-timeout"));
  ExpectServed("m");
  calls.clear();
  AwaitNothingReserved();
  // A client that waits for news of a model stays.
  EXPECT_EQ(Call("LearningService/Learn",
                 "model: 'models/m' examples { sparse { indices: 0 } label: 1 }"),
            "OK");
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.model().revision(), 1);
}

TEST_F(MemoryTest, ModelsStreamsAnswersAndAnalysesAtOnceStayWithinTheDocumentedSize) {
  std::vector<std::unique_ptr<UnreadCall>> calls;
  for (int i = 0; i < 12; ++i) {
    const std::string id = absl::StrCat("m", i);
    Create(id, "feature_space { hashed { bits: 22 } }");
    v1::LearnRequest request;
    request.set_model("models/" + id);
    v1::ExampleColumns& columns = *request.mutable_columns();
    for (uint32_t k = 0; k < 200'000; ++k) columns.add_indices(k);
    columns.add_row_ends(200'000);
    columns.add_labels(1);
    WaitUntil([&] { return Learn(request).ok(); });
  }
  for (auto& call : OpenUnreadStreams(20, "m0")) calls.push_back(std::move(call));
  for (int i = 0; i < 12; ++i) {
    const std::string name = absl::StrCat("'models/m", i, "'");
    calls.push_back(
        OpenUnread("ModelService/GetModel",
                   FromText<v1::GetModelRequest>("view: MODEL_VIEW_WEIGHTS name: " + name)));
    // AnalyzeRequest, too, has the model in its first field.
    calls.push_back(
        OpenUnread("AnalysisService/Analyze", FromText<v1::PredictRequest>("model: " + name)));
    ExpectServed(absl::StrCat("m", 11 - i));
  }
  ExpectWithinBudget();
  EXPECT_GT(Figure("perceptrond_evictions_total"), 0);
}

TEST_F(MemoryTest, UnreadExportsAreRefusedOrEndedWhileOthersAreServed) {
  CreateLarge("m", 8);
  std::vector<std::unique_ptr<UnreadCall>> calls;
  for (int i = 0; i < 40; ++i)
    calls.push_back(OpenUnread("HistoryService/ExportModel",
                               FromText<v1::ExportModelRequest>("name: 'models/m'")));
  AwaitSlowConsumer();
  ExpectServed("m");
  calls.clear();
  AwaitNothingReserved();
}

class ImportMemoryTest : public MemoryTest {
 protected:
  ImportMemoryTest() : MemoryTest("--receive-timeout=1s") {}
};

TEST_F(ImportMemoryTest, AnImportWhoseNextPieceDoesNotComeOrThatComesTooSlowlyEnds) {
  CreateLarge("m", 4);
  const std::string file = Export("m");
  for (const bool stops : {true, false}) {
    ImportCall call(*history_, "n");
    if (stops) {
      call.SendAll(file.substr(0, file.size() / 2));
    } else {
      for (size_t at = 0; call.Send(file.substr(at, 1)); ++at)
        absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_EQ(Outcome(call.AwaitEnd()), "DEADLINE_EXCEEDED REQUEST_TIMEOUT");
    EXPECT_FALSE(Exists("n"));
    AwaitNothingReserved();
  }
}

TEST_F(MemoryTest, ImportsThatDoNotFitAreRefusedAndLeaveNoModelWhileOthersAreServed) {
  CreateLarge("m", 16);
  const std::string file = Export("m");
  std::vector<std::unique_ptr<ImportCall>> calls;
  for (int i = 0; i < 16; ++i) {
    calls.push_back(std::make_unique<ImportCall>(*history_, absl::StrCat("n", i)));
    calls.back()->SendAll(file.substr(0, file.size() - 1));
  }
  ExpectServed("m");
  ExpectWithinBudget();
  int refused = 0;
  for (int i = 0; i < 16; ++i) {
    refused += Reason(calls[i]->Finish()) == "MEMORY_EXHAUSTED" ? 1 : 0;
    EXPECT_FALSE(Exists(absl::StrCat("n", i)));
  }
  EXPECT_GT(refused, 0);
  calls.clear();
  AwaitNothingReserved();
  // There is room again.
  ImportCall last(*history_, "n");
  last.SendAll(file);
  EXPECT_EQ(Outcome(last.Finish()), "OK");
}

// Anybody can send such a file to a server without an access file.
TEST_F(MemoryTest, AFileOfEmptyPartsTakesNoMoreThanItsBudget) {
  CreateDense("m", 20);
  std::string file = "perceptrond model 1\n";
  // ModelFileFrame.state.rows: two bytes, and an object.
  constexpr size_t kRows = 8 * kMiB;
  const auto delimited = [](char tag, size_t size) {
    std::string text(tag == 0 ? 0 : 1, tag);
    for (; size >= 128; size /= 128) text += static_cast<char>(128 + size % 128);
    return text + static_cast<char>(size);
  };
  std::string rows;
  for (size_t i = 0; i < kRows; ++i) rows += std::string("\x3a\0", 2);
  const std::string frame = delimited('\x22', rows.size()) + rows;
  file += delimited(0, frame.size()) + frame;
  ImportCall call(*history_, "n");
  call.SendAll(file);
  EXPECT_EQ(Reason(call.Finish()), "MEMORY_EXHAUSTED");
  ExpectWithinBudget();
  ExpectServed("m");
}

// Anybody can send such a request to a server without an access file.
TEST(ManyFieldsTest, RequestsOfEmptyFieldsAreNotParsed) {
  const TempDir dir;
  ServerProcess server(dir.path() + "/data");
  const auto channel = grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials());
  // CreateModelRequest.model.feature_space.composition.inputs[].model = "a".
  v1::CreateModelRequest one;
  one.mutable_model()->mutable_feature_space()->mutable_composition()->add_inputs()->set_model("a");
  // ModelInferRequest.inputs: two bytes, and an object.
  const std::pair<const char*, std::string> requests[] = {
      {"/perceptron.v1.ModelService/CreateModel", one.SerializeAsString()},
      {"/inference.GRPCInferenceService/ModelInfer", std::string("\x2a\0", 2)}};
  const size_t before = PeakMemory(server.pid());
  for (const auto& [method, field] : requests) {
    for (const size_t size : {16 * kMiB, 60 * kMiB}) {
      std::string bytes;
      while (bytes.size() + field.size() <= size) bytes += field;
      UnreadCall call(channel, method);
      EXPECT_TRUE(call.Send(bytes, absl::Seconds(60)));
      EXPECT_EQ(Reason(call.AwaitEnd()), "MESSAGE_TOO_LARGE");
    }
  }
  // What gRPC holds of one and of the next.
  EXPECT_LT(PeakMemory(server.pid()), before + 3 * 60 * kMiB);
}

// A field that requests once had, here additional_models, is ignored as any unknown field is.
TEST(ManyFieldsTest, AStreamLearnsBesideAMillionFieldsThatItDoesNotKnow) {
  const TempDir dir;
  ServerProcess server(dir.path() + "/data");
  Api api;
  api.Connect(server.address());
  api.CreateDense("m", 1);
  RawLearnStream stream(api.learning(), "m");
  stream.With("columns { dense_width: 1 values: 1 labels: 1 }");
  auto& unknown = *v1::LearnStreamRequest::GetReflection()->MutableUnknownFields(&stream.first());
  for (int i = 0; i < 1'000'000; ++i) unknown.AddLengthDelimited(2, "");
  const size_t before = PeakMemory(server.pid());
  EXPECT_EQ(stream.Ask(stream.first()).examples(), 1);
  EXPECT_LT(PeakMemory(server.pid()), before + 256 * kMiB);
}

// The allocation of the weights fails: the budget is larger than the memory that the process may have.
TEST(OutOfMemoryTest, AModelThatCannotBeAllocatedIsRefusedAndTheServerGoesOn) {
  const TempDir dir;
  ServerProcess server(dir.path() + "/data", {"--memory-budget=64GiB"});
  // Far less than a model of 2^28 weights needs.
  const size_t most = ProcessSize(server.pid(), "VmSize:") + 400 * kMiB;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  ASSERT_EQ(prlimit(server.pid(), RLIMIT_AS, &limit, nullptr), 0);
  Api api;
  api.Connect(server.address());
  const auto create = [&](const std::string& id, int bits) {
    return api.Call("ModelService/CreateModel",
                    absl::StrCat("model_id: '", id,
                                 "' model { feature_space { hashed { bits: ", bits, " } } }"));
  };
  for (const char* id : {"large", "another"})
    EXPECT_EQ(create(id, 28), "RESOURCE_EXHAUSTED OUT_OF_MEMORY");
  EXPECT_EQ(create("small", 10), "OK");
  EXPECT_EQ(server.Terminate(), 0);
}

}  // namespace
}  // namespace perceptrond::testing
