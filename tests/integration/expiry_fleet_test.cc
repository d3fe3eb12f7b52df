// Models of a fleet that are deleted when nobody uses them.
#include "tests/integration/followed_streams_fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond::testing {
namespace {

constexpr absl::Duration kTime = absl::Seconds(6);

class ExpiryFleetTest : public ::testing::Test {
 protected:
  ExpiryFleetTest() : servers_(2, 1) {}

  void CreateExpiring(const std::string& id) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
    settings.mutable_expire_after()->set_seconds(absl::ToInt64Seconds(kTime));
    servers_.CreateInFleet(id, settings);
  }
  static bool Exists(Member& member, const std::string& id) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    v1::Model model;
    return Reason(member.models->GetModel(&context, request, &model)) != "MODEL_NOT_FOUND";
  }
  static grpc::Status Use(Member& member, const std::string& id) {
    grpc::ClientContext context;
    v1::PredictRequest request;
    request.set_model("models/" + id);
    *request.add_examples() = SparseExample(0, {{0, 1.0F}});
    v1::PredictResponse response;
    return member.predictions->Predict(&context, request, &response);
  }
  double Expired() {
    double all = 0;
    for (Member& member : servers_.members())
      all += member.Metric("perceptrond_models_expired_total");
    return all;
  }

  Servers servers_;
};

TEST_F(ExpiryFleetTest, UseByAnyServerKeepsAModelAndItsWriterDeletesItOnce) {
  CreateExpiring("m");
  CreateExpiring("unused");
  Member& follower = servers_.FollowerOf("m");
  absl::Time last_use;
  const auto unused_is_deleted = [&] {
    return std::none_of(servers_.members().begin(), servers_.members().end(),
                        [](Member& member) { return Exists(member, "unused"); });
  };
  const absl::Time begun = absl::Now();
  while (absl::Now() < begun + 3 * kTime ||
         (!unused_is_deleted() && absl::Now() < begun + 10 * kTime)) {
    last_use = absl::Now();
    const grpc::Status status = Use(follower, "m");
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_TRUE(unused_is_deleted());
  EXPECT_TRUE(Eventually([&] { return Expired() == 1; }));
  for (Member& member : servers_.members())
    EXPECT_TRUE(Eventually([&] { return !Exists(member, "m"); }));
  EXPECT_GE(absl::Now() - last_use, kTime);
  // Counted once the deletion has ended.
  EXPECT_TRUE(Eventually([&] { return Expired() == 2; }));
}

TEST_F(ExpiryFleetTest, AWriterThatDiesLeavesTheDeletionToTheNextOne) {
  CreateExpiring("m");
  Member& follower = servers_.FollowerOf("m");
  ASSERT_TRUE(Use(follower, "m").ok());
  const absl::Time last_use = absl::Now();
  servers_.WriterOf("m").process.Kill();
  EXPECT_TRUE(Eventually([&] { return !Exists(follower, "m"); }));
  EXPECT_GE(absl::Now() - last_use, kTime);
  EXPECT_TRUE(Eventually([&] { return follower.Metric("perceptrond_models_expired_total") == 1; }));
}

}  // namespace
}  // namespace perceptrond::testing
