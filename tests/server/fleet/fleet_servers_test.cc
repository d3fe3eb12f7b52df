// Several servers of a fleet: what one of them does at the writer, what all of them know of a change that one makes, and
// what is counted when the writer ends or changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/model/views.h"
#include "tests/server/fleet/fleet_nodes.h"

namespace perceptrond::fleet_server_test {
namespace {

constexpr int kDimension = 4;

grpc::Status Learn(Node& node, const std::string& model, const v1::ExampleColumns& rows) {
  v1::LearnRequest request;
  request.set_model(model);
  *request.mutable_columns() = rows;
  v1::LearnResponse response;
  return Ask(node.front->Connect(), kLearn, request, response);
}

class FleetServersTest : public ::testing::Test {
 protected:
  FleetServersTest() { Create(kModel); }

  Node& writer() { return nodes_.writer(); }
  Node& follower() { return nodes_.follower(); }
  void Create(const std::string& name) { follower().Create(DenseSettings(name, kDimension)); }
  // That the writer has counted.
  uint64_t examples() { return MakeReport(**writer().member.store().Acquire(kModel)).examples(); }
  // Has the follower learn rows, until it has evaluated some that the writer has not counted. Returns how many there were.
  uint64_t LearnUntilSomeAreNotCounted(RowStream& stream) {
    EXPECT_EQ(stream.Ask(StreamedRow()).updates(), 1U);
    // Each is right from now on. Those since the last 250 ms only the follower knows of.
    uint64_t sent = 1;
    do {
      EXPECT_EQ(stream.Ask(StreamedRow()).updates(), 0U);
      ++sent;
    } while (examples() == sent);
    return sent;
  }

