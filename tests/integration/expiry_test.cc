// Models that the server deletes when nobody uses them.
#include <google/protobuf/util/time_util.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "perceptron/v1/alias_service.grpc.pb.h"
#include "tests/integration/alias_fixture.h"
#include "tests/integration/ctl_fixture.h"
#include "tests/integration/memory_fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond::testing {
namespace {

using ::google::protobuf::util::TimeUtil;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// Longer than a busy machine keeps a test between two uses of a model.
constexpr absl::Duration kTime = absl::Seconds(4);

class ExpiryTest : public CtlTest {
 protected:
  explicit ExpiryTest(std::vector<std::string> flags = {}) : CtlTest(std::move(flags)) {}

  v1::Model CreateExpiring(const std::string& id, absl::Duration expire_after = kTime) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
    settings.mutable_expire_after()->set_seconds(absl::ToInt64Seconds(expire_after));
    return Create(id, settings);
  }
  grpc::Status Update(const v1::Model& model) {
    grpc::ClientContext context;
    v1::UpdateModelRequest request;
    *request.mutable_model() = model;
    request.mutable_update_mask()->add_paths("expire_after");
    v1::Model updated;
    return models_->UpdateModel(&context, request, &updated);
  }
  // Which does not count as a use.
  bool Exists(const std::string& id) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    v1::Model model;
    const grpc::Status status = models_->GetModel(&context, request, &model);
    EXPECT_TRUE(status.ok() || Reason(status) == "MODEL_NOT_FOUND") << status.error_message();
    return status.ok();
  }
  grpc::Status Use(const std::string& model) {
    v1::PredictRequest request;
    request.set_model(model);
    *request.add_examples() = SparseExample(0, {{0, 1.0F}});
    v1::PredictResponse response;
    return Predict(request, &response);
  }
  grpc::Status LearnRow(const std::string& model, int label) {
    v1::LearnRequest request;
    request.set_model(model);
    *request.add_examples() = SparseExample(label, {{0, 1.0F}});
    return Learn(request);
  }
  double Expired() { return MetricOf(server_.metrics_port(), "perceptrond_models_expired_total"); }
  // A model is counted once its deletion has ended.
  void ExpectExpired(double count) {
    EXPECT_TRUE(Eventually([&] { return Expired() >= count; }));
    EXPECT_EQ(Expired(), count);
  }
  void AwaitDeletion(const std::string& id) {
    EXPECT_TRUE(Eventually([&] { return !Exists(id); }));
  }
  // Some time passes: a model that is created now is deleted.
  void Pass(absl::Duration expire_after = kTime) {
    CreateExpiring("clock", expire_after);
    AwaitDeletion("clock");
  }
};

TEST_F(ExpiryTest, AModelThatIsNotUsedIsDeletedOnceAndItsNameIsFree) {
  CreateDense("kept", 2);
  const absl::Time created = absl::Now();
  const v1::Model model = CreateExpiring("m");
  EXPECT_EQ(
      TimeUtil::TimestampToNanoseconds(model.expire_time()) / 1'000'000'000,
      absl::ToUnixSeconds(
          absl::FromUnixNanos(TimeUtil::TimestampToNanoseconds(model.create_time())) + kTime));
  AwaitDeletion("m");
  EXPECT_GE(absl::Now() - created, kTime);
  EXPECT_THAT(server_.AwaitLog("deleted a model that was not used"), HasSubstr("models/m"));
  EXPECT_THAT(server_.AwaitLog("expire model"), HasSubstr("models/m"));
  ExpectExpired(1);
  CreateExpiring("m");
  AwaitDeletion("m");
  ExpectExpired(2);
  EXPECT_TRUE(Exists("kept"));
}

TEST_F(ExpiryTest, LearningAndPredictionKeepAModelAlsoThroughAnAlias) {
  CreateExpiring("learns");
  CreateExpiring("predicts");
  CreateExpiring("named");
  grpc::ClientContext context;
  v1::Alias alias;
  ASSERT_TRUE(v1::AliasService::NewStub(channel_)
                  ->UpdateAlias(&context, Naming("champion", "named"), &alias)
                  .ok());
  absl::Time last_use;
  for (const absl::Time end = absl::Now() + 2 * kTime; absl::Now() < end;) {
    last_use = absl::Now();
    ASSERT_TRUE(LearnRow("models/learns", absl::ToUnixMillis(end) % 2 == 0 ? 1 : -1).ok());
    ASSERT_TRUE(Use("models/predicts").ok());
  }
  // The alias was enough.
  EXPECT_TRUE(Use("aliases/champion").ok());
  AwaitDeletion("learns");
  EXPECT_GE(absl::Now() - last_use, kTime);
  AwaitDeletion("predicts");
  EXPECT_TRUE(Exists("named"));
  grpc::ClientContext deletion;
  v1::DeleteAliasRequest request;
  request.set_name("aliases/champion");
  google::protobuf::Empty nothing;
  ASSERT_TRUE(v1::AliasService::NewStub(channel_)->DeleteAlias(&deletion, request, &nothing).ok());
  AwaitDeletion("named");
}

