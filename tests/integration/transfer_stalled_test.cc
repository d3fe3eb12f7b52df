// Clients that read or send a model's file slowly, or stop: the server's memory is bounded, and others are served.
#include <string>
#include <vector>

#include "tests/integration/memory_fixture.h"
#include "tests/integration/transfer_fixture.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;

constexpr size_t kBudget = 128 * kMiB;
// What the process may take: docs/operate.md, Size.
constexpr size_t kAllowed = kBudget + kBudget / 2 + 100 * kMiB;
constexpr char kAnswers[] = "perceptrond_memory_reserved_bytes{use=\"answers\"}";
constexpr char kRequests[] = "perceptrond_memory_reserved_bytes{use=\"requests\"}";

class StalledTransferTest : public Transfers<ServerTest> {
 protected:
  explicit StalledTransferTest(const std::vector<std::string>& more = {}) : Transfers(With(more)) {}

  static std::vector<std::string> With(const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--memory-budget=128MiB", "--write-timeout=2s",
                                      "--durability=none"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  double Metric(absl::string_view series) { return MetricOf(server_.metrics_port(), series); }
  // Whether the metric gets there.
  template <typename Predicate>
  bool Await(absl::string_view series, const Predicate& predicate) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (!predicate(Metric(series))) {
      if (absl::Now() > deadline) return false;
    }
    return true;
  }
  // What a client that reads sees: an answer, if need be after a moment.
  void ExpectServed(const std::string& id) {
    v1::PredictRequest request;
    request.set_model("models/" + id);
    *request.add_examples() = SparseExample(1, {{0, 1}});
    grpc::Status status;
    v1::PredictResponse response;
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    do {
      status = Predict(request, &response);
    } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && absl::Now() < deadline);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  std::unique_ptr<UnreadCall> OpenUnreadExport(const std::string& id) {
    v1::ExportModelRequest request;
    request.set_name("models/" + id);
    auto call =
        std::make_unique<UnreadCall>(narrow_channel_, "/perceptron.v1.HistoryService/ExportModel");
    EXPECT_TRUE(call->Send(request.SerializeAsString(), absl::Seconds(30)));
    return call;
  }

  const std::shared_ptr<grpc::Channel> narrow_channel_ = NarrowChannel();
};

TEST_F(StalledTransferTest, UnreadExportsAreRefusedOrEndedWhileOthersAreServed) {
  CreateLarge("m", 8);
  std::vector<std::unique_ptr<UnreadCall>> calls;
  for (int i = 0; i < 40; ++i) calls.push_back(OpenUnreadExport("m"));
  EXPECT_TRUE(Await("perceptrond_slow_consumers_total", [](double ended) { return ended >= 1; }));
  ExpectServed("m");
  calls.clear();
  EXPECT_TRUE(Await(kAnswers, [](double bytes) { return bytes == 0; }));
}

class ImpatientServerTest : public StalledTransferTest {
 protected:
  ImpatientServerTest() : StalledTransferTest({"--receive-timeout=1s"}) {}
};

TEST_F(ImpatientServerTest, AnImportWhoseNextPieceDoesNotComeOrThatComesTooSlowlyEnds) {
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
    EXPECT_TRUE(Await(kRequests, [](double bytes) { return bytes == 0; }));
  }
}

TEST_F(StalledTransferTest, ImportsThatDoNotFitAreRefusedAndLeaveNoModelWhileOthersAreServed) {
  CreateLarge("m", 16);
  const std::string file = Export("m");
  std::vector<std::unique_ptr<ImportCall>> calls;
  for (int i = 0; i < 16; ++i) {
    calls.push_back(std::make_unique<ImportCall>(*history_, absl::StrCat("n", i)));
    calls.back()->SendAll(file.substr(0, file.size() - 1));
  }
  ExpectServed("m");
  EXPECT_LT(PeakMemory(server_.pid()), kAllowed);
  int refused = 0;
  for (int i = 0; i < 16; ++i) {
    const grpc::Status status = calls[static_cast<size_t>(i)]->Finish();
    refused += Reason(status) == "MEMORY_EXHAUSTED" ? 1 : 0;
    EXPECT_FALSE(Exists(absl::StrCat("n", i)));
  }
  EXPECT_GT(refused, 0);
  calls.clear();
  EXPECT_TRUE(Await(kRequests, [](double bytes) { return bytes == 0; }));
  // There is room again.
  ImportCall last(*history_, "n");
  last.SendAll(file);
  const grpc::Status status = last.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// Anybody can send such a file to a server without an access file.
TEST_F(StalledTransferTest, AFileOfEmptyPartsTakesNoMoreThanItsBudget) {
  CreateDense("m", 2);
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
  EXPECT_LT(PeakMemory(server_.pid()), kAllowed);
  ExpectServed("m");
}

}  // namespace
}  // namespace perceptrond