  Nodes nodes_{2};
};

TEST_F(FleetServersTest, ACallThatNeedsTheWriterIsAnsweredByItWhereverItArrives) {
  for (Node* const node : {&writer(), &follower()}) {
    v1::LearnResponse learned;
    const grpc::Status status =
        Ask(node->front->Connect(), kLearn, OneRow(node == &writer() ? 1 : -1), learned);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(learned.result().updates(), 1U);
    EXPECT_EQ(learned.result().revision(), node == &writer() ? 1 : 2);
  }
  // A stream that begins at the follower is one at the writer.
  RowStream stream(follower(), kModel);
  EXPECT_EQ(stream.Open().revision(), 2);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FleetServersTest, RowsThatAFollowerEvaluatedAreCountedByAWriterThatDrains) {
  RowStream stream(follower(), kModel);
  stream.Open();
  const uint64_t sent = LearnUntilSomeAreNotCounted(stream);
  writer().drain.Begin();
  EXPECT_EQ(ReasonOf(stream.AwaitEnd()), "WRITER_CHANGED");
  EXPECT_EQ(examples(), sent);
}

TEST_F(FleetServersTest, RowsThatAFollowerEvaluatedAreCountedByAWriterThatHandsThePartitionOver) {
  RowStream stream(follower(), kModel);
  stream.Open();
  const uint64_t sent = LearnUntilSomeAreNotCounted(stream);
  Node& next = follower();
  // As when the partition is given to a server that has joined: its calls go on.
  writer().member.store().fleet()->Leave();
  EXPECT_EQ(ReasonOf(stream.AwaitEnd()), "WRITER_CHANGED");
  EXPECT_TRUE(Eventually([&] { return next.member.writes(); }));
  EXPECT_EQ(MakeReport(**next.member.store().Acquire(kModel)).examples(), sent);
}

TEST_F(FleetServersTest, TheWriterKnowsOfRowsEvaluatedElsewhereWhileTheirStreamIsIdle) {
  RowStream stream(follower(), kModel);
  stream.Open();
  const uint64_t sent = LearnUntilSomeAreNotCounted(stream);
  EXPECT_TRUE(Eventually([&] { return examples() == sent; }));
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FleetServersTest, InRelaxedOrderEveryRowIsCountedOnce) {
  v1::LearnStreamRequest first = RowStream::First(kModel, "p");
  first.set_order(v1::STREAM_ORDER_RELAXED);
  RowStream stream(follower(), first);
  stream.Open();
  constexpr int kMessages = 500;
  constexpr int kWindow = 5;
  std::mt19937 random(3);
  uint64_t counted = 0;
  uint64_t updates = 0;
  uint64_t duplicates = 0;
  const auto count = [&] {
    const v1::LearnResult result = stream.Result();
    counted += result.examples();
    updates += result.updates();
    duplicates += result.duplicates();
  };
  for (int i = 0; i < kMessages; ++i) {
    // One in twenty is a mistake.
    stream.Send(StreamedRow(random() % 20 == 0 ? -1 : 1));
    if (i >= kWindow) count();
  }
  v1::LearnStreamRequest again = StreamedRow();
  again.set_first_offset(kMessages - 1);
  stream.Send(again);
  for (int i = 0; i <= kWindow; ++i) count();
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(counted, uint64_t{kMessages});
  EXPECT_EQ(duplicates, 1U);
  EXPECT_GT(updates, 0U);
  EXPECT_GT(follower().fleet->rows().first, 0U);
  const v1::Model model = follower().Get(kModel);
  EXPECT_EQ(model.report().examples(), counted);
  EXPECT_EQ(model.report().updates(), updates);
}

TEST_F(FleetServersTest, AProducersNewerStreamEndsItsOlderOneOnAnotherServer) {
  RowStream older(follower(), kModel, "p");
  older.Open();
  EXPECT_EQ(older.Ask(StreamedRow()).updates(), 1U);
  EXPECT_EQ(older.Ask(StreamedRow()).updates(), 0U);
  RowStream newer(writer(), kModel, "p");
  const int64_t next = newer.Open().next_offset();
  // The second row may not have been counted yet.
  EXPECT_THAT(next, ::testing::AnyOf(1, 2));
  const grpc::Status ended = older.AwaitEnd();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ReasonOf(ended), "PRODUCER_SUPERSEDED");
  v1::LearnStreamRequest request = StreamedRow();
  request.set_first_offset(next);
  EXPECT_EQ(newer.Ask(request).acknowledged_offset(), next);
  EXPECT_TRUE(newer.Finish().ok());
}

TEST_F(FleetServersTest, AFrozenModelLearnsNothingAnywhere) {
  RowStream stream(follower(), kModel);
  stream.Open();
  EXPECT_EQ(stream.Ask(StreamedRow()).updates(), 1U);
  v1::FreezeModelRequest freeze;
  freeze.set_name(kModel);
  grpc::ClientContext context;
  v1::Model frozen;
  ASSERT_TRUE(follower().models->FreezeModel(&context, freeze, &frozen).ok());
  // Each server hears of it a moment later.
  v1::LearnResult result;
  EXPECT_TRUE(Eventually([&] { return (result = stream.Ask(StreamedRow())).has_error(); }));
  EXPECT_EQ(ReasonOf(FromProto(result.error())), "MODEL_FROZEN");
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FleetServersTest, AListSaysSinceWhenTheStateOfAModelThatAnotherServerWritesMayBeOld) {
  const auto listed = [](Node& node) {
    grpc::ClientContext context;
    v1::ListModelsResponse response;
    EXPECT_TRUE(node.models->ListModels(&context, v1::ListModelsRequest(), &response).ok());
    EXPECT_EQ(response.models_size(), 1);
    return response.models(0);
  };
  for (Node* const node : {&writer(), &follower()})
    ASSERT_OK(node->member.store().Acquire(kModel).status());
  EXPECT_FALSE(listed(writer()).has_stale_since());
  EXPECT_TRUE(listed(follower()).has_stale_since());
  // What is asked of one model is relayed to the writer.
  EXPECT_FALSE(follower().Get(kModel).has_stale_since());
}

TEST_F(FleetServersTest, APredictionWaitsForTheRevisionThatItAsksFor) {
  RowStream learning(writer(), kModel);
  learning.Open();
  v1::PredictRequest request;
  request.set_model(kModel);
  *request.mutable_examples() = OneRow().examples();
  v1::PredictResponse response;
  grpc::ClientContext stream_context;
  const auto stream = follower().predictions->PredictStream(&stream_context);
  int64_t revision = 0;
  for (int i = 0; i < 20; ++i) {
    // Asked for before it exists; the message after it keeps its place.
    request.set_min_revision(revision + 1);
    ASSERT_TRUE(stream->Write(request));
    request.set_min_revision(0);
    ASSERT_TRUE(stream->Write(request));
    // From 1 to -1 and back takes two updates.
    const int label = i % 2 == 0 ? 1 : -1;
    learning.Ask(StreamedRow(label));
    const int64_t learned = learning.Ask(StreamedRow(label)).revision();
    ASSERT_GT(learned, revision);
    for (int answer = 0; answer < 2; ++answer) {
      ASSERT_TRUE(stream->Read(&response));
      EXPECT_FALSE(response.has_error()) << response.error().message();
      EXPECT_GT(response.revision(), revision);
    }
    grpc::ClientContext context;
    request.set_min_revision(learned);
    const grpc::Status status = follower().predictions->Predict(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_GE(response.revision(), learned);
    revision = learned;
  }
  // A stream that is cancelled does not wait.
  request.set_min_revision(1'000'000);
  ASSERT_TRUE(stream->Write(request));
  stream_context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // Nor does a call beyond its deadline, also the first one for a model that is not in memory.
  Create("models/unloaded");
  for (const char* const model : {kModel, "models/unloaded"}) {
    request.set_model(model);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(100)));
    EXPECT_EQ(follower().predictions->Predict(&context, request, &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(learning.Finish().ok());
}

// What becomes of a model's past, its copies and its names.
class FleetHistoryTest : public FleetServersTest {
 protected:
  // Rows of random labels, which are mistakes mostly.
  void LearnSome(const std::string& model) {
    v1::ExampleColumns columns;
    columns.set_dense_width(kDimension);
    std::normal_distribution<float> normal;
    for (int row = 0; row < 50; ++row) {
      columns.add_labels(random_() % 2 == 0 ? 1 : -1);
      for (int i = 0; i < kDimension; ++i) columns.add_values(normal(random_));
    }
    const grpc::Status status = Learn(follower(), model, columns);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  // The scores that a server's own copy gives at this revision or later: its weights.
  static std::vector<float> Scores(Node& node, const std::string& model, int64_t revision) {
    v1::PredictRequest request;
    request.set_model(model);
    request.set_min_revision(revision);
    for (uint32_t i = 0; i < kDimension; ++i) {
      v1::Example& example = *request.add_examples();
      example.mutable_sparse()->add_indices(i);
      example.mutable_sparse()->add_values(1);
    }
    grpc::ClientContext context;
    v1::PredictResponse response;
    const grpc::Status status = node.predictions->Predict(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.scores().begin(), response.scores().end()};
  }
  std::vector<float> ScoresNow(const std::string& model) {
    const int64_t revision = follower().Get(model).revision();
    std::vector<float> scores = Scores(writer(), model, revision);
    EXPECT_EQ(Scores(follower(), model, revision), scores);
    return scores;
  }
  void RollBack(const v1::RollBackModelRequest& request, const std::vector<float>& expected) {
    const int64_t before = follower().Get(kModel).revision();
    EXPECT_NE(ScoresNow(kModel), expected);
    grpc::ClientContext context;
    v1::Model after;
    const grpc::Status status = follower().history->RollBackModel(&context, request, &after);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(after.revision(), before + 1);
    EXPECT_EQ(ScoresNow(kModel), expected);
  }
  v1::Alias SetAlias(Node& node, const std::string& model) {
    v1::UpdateAliasRequest request;
    request.mutable_alias()->set_name("aliases/x");
    request.mutable_alias()->set_model(model);
    request.set_allow_missing(true);
    grpc::ClientContext context;
    v1::Alias made;
    const grpc::Status status = node.aliases->UpdateAlias(&context, request, &made);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return made;
  }
  bool AllFollowTheAliasTo(const std::string& model) {
    return Eventually([&] {
      return std::all_of(nodes_.all().begin(), nodes_.all().end(), [&](const auto& node) {
        v1::GetAliasRequest request;
        request.set_name("aliases/x");
        grpc::ClientContext context;
        v1::Alias found;
        return node->aliases->GetAlias(&context, request, &found).ok() && found.model() == model;
      });
    });
  }

  std::mt19937 random_{5};
};

TEST_F(FleetHistoryTest, AModelThatAnyServerRollsBackIsSoOnAll) {
  LearnSome(kModel);
  v1::CreateSnapshotRequest keep;
  keep.set_model(kModel);
  keep.set_snapshot_id("k");
  grpc::ClientContext context;
  v1::Snapshot kept;
  ASSERT_TRUE(follower().history->CreateSnapshot(&context, keep, &kept).ok());
  const std::vector<float> at_snapshot = ScoresNow(kModel);
  LearnSome(kModel);
  const int64_t later = follower().Get(kModel).revision();
  const std::vector<float> at_later = ScoresNow(kModel);
  LearnSome(kModel);
  v1::RollBackModelRequest request;
  request.set_model(kModel);
  request.set_snapshot_id("k");
  RollBack(request, at_snapshot);
  // Copies follow on.
  LearnSome(kModel);
  request.clear_snapshot_id();
  request.set_revision(later);
  RollBack(request, at_later);
}

TEST_F(FleetHistoryTest, ACopyOrAFileOfAModelMadeAnywhereIsEqualOnAllServersAndLearnsByItself) {
  LearnSome(kModel);
  const v1::Model source = follower().Get(kModel);
  const std::vector<float> scores = ScoresNow(kModel);
  v1::CopyModelRequest copy;
  copy.set_name(kModel);
  copy.set_new_name("models/copy");
  copy.set_request_id("once");
  // The second is the same request.
  for (Node* const node : {&follower(), &writer()}) {
    grpc::ClientContext context;
    v1::Model made;
    const grpc::Status status = node->history->CopyModel(&context, copy, &made);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(made.revision(), source.revision());
  }
  v1::ExportModelRequest out;
  out.set_name(kModel);
  grpc::ClientContext out_context;
  const auto reader = follower().history->ExportModel(&out_context, out);
  std::string file;
  for (v1::ExportModelResponse piece; reader->Read(&piece);) file += piece.piece();
  ASSERT_TRUE(reader->Finish().ok());
  grpc::ClientContext in_context;
  v1::Model imported;
  const auto importer = follower().history->ImportModel(&in_context, &imported);
  v1::ImportModelRequest in;
  in.set_new_name("models/imported");
  for (size_t at = 0; at < file.size(); at += 100) {
    in.set_piece(file.substr(at, 100));
    ASSERT_TRUE(importer->Write(in));
  }
  importer->WritesDone();
  const grpc::Status status = importer->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  for (const char* const name : {"models/copy", "models/imported"}) {
    EXPECT_EQ(ScoresNow(name), scores) << name;
    EXPECT_EQ(follower().Get(name).report().examples(), source.report().examples()) << name;
    LearnSome(name);
    EXPECT_NE(ScoresNow(name), scores) << name;
  }
  EXPECT_EQ(follower().Get(kModel).revision(), source.revision());
}

TEST_F(FleetHistoryTest, AnAliasThatAnyServerMovesAndANewNameAreKnownToAll) {
  Create("models/two");
  SetAlias(follower(), kModel);
  EXPECT_TRUE(AllFollowTheAliasTo(kModel));
  EXPECT_EQ(SetAlias(writer(), "models/two").previous_model(), kModel);
  EXPECT_TRUE(AllFollowTheAliasTo("models/two"));
  const std::string uid = follower().Get("models/two").uid();
  v1::RenameModelRequest request;
  request.set_name("models/two");
  request.set_new_name("models/three");
  grpc::ClientContext context;
  v1::Model renamed;
  const grpc::Status status = follower().history->RenameModel(&context, request, &renamed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(AllFollowTheAliasTo("models/three"));
  for (const auto& node : nodes_.all()) EXPECT_EQ(node->Get("models/three").uid(), uid);
}

// Labels that come after their predictions, at any server.
class FleetLabelsTest : public ::testing::Test {
 protected:
  FleetLabelsTest() {
    v1::Model settings = NamedSettings(kModel);
    settings.mutable_stored_predictions();
    nodes_.writer().Create(settings);
  }
  // The ids of two predictions.
  static std::vector<std::string> Predict(Node& node) {
    v1::PredictRequest request;
    request.set_model(kModel);
    request.set_include_prediction_ids(true);
    for (const char* const name : {"free", "lunch"})
      request.add_examples()->mutable_named()->add_names(name);
    grpc::ClientContext context;
    v1::PredictResponse response;
    const grpc::Status status = node.predictions->Predict(&context, request, &response);
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
  uint64_t examples() { return nodes_.writer().Get(kModel).report().examples(); }

  Nodes nodes_{2};
};

TEST_F(FleetLabelsTest, AnyServerLearnsALabelWhoeverKeepsThePrediction) {
  Node& writer = nodes_.writer();
  Node& follower = nodes_.follower();
  const std::vector<std::string> kept = Predict(follower);
  // On a stream of the server that keeps them, which forwards them.
  RowStream stream(follower, kModel, "p");
  stream.Open();
  v1::LearnStreamRequest message;
  *message.mutable_columns() = Labels(kept);
  const v1::LearnResult result = stream.Ask(message);
  EXPECT_EQ(result.examples(), 2U);
  EXPECT_GT(result.updates(), 0U);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(ReasonOf(Learn(writer, kModel, Labels({kept[0]}))), "UNKNOWN_PREDICTION");
  // At the server that writes, and the other way round.
  EXPECT_TRUE(Learn(writer, kModel, Labels(Predict(follower))).ok());
  EXPECT_TRUE(Learn(follower, kModel, Labels(Predict(writer))).ok());
  EXPECT_EQ(examples(), 6U);
  EXPECT_TRUE(
      Eventually([&] { return follower.member.store().predictions().stats().waiting == 0; }));
}

TEST_F(FleetLabelsTest, PredictionsOfAServerThatDoesNotAnswerStayAndThoseOfNoMemberAreUnknown) {
  const std::vector<std::string> kept = Predict(nodes_.follower());
  nodes_.follower().fleet->Stop();
  const grpc::Status unreachable = Learn(nodes_.writer(), kModel, Labels(kept));
  EXPECT_EQ(unreachable.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(unreachable), "KEEPER_UNREACHABLE");
  EXPECT_EQ(examples(), 0U);
  Node stranger;
  v1::Model settings = NamedSettings(kModel);
  settings.mutable_stored_predictions();
  stranger.Create(settings);
  EXPECT_EQ(ReasonOf(Learn(nodes_.writer(), kModel, Labels(Predict(stranger)))),
            "UNKNOWN_PREDICTION");
}

TEST_F(FleetLabelsTest, AFleetRefusesDurablePredictionsAndStreamsOfSeveralModels) {
  v1::CreateModelRequest durable;
  durable.set_model_id("durable");
  durable.mutable_model()->mutable_feature_space()->mutable_named();
  durable.mutable_model()->mutable_stored_predictions()->set_durable(true);
  grpc::ClientContext context;
  v1::Model created;
  const grpc::Status refused = nodes_.follower().models->CreateModel(&context, durable, &created);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_details(), ::testing::HasSubstr("model.stored_predictions.durable"));
  nodes_.follower().Create(NamedSettings("models/other"));
  for (const auto& node : nodes_.all()) {
    v1::LearnStreamRequest first = RowStream::First(kModel, "");
    first.add_additional_models("models/other");
    RowStream stream(*node, first);
    EXPECT_EQ(ReasonOf(stream.AwaitEnd()), "FLEET_UNSUPPORTED");
  }
}

}  // namespace
}  // namespace perceptrond::fleet_server_test
