// Models that the server deletes when nobody uses them. core/store/model_expiry_test.cc has the times and those that are
// needed, by a clock of its own.
#include <google/protobuf/util/time_util.h>

#include "tests/integration/fixture.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {
namespace {

using ::google::protobuf::util::TimeUtil;

using ExpiryTest = ServerTest;

TEST_F(ExpiryTest, AModelThatIsNotUsedIsDeletedAndOneWhoseTimeWasRemovedStays) {
  CreateDense("kept", 2);
  for (const bool set : {true, false}) {
    const std::string time = set ? "expire_after { seconds: 3600 }" : "";
    EXPECT_EQ(AnswerOf<v1::Model>("ModelService/UpdateModel",
                                  "model { name: 'models/kept' " + time +
                                      " } update_mask { paths: 'expire_after' }")
                  .has_expire_time(),
              set);
  }
  const v1::Model model =
      Create("m", "feature_space { dense { dimension: 2 } } expire_after { seconds: 1 }");
  EXPECT_EQ(TimeUtil::DurationToSeconds(model.expire_time() - model.create_time()), 1);
  // Which does not count as a use.
  std::string outcome;
  WaitUntil([&] { return (outcome = Call("ModelService/GetModel", "name: 'models/m'")) != "OK"; });
  EXPECT_EQ(outcome, "NOT_FOUND MODEL_NOT_FOUND");
  EXPECT_NE(server_.AwaitLog("deleted a model that was not used"), "");
  WaitUntil([&] { return Metric(server_, "perceptrond_models_expired_total") == "1"; });
  server_.Kill();
  Restart();
  EXPECT_EQ(Call("ModelService/GetModel", "name: 'models/m'"), "NOT_FOUND MODEL_NOT_FOUND");
  EXPECT_EQ(Get("kept").name(), "models/kept");
}

}  // namespace
}  // namespace perceptrond::testing
