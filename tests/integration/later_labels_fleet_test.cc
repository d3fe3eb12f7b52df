// Labels that come after their predictions, at other servers of a fleet than those that predicted; and
// streams that several models learn, which a fleet refuses.
#include "tests/integration/followed_streams_fixture.h"

namespace perceptrond::testing {
namespace {

class LaterLabelsFleetTest : public ::testing::Test {
 protected:
  explicit LaterLabelsFleetTest(const std::string& timeout = kFleetTimeout)
      : servers_(2, 1, timeout) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_named();
    settings.mutable_stored_predictions();
    servers_.CreateInFleet("m", settings);
  }
  // The ids of two predictions.
  static std::vector<std::string> Predict(Member& member) {
    v1::PredictRequest request;
    request.set_model("models/m");
    request.set_include_prediction_ids(true);
    for (const char* name : {"free", "lunch"})
      request.add_examples()->mutable_named()->add_names(name);
    grpc::ClientContext context;
    v1::PredictResponse response;
    const grpc::Status status = member.predictions->Predict(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.prediction_ids().begin(), response.prediction_ids().end()};
  }
  static v1::ExampleColumns Labels(const std::vector<std::string>& ids) {
    v1::ExampleColumns columns;
    for (const std::string& id : ids) {
      columns.add_prediction_ids(id);
      columns.add_labels(columns.labels_size() % 2 == 0 ? 1 : -1);
    }
    return columns;
  }
  static grpc::Status Learn(Member& member, const std::vector<std::string>& ids) {
    v1::LearnRequest request;
    request.set_model("models/m");
    *request.mutable_columns() = Labels(ids);
    grpc::ClientContext context;
    v1::LearnResponse response;
    return member.learning->Learn(&context, request, &response);
  }

  Servers servers_;
};

TEST_F(LaterLabelsFleetTest, AnyServerLearnsALabelWhoeverKeepsThePrediction) {
  Member& writer = servers_.WriterOf("m");
  Member& follower = servers_.FollowerOf("m");
  const std::vector<std::string> kept = Predict(follower);
  // On a stream of the server that keeps them, which forwards them.
  RawLearnStream stream(*follower.learning, "m", "p");
  stream.Open();
  v1::LearnStreamRequest message;
  *message.mutable_columns() = Labels(kept);
  const v1::LearnResult result = stream.Ask(message);
  EXPECT_EQ(result.examples(), 2U);
  EXPECT_GT(result.updates(), 0U);
  EXPECT_EQ(Reason(Learn(writer, {kept[0]})), "UNKNOWN_PREDICTION");
  // At the server that writes.
  EXPECT_TRUE(Learn(writer, Predict(follower)).ok());
  // And the other way round.
  EXPECT_TRUE(Learn(follower, Predict(writer)).ok());
  EXPECT_EQ(writer.Get("m").report().examples(), 6U);
  for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
    if (follower.Metric("perceptrond_predictions_waiting") == 0) break;
  }
  EXPECT_EQ(follower.Metric("perceptrond_predictions_joined_total"), 4);
  EXPECT_EQ(writer.Metric("perceptrond_predictions_joined_total"), 2);
}

class ShortTimeoutTest : public LaterLabelsFleetTest {
 protected:
  ShortTimeoutTest() : LaterLabelsFleetTest("1s") {}
};

TEST_F(ShortTimeoutTest, PredictionsEndWithTheServerThatKeepsThem) {
  Member& writer = servers_.WriterOf("m");
  Member& follower = servers_.FollowerOf("m");
  const std::vector<std::string> kept = Predict(follower);
  follower.process.Kill();
  grpc::Status status = Learn(writer, kept);
  // Until it has been silent for ten timeouts.
  for (const absl::Time end = absl::Now() + kLong;
       Reason(status) == "KEEPER_UNREACHABLE" && absl::Now() < end;)
    status = Learn(writer, kept);
  EXPECT_EQ(Reason(status), "UNKNOWN_PREDICTION");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("lost with the server that kept it"));
}

// Stopped, and not ended: it is not taken for dead at once.
TEST_F(LaterLabelsFleetTest, AServerThatDoesNotAnswerLeavesItsPredictionsToBeLearnedLater) {
  Member& writer = servers_.WriterOf("m");
  Member& follower = servers_.FollowerOf("m");
  const std::vector<std::string> kept = Predict(follower);
  follower.process.Signal(SIGSTOP);
  const grpc::Status status = Learn(writer, kept);
  follower.process.Signal(SIGCONT);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(status), "KEEPER_UNREACHABLE");
  EXPECT_EQ(writer.Get("m").report().examples(), 0U);
  grpc::Status again;
  for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
    again = Learn(writer, kept);
    if (again.ok()) break;
  }
  EXPECT_TRUE(again.ok()) << again.error_message();
  EXPECT_EQ(writer.Get("m").report().examples(), 2U);
}

