// Aliases, kept snapshots, rollbacks and new names in a fleet: made on any server, and the same on all.
#include "perceptron/v1/alias_service.grpc.pb.h"
#include "perceptron/v1/history_service.grpc.pb.h"
#include "tests/integration/followed_streams_fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond::testing {
namespace {

class FleetHistory : public FollowedStreams {
 protected:
  static v1::Alias SetAlias(Member& member, const std::string& alias, const std::string& model) {
    v1::UpdateAliasRequest request;
    request.mutable_alias()->set_name("aliases/" + alias);
    request.mutable_alias()->set_model("models/" + model);
    request.set_allow_missing(true);
    grpc::ClientContext context;
    v1::Alias made;
    const grpc::Status status =
        v1::AliasService::NewStub(member.channel)->UpdateAlias(&context, request, &made);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return made;
  }
  // The model that the server has for the alias; "" if it has none.
  static std::string ModelOf(Member& member, const std::string& alias) {
    v1::GetModelRequest request;
    request.set_name("aliases/" + alias);
    grpc::ClientContext context;
    v1::Model model;
    return member.models->GetModel(&context, request, &model).ok() ? model.name() : "";
  }
  static grpc::Status Keep(Member& member, const std::string& id, const std::string& snapshot) {
    v1::CreateSnapshotRequest request;
    request.set_model("models/" + id);
    request.set_snapshot_id(snapshot);
    grpc::ClientContext context;
    v1::Snapshot made;
    return v1::HistoryService::NewStub(member.channel)->CreateSnapshot(&context, request, &made);
  }
  static grpc::Status RollBack(Member& member, const std::string& id, const std::string& snapshot,
                               v1::Model* model) {
    v1::RollBackModelRequest request;
    request.set_model("models/" + id);
    request.set_snapshot_id(snapshot);
    grpc::ClientContext context;
    return v1::HistoryService::NewStub(member.channel)->RollBackModel(&context, request, model);
  }
  // The scores that a server's own copy gives at this revision or later.
  static std::vector<float> Scores(Member& member, const std::string& id, int64_t revision) {
    v1::PredictRequest request;
    request.set_model("models/" + id);
    request.set_min_revision(revision);
    for (int i = 0; i < kFeatures; ++i) {
      v1::Example& example = *request.add_examples();
      example.mutable_sparse()->add_indices(static_cast<uint32_t>(i));
      example.mutable_sparse()->add_values(1);
    }
    grpc::ClientContext context;
    v1::PredictResponse response;
    const grpc::Status status = member.predictions->Predict(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.scores().begin(), response.scores().end()};
  }
};

TEST_P(FleetHistory, IsTheSameOnEveryServer) {
  const Rule& rule = GetParam();
  const Messages all(rule);
  servers().CreateInFleet("h", SettingsOf(rule));
  Member& writer = servers().WriterOf("h");
  Member& follower = servers().FollowerOf("h");
  std::vector<v1::LearnStreamRequest> messages = all.messages;
  messages.resize(40);
  Learn(follower, "h", rule, messages, 1, "first");
  const grpc::Status kept = Keep(follower, "h", "k");
  ASSERT_TRUE(kept.ok()) << kept.error_message();
  const int64_t revision = follower.Get("h").revision();
  const std::vector<float> scores = Scores(writer, "h", revision);
  Learn(follower, "h", rule, messages, 5, "second");
  const v1::Model before = follower.Get("h");
  ASSERT_GT(before.revision(), revision);
  v1::Model after;
  const grpc::Status rolled_back = RollBack(follower, "h", "k", &after);
  ASSERT_TRUE(rolled_back.ok()) << rolled_back.error_message();
  EXPECT_EQ(after.revision(), before.revision() + 1);
  for (Member& member : servers().members())
    EXPECT_EQ(Scores(member, "h", after.revision()), scores);
  // Copies follow on.
  Learn(follower, "h", rule, messages, 5, "third");
  const int64_t last = follower.Get("h").revision();
  EXPECT_EQ(Scores(follower, "h", last), Scores(writer, "h", last));
  EXPECT_NE(Scores(follower, "h", last), scores);
}

TEST_P(FleetHistory, AnAliasThatOneServerMovesIsFollowedByAll) {
  const Rule& rule = GetParam();
  for (const char* id : {"one", "two"}) servers().CreateInFleet(id, SettingsOf(rule));
  Member& writer = servers().WriterOf("one");
  Member& follower = servers().FollowerOf("one");
  SetAlias(follower, "x.y", "one");
  EXPECT_EQ(ModelOf(follower, "x.y"), "models/one");
  EXPECT_TRUE(Eventually([&] { return ModelOf(writer, "x.y") == "models/one"; }));
  // By the alias, from a server that does not write the model.
  v1::LearnRequest learn;
  learn.set_model("aliases/x.y");
  v1::Example& example = *learn.add_examples();
  example.set_label(1);
  example.mutable_sparse()->add_indices(0);
  example.mutable_sparse()->add_values(1);
  grpc::ClientContext context;
  v1::LearnResponse learned;
  const grpc::Status status = follower.learning->Learn(&context, learn, &learned);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(follower.Get("one").revision(), 1);
  EXPECT_EQ(SetAlias(writer, "x.y", "two").previous_model(), "models/one");
  EXPECT_TRUE(Eventually([&] { return ModelOf(follower, "x.y") == "models/two"; }));
}

TEST_P(FleetHistory, ARenamedModelIsFoundByItsNewName) {
  const Rule& rule = GetParam();
  servers().CreateInFleet("old", SettingsOf(rule));
  Member& writer = servers().WriterOf("old");
  Member& follower = servers().FollowerOf("old");
  SetAlias(writer, "name", "old");
  const std::string uid = follower.Get("old").uid();
  v1::RenameModelRequest request;
  request.set_name("models/old");
  request.set_new_name("models/new");
  grpc::ClientContext context;
  v1::Model renamed;
  const grpc::Status status =
      v1::HistoryService::NewStub(follower.channel)->RenameModel(&context, request, &renamed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(renamed.uid(), uid);
  for (Member& member : servers().members()) {
    EXPECT_EQ(member.Get("new").uid(), uid);
    EXPECT_TRUE(Eventually([&] { return ModelOf(member, "name") == "models/new"; }));
  }
}

TEST_P(FleetHistory, ARevisionBetweenSnapshotsIsRestoredFromAnyServer) {
  const Rule& rule = GetParam();
  const Messages all(rule);
  servers().CreateInFleet("revised", SettingsOf(rule));
  Member& writer = servers().WriterOf("revised");
  Member& follower = servers().FollowerOf("revised");
  const grpc::Status kept = Keep(follower, "revised", "k");
  ASSERT_TRUE(kept.ok()) << kept.error_message();
  std::vector<v1::LearnStreamRequest> messages = all.messages;
  messages.resize(40);
  Learn(follower, "revised", rule, messages, 1, "first");
  const int64_t revision = follower.Get("revised").revision();
  const std::vector<float> scores = Scores(writer, "revised", revision);
  Learn(follower, "revised", rule, messages, 5, "second");
  const int64_t newest = follower.Get("revised").revision();
  ASSERT_GT(newest, revision);
  v1::RollBackModelRequest request;
  request.set_model("models/revised");
  request.set_revision(revision);
  grpc::ClientContext context;
  v1::Model after;
  const grpc::Status rolled_back =
      v1::HistoryService::NewStub(follower.channel)->RollBackModel(&context, request, &after);
  ASSERT_TRUE(rolled_back.ok()) << rolled_back.error_message();
  EXPECT_EQ(after.revision(), newest + 1);
  for (Member& member : servers().members())
    EXPECT_EQ(Scores(member, "revised", after.revision()), scores);
}

TEST_P(FleetHistory, ACopyMadeOnAnyServerIsEqualOnAllAndLearnsByItself) {
  const Rule& rule = GetParam();
  const Messages all(rule);
  servers().CreateInFleet("source", SettingsOf(rule));
  Member& writer = servers().WriterOf("source");
  Member& follower = servers().FollowerOf("source");
  std::vector<v1::LearnStreamRequest> messages = all.messages;
  messages.resize(40);
  Learn(follower, "source", rule, messages, 1, "first");
  const v1::Model source = follower.Get("source");
  const std::vector<float> scores = Scores(writer, "source", source.revision());
  v1::CopyModelRequest copy;
  copy.set_name("models/source");
  copy.set_new_name("models/copy");
  copy.set_request_id("once");
  for (Member* member : {&follower, &writer}) {
    // The second is the same request.
    grpc::ClientContext context;
    v1::Model made;
    const grpc::Status status =
        v1::HistoryService::NewStub(member->channel)->CopyModel(&context, copy, &made);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(made.revision(), source.revision());
  }
  v1::ExportModelRequest out;
  out.set_name("models/source");
  const auto history = v1::HistoryService::NewStub(follower.channel);
  grpc::ClientContext out_context;
  const auto reader = history->ExportModel(&out_context, out);
  std::string file;
  for (v1::ExportModelResponse piece; reader->Read(&piece);) file += piece.piece();
  ASSERT_TRUE(reader->Finish().ok());
  const auto import = [&] {
    v1::ImportModelRequest in;
    in.set_new_name("models/imported");
    v1::Model imported;
    grpc::ClientContext in_context;
    const auto importer = history->ImportModel(&in_context, &imported);
    for (size_t at = 0; at < file.size(); at += 100) {
      in.set_piece(file.substr(at, 100));
      if (!importer->Write(in)) return importer->Finish();
    }
    importer->WritesDone();
    return importer->Finish();
  };
  grpc::Status status = import();
  // A slow server may lose its partitions to another meanwhile.
  for (int i = 0; i < 100 && status.error_code() == grpc::StatusCode::UNAVAILABLE; ++i)
    status = import();
  ASSERT_TRUE(status.ok()) << status.error_message();
  for (const char* id : {"copy", "imported"}) {
    for (Member& member : servers().members()) {
      EXPECT_EQ(Scores(member, id, source.revision()), scores) << id;
      EXPECT_EQ(member.Get(id).report().examples(), source.report().examples()) << id;
    }
    Learn(follower, id, rule, messages, 5, "second");
    const int64_t last = follower.Get(id).revision();
    ASSERT_GT(last, source.revision()) << id;
    EXPECT_EQ(Scores(follower, id, last), Scores(writer, id, last)) << id;
  }
  EXPECT_EQ(follower.Get("source").revision(), source.revision());
}

INSTANTIATE_TEST_SUITE_P(Perceptron, FleetHistory,
                         ::testing::Values(Rule{.name = "history", .set = [](v1::Model&) {}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perceptrond::testing
