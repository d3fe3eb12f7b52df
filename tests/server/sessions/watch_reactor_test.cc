// Streams of reports of one model, in memory that others take too.
#include "server/sessions/watch_reactor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/journal/memory_journal.h"
#include "server/rpc/backend.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/models.h"
#include "tests/support/status.h"

namespace perceptrond::watch_reactor_test {
namespace {

using namespace ::perceptrond::testing;
namespace v1 = ::perceptron::v1;

class WatchReactorTest : public ::testing::Test {
 protected:
  WatchReactorTest() {
    v1::Model settings = DenseSettings("models/m", 1);
    // An answer of more than a call holds without asking.
    for (int i = 0; i < 40; ++i) {
      settings.add_label_names(absl::StrCat(i, std::string(1000, 'n')));
    }
    settings.mutable_learner()->mutable_classes()->set_max_classes(40);
    EXPECT_OK(store_.Create(settings, "", false).status());
  }
  static std::string Request() {
    v1::WatchModelRequest request;
    request.set_name("models/m");
    return request.SerializeAsString();
  }

  Store store_{std::make_unique<MemoryJournal>(), Store::Options()};
  MemoryBudget budget_{1 << 24, 1 << 22};
  InFlightMemory memory_{budget_, kLong};
  Drain drain_;
  Workers workers_{2};
  const Call::Method method_ = [this](Call& call) {
    WatchReactor::Start(call, Backend{store_, drain_, workers_, memory_, 1 << 20});
  };
  RpcServer server_{[this](const std::string& /*path*/) -> const Call::Method& { return method_; }};
};

TEST_F(WatchReactorTest, AReportThatDoesNotFitTheBudgetEndsTheStream) {
  ClientCall fits(server_.Connect(), "/watch");
  ASSERT_TRUE(fits.Write(Request()) && fits.WritesDone());
  std::string report;
  EXPECT_TRUE(fits.Read(report));
  EXPECT_GT(report.size(), 40'000);

  budget_.ChangeModels(0, budget_.limit());
  budget_.Reserve(MemoryUse::kRequests, budget_.share());
  ClientCall call(server_.Connect(), "/watch");
  ASSERT_TRUE(call.Write(Request()) && call.WritesDone());
  EXPECT_FALSE(call.Read(report));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  budget_.Release(MemoryUse::kRequests, budget_.share());
}

}  // namespace
}  // namespace perceptrond::watch_reactor_test