TEST_F(LaterLabelsFleetTest, PredictionsOfAServerThatIsTakenForDeadAreLearnedIfItComesBack) {
  Member& writer = servers_.WriterOf("m");
  Member& follower = servers_.FollowerOf("m");
  const std::vector<std::string> kept = Predict(follower);
  follower.process.Signal(SIGSTOP);
  std::vector<std::string> reasons;
  for (const absl::Time end = absl::Now() + kLong;
       writer.Metric("perceptrond_fleet_servers") != 1 && absl::Now() < end;)
    reasons.push_back(Reason(Learn(writer, kept)));
  const double alive = writer.Metric("perceptrond_fleet_servers");
  reasons.push_back(Reason(Learn(writer, kept)));
  follower.process.Signal(SIGCONT);
  EXPECT_EQ(alive, 1);
  EXPECT_THAT(reasons, ::testing::Each("KEEPER_UNREACHABLE"));
  // The one that comes back may take the partition, as it took the other for dead too.
  grpc::Status again = Learn(writer, kept);
  for (const absl::Time end = absl::Now() + kLong;
       again.error_code() == grpc::StatusCode::UNAVAILABLE && absl::Now() < end;)
    again = Learn(writer, kept);
  EXPECT_TRUE(again.ok()) << again.error_message();
  EXPECT_EQ(servers_.WriterOf("m").Get("m").report().examples(), 2U);
}

TEST_F(LaterLabelsFleetTest,
       PerceptronctlEndsAfterItsTimeoutIfTheServerThatPredictedDoesNotAnswer) {
  Member& writer = servers_.WriterOf("m");
  Member& follower = servers_.FollowerOf("m");
  std::string labels;
  for (const std::string& id : Predict(follower)) absl::StrAppend(&labels, id, ",1\n");
  follower.process.Signal(SIGSTOP);
  const TempDir state;
  const CommandResult result =
      RunCommand(absl::StrCat("XDG_STATE_HOME=", state.path(), " timeout 60 ", PERCEPTRONCTL_BINARY,
                              " --server ", writer.process.address(),
                              " --timeout 5 learn m - --format ids 2>&1"),
                 labels);
  follower.process.Signal(SIGCONT);
  EXPECT_EQ(result.exit_code, 4) << result.out;
  EXPECT_THAT(result.out,
              ::testing::HasSubstr("gave up after 5s without an answer: the server of the "
                                   "fleet that keeps the predictions did not answer"));
  EXPECT_THAT(result.out, ::testing::Not(::testing::HasSubstr("connection lost")));
}

TEST_F(LaterLabelsFleetTest, AFleetRefusesDurablePredictionsAndStreamsOfSeveralModels) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  settings.mutable_stored_predictions()->set_durable(true);
  EXPECT_EQ(BadField(servers_.members()[0].Create("durable", settings)),
            "model.stored_predictions.durable");
  settings.clear_stored_predictions();
  servers_.CreateInFleet("other", settings);
  for (Member* member : {&servers_.WriterOf("m"), &servers_.FollowerOf("m")}) {
    RawLearnStream stream(*member->learning, "m");
    stream.first().add_additional_models("models/other");
    stream.Send(stream.first());
    EXPECT_FALSE(stream.Read());
    EXPECT_EQ(Reason(stream.Finish()), "FLEET_UNSUPPORTED");
  }
}

TEST_F(LaterLabelsFleetTest, PerceptronctlPrintsWhyAFleetRefusesSeveralModelsAndLearnsNothing) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  servers_.CreateInFleet("other", settings);
  const TempDir state;
  const auto learn = [&](Member& member, const std::string& flags) {
    return RunCommand(
        absl::StrCat("XDG_STATE_HOME=", state.path(), " ", PERCEPTRONCTL_BINARY, " --server ",
                     member.process.address(), " learn m ", flags, " - --format text 2>&1"),
        "+1\tfree\n-1\tlunch\n");
  };
  for (Member* member : {&servers_.WriterOf("m"), &servers_.FollowerOf("m")}) {
    const CommandResult refused = learn(*member, "--also other");
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_THAT(refused.out,
                ::testing::HasSubstr("the servers of a fleet learn one model a stream"));
    EXPECT_THAT(refused.out, ::testing::HasSubstr("open a stream for each"));
    EXPECT_EQ(servers_.WriterOf("m").Get("m").report().examples(), 0U);
    EXPECT_EQ(servers_.WriterOf("other").Get("other").report().examples(), 0U);
  }
  const CommandResult alone = learn(servers_.WriterOf("m"), "");
  EXPECT_EQ(alone.exit_code, 0) << alone.out;
  EXPECT_EQ(servers_.WriterOf("m").Get("m").report().examples(), 2U);
}

}  // namespace
}  // namespace perceptrond::testing
