// The server as a process: how it does not start, how it ends, what SIGHUP has it read again, and its limits, metrics and sweeps.
#include <google/protobuf/util/time_util.h>

#include <csignal>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/integration/certificates.h"
#include "tests/integration/fixture.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using ServerProcessTest = ServerTest;

TEST_F(ServerProcessTest, ADirectoryInUseIsRefusedWithWords) {
  EXPECT_THAT(RunToEnd(1, "--metrics-address off --address 127.0.0.1:0 --data-dir " + dir_.path() +
                              "/data"),
              AllOf(HasSubstr("waiting for it to stop"), HasSubstr("in use by another server")));
}

TEST_F(ServerProcessTest, AnInterruptDrainsToo) {
  server_.Signal(SIGINT);
  EXPECT_EQ(server_.Wait(), 0);
}

TEST(ServerTls, AFileThatIsNoCertificateOrNoKeyOfItIsNamedBeforeAnythingListens) {
  const TempDir dir;
  const Certificates certificates;
  const auto path = [&](const std::string& name) { return certificates.Path(name); };
  std::ofstream(path("garbage")) << "-----BEGIN CERTIFICATE-----\nno\n";
  std::ofstream(path("cut-off")) << ReadAll(path("server.pem"))
                                 << ReadAll(path("server.pem")).substr(0, 300);
  const struct {
    const char* certificate;
    const char* key;
    const char* ca;
    const char* named;
  } cases[] = {{"garbage", "server.key", "ca.pem", "garbage holds no cert"},
               {"cut-off", "server.key", "ca.pem", "cut-off is damaged"},
               {"server.pem", "garbage", "ca.pem", "garbage holds no priv"},
               {"server.pem", "client.key", "ca.pem", "client.key is not the"},
               {"server.pem", "server.key", "garbage", "garbage holds no cert"}};
  for (const auto& one : cases) {
    EXPECT_THAT(RunToEnd(1, "--metrics-address off --address 127.0.0.1:0 --data-dir " + dir.path() +
                                "/data --tls-cert " + path(one.certificate) + " --tls-key " +
                                path(one.key) + " --tls-client-ca " + path(one.ca)),
                AllOf(HasSubstr(path(one.named)), Not(HasSubstr("cannot listen"))));
  }
}

class ConfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& content) const {
    const std::string path = dir_.path() + "/perceptrond.conf";
    std::ofstream(path) << content;
    return path;
  }

  const TempDir dir_;
};

TEST_F(ConfigTest, WrongArgumentsOfMigrateExitWithTwoAndNoPasswordIsRepeated) {
  for (const char* const arguments :
       {"migrate", "migrate /tmp/a /tmp/b", "migrate postgres://user:secret@n/d /tmp/a",
        "--journal postgres://user:top@secret@n/d", "backup postgres://n/d /tmp/a"})
    EXPECT_THAT(RunToEnd(2, arguments), Not(HasSubstr("secret"))) << arguments;
}

TEST_F(ConfigTest, OnSighupTheLogLevelChangesAndWhatNeedsAStartIsNamed) {
  const std::string file = Write("log-level = \"info\"\n");
  const ServerProcess server(dir_.path() + "/data", {"--config", file});
  Write("log-level = \"debug\"\nmemory-budget = \"2GiB\"\n");
  server.Signal(SIGHUP);
  EXPECT_THAT(server.AwaitLog("at the next start"), HasSubstr("settings=memory-budget"));
  EXPECT_NE(server.AwaitLog("log_level=debug"), "");
  Write("log-level = \"shout\"\n");
  server.Signal(SIGHUP);
  EXPECT_THAT(server.AwaitLog("cannot use the settings"), HasSubstr("shout"));
}

// What each refuses, and what not, the tests of the store and of connections have.
class LimitsTest : public ServerTest {
 protected:
  LimitsTest()
      : ServerTest({"--max-model-features=100", "--max-producers=1", "--max-message-cost=1000000",
                    "--max-streams=2", "--metrics-max-models=1"}) {}
};

TEST_F(LimitsTest, AreThoseOfTheOptions) {
  const auto create = [this](int features) {
    return Call(
        "ModelService/CreateModel",
        absl::StrCat("model_id: 'm' model { feature_space { dense { dimension: 4 } map { fourier { "
                     "dimension: ",
                     features, " gamma: 1 } } } }"));
  };
  EXPECT_EQ(create(101), "RESOURCE_EXHAUSTED MODEL_TOO_LARGE");
  EXPECT_EQ(create(100), "OK");
  {
    RawLearnStream streams[] = {{*learning_, "m"}, {*learning_, "m"}};
    for (RawLearnStream& stream : streams) stream.Open();
    EXPECT_EQ(Call("PredictionService/Predict", "model: 'models/m'"),
              "RESOURCE_EXHAUSTED TOO_MANY_STREAMS");
    EXPECT_EQ(Call("ModelService/ListModels", ""), "OK");
    for (RawLearnStream& stream : streams) EXPECT_TRUE(stream.Finish().ok());
  }
  WaitUntil([&] { return Call("PredictionService/Predict", "model: 'models/m'") == "OK"; });
  for (const auto& [producer, outcome] :
       {std::pair{"first", "OK"}, {"second", "RESOURCE_EXHAUSTED PRODUCER_LIMIT"}}) {
    EXPECT_EQ(
        Call("LearningService/Learn", absl::StrCat("model: 'models/m' producer_id: '", producer,
                                                   "' first_offset: 0 examples { label: 1 }")),
        outcome);
  }
  // Rows of 100 mapped features, each of which is a sum of four products.
  v1::PredictRequest costly;
  costly.set_model("models/m");
  costly.mutable_columns()->set_dense_width(4);
  costly.mutable_columns()->mutable_values()->Resize(14'000, 1);
  EXPECT_EQ(Call("PredictionService/Predict", costly.ShortDebugString()),
            "RESOURCE_EXHAUSTED MESSAGE_TOO_COSTLY");
  // Of two models one has series, and the other one once that is gone.
  CreateDense("n", 1);
  EXPECT_THAT(MetricsPage(server_),
              AllOf(HasSubstr("model_name=\"m\""), Not(HasSubstr("model_name=\"n\"")),
                    HasSubstr("grpc_method=\"Learn\",grpc_code=\"ResourceExhausted\"} 1")));
  EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/m'"), "OK");
  EXPECT_THAT(MetricsPage(server_),
              AllOf(HasSubstr("model_name=\"n\""), Not(HasSubstr("model_name=\"m\""))));
}

// core/store/model_expiry_test.cc has the times and those that are needed, by a clock of its own.
TEST_F(ServerProcessTest, AModelThatIsNotUsedIsDeletedAndOneWhoseTimeWasRemovedStays) {
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
  EXPECT_EQ(google::protobuf::util::TimeUtil::DurationToSeconds(model.expire_time() -
                                                                model.create_time()),
            1);
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
