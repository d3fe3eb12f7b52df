// Streams of reports of one model, which many clients may watch.
#include "server/sessions/watch_reactor.h"

#include "core/journal/memory_journal.h"
#include "server/rpc/backend.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/models.h"

namespace perceptrond::watch_reactor_test {
namespace {

using namespace ::perceptrond::testing;
namespace v1 = ::perceptron::v1;

// Counts how often a model's settings are read.
class CountingJournal final : public JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override {
    ++reads_;
    return JournalDecorator::Find(name);
  }
  int reads() const { return reads_; }

 private:
  std::atomic<int> reads_ = 0;
};

class WatchReactorTest : public ::testing::Test {
 protected:
  WatchReactorTest() {
    v1::Model settings = DenseSettings("models/m", 1);
    for (int i = 0; i < 40; ++i) {
      settings.add_label_names(absl::StrCat(i, std::string(1000, 'n')));
      v1::WeightVector& start =
          *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
      start.add_indices(0);
      start.add_values(1);
    }
    settings.mutable_learner()->mutable_classes()->set_max_classes(40);
    EXPECT_OK(store_.Create(settings, "", false).status());
  }
  // A stream on a connection of its own.
  std::unique_ptr<ClientCall> Begin(const std::string& name = "models/m") {
    v1::WatchModelRequest request;
    request.set_name(name);
    auto call = std::make_unique<ClientCall>(server_.Connect(), "/watch");
    EXPECT_TRUE(call->Write(request.SerializeAsString()) && call->WritesDone());
    return call;
  }
  // The first answer of such a stream.
  std::string Watch(const std::string& name = "models/m") {
    std::string answer;
    EXPECT_TRUE(Begin(name)->Read(answer));
    return answer;
  }

  CountingJournal* const journal_ = new CountingJournal(std::make_shared<MemoryJournal>());
  Store store_{std::unique_ptr<Journal>(journal_), Store::Options()};
  MemoryBudget budget_{1 << 24, 1 << 22};
  InFlightMemory memory_{budget_, kLong};
  Drain drain_;
  Workers workers_{2};
  const Call::Method method_ = [this](Call& call) {
    WatchReactor::Start(call, Backend{store_, drain_, workers_, memory_, 1 << 20});
  };
  RpcServer server_{[this](const std::string& /*path*/) -> const Call::Method& { return method_; }};
};

TEST_F(WatchReactorTest, AReportIsShortHoweverLongTheNamesOfTheLabels) {
  EXPECT_LT(Watch().size(), 1000);
}

TEST_F(WatchReactorTest, ReportsOfAModelInMemoryAreCurrentAndReadItsSettingsFromNoJournal) {
  Watch();
  const auto describe = [](v1::Model& model) {
    model.set_description("changed");
    return absl::OkStatus();
  };
  EXPECT_OK(store_.Change("models/m", {}, describe).status());
  const int reads = journal_->reads();
  for (int i = 0; i < 20; ++i) {
    v1::WatchModelResponse response;
    ASSERT_TRUE(response.ParseFromString(Watch()));
    EXPECT_EQ(response.model().description(), "changed");
  }
  EXPECT_EQ(journal_->reads(), reads);
}

TEST_F(WatchReactorTest, ADrainEndsAStreamThatWaitsForUpdates) {
  const auto call = Begin();
  std::string answer;
  ASSERT_TRUE(call->Read(answer));
  drain_.Begin();
  EXPECT_FALSE(call->Read(answer));
  EXPECT_EQ(call->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// A model has up to 10,000 class weights.
TEST_F(WatchReactorTest, AReportThatDoesNotFitTheBudgetEndsTheStream) {
  v1::Model settings = DenseSettings("models/m2", 1);
  settings.mutable_learner()->mutable_classes()->set_max_classes(4000);
  for (int i = 0; i < 4000; ++i) settings.mutable_learner()->add_class_weights(1 + i);
  ASSERT_OK(store_.Create(settings, "", false).status());
  EXPECT_GT(Watch("models/m2").size(), 30'000);

  budget_.ChangeModels(0, budget_.limit());
  budget_.Reserve(MemoryUse::kRequests, budget_.share());
  const auto call = Begin("models/m2");
  std::string answer;
  EXPECT_FALSE(call->Read(answer));
  const grpc::Status status = call->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  budget_.Release(MemoryUse::kRequests, budget_.share());
}

}  // namespace
}  // namespace perceptrond::watch_reactor_test
