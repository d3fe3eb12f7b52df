// Models that the server deletes when nobody uses them. core/store/model_expiry_test.cc has the times,
// by a clock of its own.
#include <google/protobuf/util/time_util.h>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond::testing {
namespace {

using ::google::protobuf::util::TimeUtil;

class ExpiryTest : public ServerTest {
 protected:
  static constexpr int kSeconds = 1;

  // Sets the time, or removes it.
  v1::Model SetTime(const std::string& id, int seconds) {
    return AnswerOf<v1::Model>(
        "ModelService/UpdateModel",
        absl::StrCat("model { name: 'models/", id, "' ",
                     seconds > 0 ? absl::StrCat("expire_after { seconds: ", seconds, " }") : "",
                     " } update_mask { paths: 'expire_after' }"));
  }
  v1::Model CreateExpiring(const std::string& id) {
    return Create(id,
                  absl::StrCat("feature_space { dense { dimension: 2 } } expire_after { seconds: ",
                               kSeconds, " }"));
  }
  bool Exists(const std::string& id) {
    // Which does not count as a use.
    const std::string outcome = Call("ModelService/GetModel", "name: 'models/" + id + "'");
    EXPECT_TRUE(outcome == "OK" || outcome == "NOT_FOUND MODEL_NOT_FOUND") << outcome;
    return outcome == "OK";
  }
  void AwaitDeletion(const std::string& id) {
    EXPECT_TRUE(Eventually([&] { return !Exists(id); })) << id;
  }
};

TEST_F(ExpiryTest, AModelThatIsNotUsedIsDeletedOnceAndThoseThatAreNeededStay) {
  for (const char* id : {"streamed", "named", "part", "kept"}) CreateDense(id, 2);
  RawLearnStream stream(*learning_, "streamed");
  stream.Open();
  EXPECT_EQ(Call("AliasService/UpdateAlias",
                 "alias { name: 'aliases/x' model: 'models/named' } allow_missing: true"),
            "OK");
  Create("whole", "feature_space { composition { inputs { model: 'models/part' } } }");
  for (const char* id : {"streamed", "named", "part"}) SetTime(id, kSeconds);
  EXPECT_TRUE(SetTime("kept", 3600).has_expire_time());
  EXPECT_FALSE(SetTime("kept", 0).has_expire_time());
  const v1::Model model = CreateExpiring("m");
  EXPECT_EQ(TimeUtil::DurationToSeconds(model.expire_time() - model.create_time()), kSeconds);
  AwaitDeletion("m");
  EXPECT_NE(server_.AwaitLog("deleted a model that was not used"), "");
  EXPECT_NE(server_.AwaitLog("expire model"), "");
  // Its name is free, and the next one's time is the next one's.
  CreateExpiring("m");
  AwaitDeletion("m");
  for (const char* id : {"streamed", "named", "part", "kept", "whole"})
    EXPECT_TRUE(Exists(id)) << id;
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Call("AliasService/DeleteAlias", "name: 'aliases/x'"), "OK");
  AwaitDeletion("streamed");
  AwaitDeletion("named");
  const std::string metrics =
      "curl -sf http://127.0.0.1:" + std::to_string(server_.metrics_port()) + "/metrics";
  // A model is counted once its deletion has ended.
  EXPECT_TRUE(Eventually([&] {
    return RunCommand(metrics).out.find("\nperceptrond_models_expired_total 4\n") !=
           std::string::npos;
  }));
  server_.Kill();
  Restart();
  for (const char* id : {"m", "streamed", "named"}) EXPECT_FALSE(Exists(id)) << id;
}

TEST_F(ExpiryTest, PerceptronctlSetsShowsAndRemovesTheTime) {
  const auto ctl = [this](const std::string& arguments) {
    return RunCommand(absl::StrCat(PerceptronctlBinary(), " --server ", server_.address(), " ",
                                   arguments, " 2>&1"));
  };
  EXPECT_EQ(ctl("create m --dimension 2 --expire-after 30d").exit_code, 0);
  EXPECT_EQ(Get("m").expire_after().seconds(), 30 * 24 * 3600);
  EXPECT_EQ(ctl("update m --expire-after 1h30m").exit_code, 0);
  EXPECT_EQ(Get("m").expire_after().seconds(), 90 * 60);
  EXPECT_EQ(ctl("update m --expire-after never").exit_code, 0);
  EXPECT_FALSE(Get("m").has_expire_after());
  for (const char* text : {"soon", "0d", "-1d", "d", "inf"})
    EXPECT_EQ(ctl(absl::StrCat("update m --expire-after=", text)).exit_code, 2) << text;
  EXPECT_EQ(ctl("create n --dimension 2 --expire-after 10ms").exit_code, 1);
}

}  // namespace
}  // namespace perceptrond::testing