TEST_F(ExpiryTest, AnOpenLearningStreamKeepsItsModelAndEndsWithNoOther) {
  CreateExpiring("m");
  RawLearnStream stream(*learning_, "m");
  stream.Open();
  Pass(2 * kTime);
  EXPECT_TRUE(Exists("m"));
  EXPECT_TRUE(stream.Finish().ok());
  AwaitDeletion("m");
}

TEST_F(ExpiryTest, AComponentStaysWithItsComposition) {
  CreateExpiring("part");
  v1::Model settings;
  settings.mutable_feature_space()->mutable_composition()->add_inputs()->set_model("models/part");
  Create("whole", settings);
  Pass(2 * kTime);
  EXPECT_TRUE(Exists("part"));
  ExpectExpired(1);
}

TEST_F(ExpiryTest, TheTimeMayBeSetAndRemoved) {
  v1::Model model = CreateDense("m", 2);
  EXPECT_FALSE(model.has_expire_time());
  model.mutable_expire_after()->set_seconds(absl::ToInt64Seconds(kTime));
  EXPECT_TRUE(Update(model).ok());
  EXPECT_TRUE(Get("m").has_expire_time());
  model.clear_expire_after();
  model.set_etag(Get("m").etag());
  EXPECT_TRUE(Update(model).ok());
  EXPECT_FALSE(Get("m").has_expire_time());
  Pass(2 * kTime);
  EXPECT_TRUE(Exists("m"));
  model.set_etag("");
  for (const int64_t seconds : {int64_t{0}, int64_t{-5}, int64_t{4'000'000'000}}) {
    model.mutable_expire_after()->set_seconds(seconds);
    EXPECT_EQ(BadField(Update(model)), "model.expire_after") << seconds;
  }
}

TEST_F(ExpiryTest, AServerThatIsKilledDeletesNothingEarly) {
  // The server's thread that notes uses may be late by a tenth of this.
  const absl::Duration kLonger = 5 * kTime;
  CreateExpiring("m", kLonger);
  absl::Time last_use;
  for (const absl::Time end = absl::Now() + kTime; absl::Now() < end;) {
    last_use = absl::Now();
    ASSERT_TRUE(Use("models/m").ok());
  }
  server_.Kill();
  Restart();
  AwaitDeletion("m");
  EXPECT_GE(absl::Now() - last_use, kLonger);
  ExpectExpired(1);
  // It stays deleted.
  server_.Kill();
  Restart();
  EXPECT_FALSE(Exists("m"));
}

TEST_F(ExpiryTest, PerceptronctlSetsShowsAndRemovesTheTime) {
  const CommandResult created = Ctl("create m --dimension 2 --expire-after 30d");
  EXPECT_EQ(created.exit_code, 0);
  EXPECT_THAT(created.out, HasSubstr("expires:      30d after its last use: 20"));
  EXPECT_EQ(Json<v1::Model>("get m").expire_after().seconds(), 30 * 24 * 3600);
  EXPECT_THAT(Ctl("update m --expire-after 1h30m").out, HasSubstr("1h30m after its last use: 20"));
  EXPECT_THAT(Ctl("update m --expire-after never").out, Not(HasSubstr("expires:")));
  for (const char* text : {"soon", "0d", "-1d", "d", "inf"}) {
    const CommandResult refused = Ctl(absl::StrCat("update m --expire-after=", text));
    EXPECT_EQ(refused.exit_code, 2) << text;
    EXPECT_THAT(refused.out, HasSubstr("is no time above 0, such as 90s, 12h or 30d"));
  }
  const CommandResult short_time = Ctl("create n --dimension 2 --expire-after 10ms");
  EXPECT_EQ(short_time.exit_code, 1);
  EXPECT_THAT(short_time.out, HasSubstr("expire_after"));
}

// Memory for one of the large models.
class ExpiryMemoryTest : public ExpiryTest {
 protected:
  ExpiryMemoryTest() : ExpiryTest({"--memory-budget=64MiB"}) {}
};

TEST_F(ExpiryMemoryTest, AModelThatLeavesMemoryBetweenItsUsesStays) {
  CreateExpiring("m");
  v1::Model large;
  large.mutable_feature_space()->mutable_hashed()->set_bits(22);
  for (const char* id : {"large0", "large1", "large2", "large3"}) Create(id, large);
  for (const absl::Time end = absl::Now() + 2 * kTime; absl::Now() < end;) {
    ASSERT_TRUE(Use("models/m").ok());
    for (const char* id : {"large0", "large1", "large2", "large3"})
      ASSERT_TRUE(Use(absl::StrCat("models/", id)).ok());
  }
  EXPECT_GT(MetricOf(server_.metrics_port(), "perceptrond_evictions_total"), 4);
  EXPECT_EQ(Expired(), 0);
  AwaitDeletion("m");
}

}  // namespace
}  // namespace perceptrond::testing
