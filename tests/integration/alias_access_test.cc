// Who may use, see and set aliases, with an access file.
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/access_fixture.h"
#include "tests/integration/alias_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class AliasAccessTest : public AccessTest {
 protected:
  AliasAccessTest() : aliases_(v1::AliasService::NewStub(channel_)) {
    for (const char* id : {"spam-a", "other"}) EXPECT_TRUE(CreateAs("admin", id).ok());
  }
  grpc::Status SetAs(const std::string& principal, const std::string& alias,
                     const std::string& model) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::Alias made;
    return aliases_->UpdateAlias(&context, Naming(alias, model), &made);
  }
  grpc::Status PredictAs(const std::string& principal, const std::string& model) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::PredictRequest request;
    request.set_model(model);
    v1::PredictResponse response;
    return predictions_->Predict(&context, request, &response);
  }

  const std::unique_ptr<v1::AliasService::Stub> aliases_;
};

constexpr auto kDeniedCode = grpc::StatusCode::PERMISSION_DENIED;

TEST_F(AliasAccessTest, ARoleIsThatForTheModelItNames) {
  EXPECT_EQ(SetAs("reader", "spam-x", "spam-a").error_code(), kDeniedCode);
  ASSERT_TRUE(SetAs("admin", "live", "spam-a").ok());
  EXPECT_TRUE(PredictAs("reader", "aliases/live").ok());
  ASSERT_TRUE(SetAs("admin", "live", "other").ok());
  const grpc::Status denied = PredictAs("reader", "aliases/live");
  EXPECT_EQ(denied.error_code(), kDeniedCode);
  // It says nothing about the model, nor whether the alias exists.
  EXPECT_THAT(denied.error_message(), Not(HasSubstr("other")));
  ASSERT_TRUE(SetAs("admin", "spam-x", "other").ok());
  EXPECT_EQ(PredictAs("reader", "aliases/spam-x").error_code(), kDeniedCode);
  EXPECT_EQ(PredictAs("reader", "aliases/none").error_code(), kDeniedCode);
  EXPECT_EQ(PredictAs("reader", "aliases/spam-none").error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AliasAccessTest, AStreamThatFollowsEndsAtAModelThatItMayNotRead) {
  ASSERT_TRUE(SetAs("admin", "live", "spam-a").ok());
  grpc::ClientContext context;
  Authorize(context, "reader");
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictRequest request;
  request.set_model("aliases/live");
  v1::PredictResponse response;
  EXPECT_TRUE(stream->Write(request));
  EXPECT_TRUE(stream->Read(&response));
  ASSERT_TRUE(SetAs("admin", "live", "other").ok());
  request.clear_model();
  EXPECT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), kDeniedCode);
}

TEST_F(AliasAccessTest, ListsHaveTheAliasesWhoseIdsTheCallerMayRead) {
  ASSERT_TRUE(SetAs("admin", "live", "spam-a").ok());
  ASSERT_TRUE(SetAs("admin", "spam-x", "spam-a").ok());
  for (const char* principal : {"admin", "reader"}) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::ListAliasesResponse all;
    ASSERT_TRUE(aliases_->ListAliases(&context, {}, &all).ok());
    std::vector<std::string> names;
    for (const v1::Alias& alias : all.aliases()) names.push_back(alias.name());
    if (std::string(principal) == "admin") {
      EXPECT_THAT(names, ElementsAre("aliases/live", "aliases/spam-x"));
    } else {
      EXPECT_THAT(names, ElementsAre("aliases/spam-x"));
    }
  }
}

}  // namespace
}  // namespace perceptrond::testing
