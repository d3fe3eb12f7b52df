// A server of a fleet between its clients and other servers: which calls it passes on, what clients hear when the writer
// cannot be reached, changes or misbehaves, and what it takes from other servers. Several servers: what one of them does at the writer,
// what all of them know of a change that one makes, and what is counted when the writer ends or changes.
#include "server/fleet/fleet_server.h"

#include <fstream>
#include <random>

#include "core/model/views.h"
#include "perceptron/v1/alias_service.pb.h"
#include "perceptron/v1/history_service.pb.h"
#include "server/access/access_control.h"
#include "server/fleet/segment_call.h"
#include "tests/server/fleet/fleet_nodes.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::fleet_server_test {
namespace {

using ::testing::HasSubstr;

// The status of a stream of one message at this server.
grpc::Status StreamOnce(Node& node) {
  ClientCall call(node.front->Connect(), kLearnStream);
  call.Write(FirstOfStream());
  std::string answer;
  EXPECT_FALSE(call.Read(answer));
  return call.Finish();
}

// Takes a message, answers with these bytes, and waits for the end.
class AnswersBytes final : public RecordingReactor {
 public:
  AnswersBytes(Call& call, CallCounts& counts, const std::string& answer)
      : RecordingReactor(counts), call_(call), answer_(ToBytes(answer)) {}
  void Start() { call_.StartRead(&message_); }
  void OnReadDone(bool /*ok*/) override { call_.StartWrite(answer_); }
  void OnCancel() override {
    RecordingReactor::OnCancel();
    call_.Finish(grpc::Status::CANCELLED);
  }

 private:
  Call& call_;
  grpc::ByteBuffer message_;
  const grpc::ByteBuffer answer_;
};

// Ends each call with OK and without an answer.
void EndAtOnce(Call& call) {
  call.Bind(std::make_shared<Reactor>());
  call.Finish(grpc::Status::OK);
}

// One member, and a writer that behaves as the test says.
class FleetServerTest : public ::testing::Test {
 protected:
  FleetServerTest() { node_.member.Create(kModel); }
  // The other server writes, and has this method for every path.
  void WriteThere(Call::Method method) {
    method_ = std::move(method);
    node_.member.WriteAt(absl::StrCat("127.0.0.1:", other_.port()));
  }

  CallCounts counts_;
  Call::Method method_;
  RpcServer other_{All(method_), /*threads=*/2};
  Node node_;
};

TEST_F(FleetServerTest, APredictionIsAnsweredWhereItArrivesWhateverTheWriterDoes) {
  WriteThere(Make<UntilCancel>(counts_));
  EXPECT_EQ(node_.api.Call("PredictionService/Predict", "model: 'models/m' examples {}"), "OK");
  EXPECT_EQ(counts_.begun(), 0);
}

TEST_F(FleetServerTest, LearningFailsWhileTheWriterCannotBeReached) {
  node_.member.WriteAt(OwnAddress());
  EXPECT_EQ(node_.api.Call("LearningService/Learn", OneRow().ShortDebugString()),
            "UNAVAILABLE WRITER_UNREACHABLE");
  EXPECT_EQ(Outcome(StreamOnce(node_)), "UNAVAILABLE WRITER_UNREACHABLE");
}

TEST_F(FleetServerTest, CallsThatWaitForTheWriterEndSoonAfterThereIsAnotherOrTheServerStops) {
  for (const bool stops : {false, true}) {
    WriteThere(Make<UntilCancel>(counts_));
    ClientCall stream(node_.front->Connect(), kLearnStream);
    stream.Write(FirstOfStream());
    ClientCall unary(node_.front->Connect(), kLearn);
    unary.Write(OneRow().SerializeAsString());
    ASSERT_TRUE(counts_.AwaitBegun(stops ? 4 : 2));
    stops ? node_.fleet->Stop() : void(node_.member.WriteAt(OwnAddress()));
    for (ClientCall* const call : {&stream, &unary})
      EXPECT_EQ(Reason(call->Finish()), stops ? "DRAINING" : "WRITER_CHANGED");
    EXPECT_TRUE(counts_.AwaitCancelled(stops ? 4 : 2));
  }
}

TEST_F(FleetServerTest, AnAnswerThatIsNoneEndsTheStream) {
  WriteThere([this](Call& call) {
    const auto reactor = std::make_shared<AnswersBytes>(call, counts_, "\xff");
    call.Bind(reactor);
    reactor->Start();
  });
  const grpc::Status status = StreamOnce(node_);
  EXPECT_EQ(Reason(status), "WRITER_UNREACHABLE");
  EXPECT_THAT(status.error_message(), HasSubstr("malformed"));
  EXPECT_TRUE(counts_.AwaitCancelled(1));
}

TEST_F(FleetServerTest, AWriterThatEndsAStreamWithoutAnswersHasNotLearnedIt) {
  WriteThere(EndAtOnce);
  EXPECT_EQ(Outcome(StreamOnce(node_)), "UNAVAILABLE WRITER_UNREACHABLE");
}

// The status of a stream of these segments from another server.
grpc::Status SendSegments(Node& node, const std::vector<std::string>& segments) {
  ClientCall call(node.ConnectToFleetPort(), kSegmentsPath);
  for (const std::string& segment : segments) call.Write(segment);
  call.WritesDone();
  std::string answer;
  while (call.Read(answer)) {
  }
  return call.Finish();
}

std::string FirstSegment() {
  fleet::Segment segment;
  segment.set_request(FirstOfStream());
  return segment.SerializeAsString();
}

TEST_F(FleetServerTest, AnotherServersSegmentsAreCheckedAsAClientsMessagesAre) {
  node_.member.WriteHere();
  EXPECT_TRUE(SendSegments(node_, {FirstSegment()}).ok());
  EXPECT_EQ(Reason(SendSegments(node_, {"\xff"})), "MALFORMED_MESSAGE");
  fleet::Segment segment;
  segment.set_request("\xff");
  EXPECT_EQ(Reason(SendSegments(node_, {segment.SerializeAsString()})), "MALFORMED_MESSAGE");
  // Rows that were evaluated before the stream was opened.
  segment.set_request(FirstOfStream());
  segment.mutable_evaluated()->set_rows(1);
  EXPECT_EQ(Reason(SendSegments(node_, {segment.SerializeAsString()})), "MALFORMED_MESSAGE");
  // Rows that do not begin at the producer's position.
  segment.mutable_evaluated()->add_correct_rows()->set_examples(1);
  segment.mutable_evaluated()->set_first_offset(5);
  segment.clear_request();
  EXPECT_EQ(Reason(SendSegments(node_, {FirstSegment(), segment.SerializeAsString()})),
            "PRODUCER_SUPERSEDED");
}

TEST(FleetServerDrainTest, AWriterThatDrainsWaitsForNoSenderThatIsSilent) {
  Node node(FleetMember::NewJournal(), absl::Milliseconds(1));
  node.member.Create(kModel);
  node.member.WriteHere();
  ClientCall call(node.ConnectToFleetPort(), kSegmentsPath);
  ASSERT_TRUE(call.Write(FirstSegment()));
  EXPECT_TRUE(ReadAnswer(call).has_opened());
  node.drain.Begin();
  std::string asked;
  while (call.Read(asked)) {
  }
  EXPECT_EQ(Reason(call.Finish()), "DRAINING");
}

TEST_F(FleetServerTest, ASegmentMayBeLargerThanAMessageButNotWithoutLimit) {
  node_.member.WriteHere();
  fleet::Segment segment;
  segment.set_request(FirstOfStream());
  segment.mutable_evaluated()->add_stream_names()->set_text(std::string(kMostBytes, 'x'));
  EXPECT_EQ(Reason(SendSegments(node_, {segment.SerializeAsString()})), "MALFORMED_MESSAGE");
  segment.mutable_evaluated()->mutable_stream_names(0)->set_text(std::string(5 << 20, 'x'));
  EXPECT_EQ(Reason(SendSegments(node_, {segment.SerializeAsString()})), "MESSAGE_TOO_LARGE");
  // By gRPC itself.
  segment.mutable_evaluated()->mutable_stream_names(0)->set_text(std::string(20 << 20, 'x'));
  EXPECT_EQ(Outcome(SendSegments(node_, {segment.SerializeAsString()})), "RESOURCE_EXHAUSTED");
}

TEST_F(FleetServerTest, AServerThatDoesNotWriteTheModelTakesNoSegmentsOfIt) {
  EXPECT_EQ(Outcome(SendSegments(node_, {FirstSegment()})), "UNAVAILABLE NOT_THE_WRITER");
}

// At its fleet's port a server passes nothing on: two that each take the other for the writer would do so for ever.
TEST_F(FleetServerTest, ACallFromAnotherServerIsNotPassedOnAgain) {
  WriteThere(Make<UntilCancel>(counts_));
  v1::LearnResponse response;
  const grpc::Status status = Ask(node_.ConnectToFleetPort(), kLearn, OneRow(), response);
  EXPECT_EQ(Reason(status), "NOT_THE_WRITER");
  EXPECT_EQ(counts_.begun(), 0);
}

TEST_F(FleetServerTest, IdsAndComponentsAreThoseOfThePrincipalThatAnotherServerStates) {
  node_.member.WriteHere();
  const TempDir dir;
  std::ofstream(dir.path() + "/access")
      << "principal { name: 'alice' former_name: 'old' certificate: 'cn:a' "
         "allow { role: ADMIN models: '' } } "
         "principal { name: 'bob' certificate: 'cn:b' allow { role: ADMIN models: 'b-' } }";
  const auto access = AccessControl::Load(dir.path() + "/access");
  ASSERT_OK(access.status());
  const std::string address = OwnAddress();
  const auto server =
      FleetServer::Make(node_.backend, node_.router, {address, "", "", "", access->get()});
  ASSERT_OK(server.status());
  ASSERT_OK((*server)->Listen());
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  const auto learn = [&](const std::string& principal, int64_t offset) {
    grpc::ClientContext context;
    context.AddMetadata(kPrincipal, principal);
    v1::LearnRequest request = OneRow();
    request.set_producer_id("p");
    request.set_first_offset(offset);
    v1::LearnResponse response;
    return Outcome(v1::LearningService::NewStub(channel)->Learn(&context, request, &response));
  };
  const auto create = [&](const std::string& principal) {
    grpc::ClientContext context;
    context.AddMetadata(kPrincipal, principal);
    const auto request = FromText<v1::CreateModelRequest>(
        "model_id: 'b-c' model { feature_space { composition { inputs { model: 'models/m' } } } }");
    v1::Model model;
    return Outcome(v1::ModelService::NewStub(channel)->CreateModel(&context, request, &model));
  };
  constexpr char kDenied[] = "PERMISSION_DENIED PERMISSION_DENIED";
  EXPECT_EQ(learn("old", 0), "OK");
  EXPECT_EQ(learn("bob", 1), kDenied);
  EXPECT_EQ(learn("alice", 1), "OK");
  EXPECT_EQ(create("bob"), kDenied);
  // This server's file does not have it.
  EXPECT_EQ(create("carol"), kDenied);
  EXPECT_EQ(create("alice"), "OK");
}

TEST_F(FleetServerTest, AnAddressInUseAndMissingFilesAreNamed) {
  const auto second = FleetServer::Make(node_.backend, node_.router, {node_.address, "", "", ""});
  ASSERT_OK(second.status());
  const absl::Status used = (*second)->Listen();
  EXPECT_TRUE(absl::IsUnavailable(used)) << used;
  EXPECT_THAT(used.message(), HasSubstr(node_.address));
  const absl::Status missing =
      FleetServer::Make(node_.backend, node_.router,
                        {node_.address, "/no/such/cert.pem", "/no/such/key.pem", "/no/such/ca.pem"})
          .status();
  EXPECT_THAT(missing.message(), HasSubstr("/no/such/cert.pem"));
}

constexpr int kDimension = 4;

std::string Learn(Node& node, const std::string& model, const v1::ExampleColumns& rows) {
  v1::LearnRequest request;
  request.set_model(model);
  *request.mutable_columns() = rows;
  return node.api.Call("LearningService/Learn", request.ShortDebugString());
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
  int revision = 0;
  for (Node* const node : {&writer(), &follower()}) {
    const auto learned = node->api.AnswerOf<v1::LearnResponse>(
        "LearningService/Learn",
        absl::StrCat("model: 'models/m' examples { label: ", node == &writer() ? 1 : -1, " }"));
    EXPECT_EQ(learned.result().updates(), 1U);
    EXPECT_EQ(learned.result().revision(), ++revision);
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
  EXPECT_EQ(Reason(stream.AwaitEnd()), "WRITER_CHANGED");
  EXPECT_EQ(examples(), sent);
}

TEST_F(FleetServersTest, RowsThatAFollowerEvaluatedAreCountedByAWriterThatHandsThePartitionOver) {
  RowStream stream(follower(), kModel);
  stream.Open();
  const uint64_t sent = LearnUntilSomeAreNotCounted(stream);
  Node& next = follower();
  // As when the partition is given to a server that has joined: its calls go on.
  writer().member.store().fleet()->Leave();
  EXPECT_EQ(Reason(stream.AwaitEnd()), "WRITER_CHANGED");
  WaitUntil([&] { return next.member.writes(); });
  EXPECT_EQ(MakeReport(**next.member.store().Acquire(kModel)).examples(), sent);
}

TEST_F(FleetServersTest, TheWriterKnowsOfRowsEvaluatedElsewhereWhileTheirStreamIsIdle) {
  RowStream stream(follower(), kModel);
  stream.Open();
  const uint64_t sent = LearnUntilSomeAreNotCounted(stream);
  WaitUntil([&] { return examples() == sent; });
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FleetServersTest, InRelaxedOrderEveryRowIsCountedOnce) {
  RowStream stream(follower(), kModel, "p");
  stream.With("order: STREAM_ORDER_RELAXED").Open();
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
  EXPECT_EQ(Outcome(older.AwaitEnd()), "ABORTED PRODUCER_SUPERSEDED");
  v1::LearnStreamRequest request = StreamedRow();
  request.set_first_offset(next);
  EXPECT_EQ(newer.Ask(request).acknowledged_offset(), next);
  EXPECT_TRUE(newer.Finish().ok());
}

TEST_F(FleetServersTest, AListSaysSinceWhenTheStateOfAModelThatAnotherServerWritesMayBeOld) {
  const auto listed = [](Node& node) {
    return node.api.AnswerOf<v1::ListModelsResponse>("ModelService/ListModels", "").models(0);
  };
  for (Node* const node : {&writer(), &follower()})
    ASSERT_OK(node->member.store().Acquire(kModel).status());
  EXPECT_FALSE(listed(writer()).has_stale_since());
  EXPECT_TRUE(listed(follower()).has_stale_since());
  // A question about one model is relayed to the writer.
  EXPECT_FALSE(follower().Get(kModel).has_stale_since());
}

TEST_F(FleetServersTest, APredictionWaitsForTheRevisionThatItAsksFor) {
  RowStream learning(writer(), kModel);
  learning.Open();
  auto request = FromText<v1::PredictRequest>("model: 'models/m' examples {}");
  v1::PredictResponse response;
  grpc::ClientContext stream_context;
  const auto predictions = v1::PredictionService::NewStub(follower().api.channel());
  const auto stream = predictions->PredictStream(&stream_context);
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
    request.set_min_revision(learned);
    ASSERT_TRUE(follower().api.Predict(request, &response).ok());
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
    EXPECT_EQ(predictions->Predict(&context, request, &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_TRUE(learning.Finish().ok());
}

// A model's past, its copies and its names.
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
    ASSERT_EQ(Learn(follower(), model, columns), "OK");
  }
  // The scores that a server's own copy gives at this revision or later: its weights.
  static std::vector<float> Scores(Node& node, const std::string& model, int64_t revision) {
    const auto response = node.api.AnswerOf<v1::PredictResponse>(
        "PredictionService/Predict",
        absl::StrCat("model: '", model, "' min_revision: ", revision,
                     " columns { indices: [0, 1, 2, 3] row_ends: [1, 2, 3, 4] }"));
    return {response.scores().begin(), response.scores().end()};
  }
  std::vector<float> ScoresNow(const std::string& model) {
    const int64_t revision = follower().Get(model).revision();
    std::vector<float> scores = Scores(writer(), model, revision);
    EXPECT_EQ(Scores(follower(), model, revision), scores);
    return scores;
  }
  void RollBack(const std::string& to, const std::vector<float>& expected) {
    const int64_t before = follower().Get(kModel).revision();
    EXPECT_NE(ScoresNow(kModel), expected);
    const auto after = follower().api.AnswerOf<v1::Model>("HistoryService/RollBackModel",
                                                          "model: 'models/m' " + to);
    EXPECT_EQ(after.revision(), before + 1);
    EXPECT_EQ(ScoresNow(kModel), expected);
  }
  static v1::Alias SetAlias(Node& node, const std::string& model) {
    return node.api.AnswerOf<v1::Alias>(
        "AliasService/UpdateAlias",
        "alias { name: 'aliases/x' model: '" + model + "' } allow_missing: true");
  }
  void AwaitAliasTo(const std::string& model) {
    WaitUntil([&] {
      return std::all_of(nodes_.all().begin(), nodes_.all().end(), [&](const auto& node) {
        v1::Alias found;
        return node->api.Call("AliasService/GetAlias", "name: 'aliases/x'", &found) == "OK" &&
               found.model() == model;
      });
    });
  }

  std::mt19937 random_{5};
};

TEST_F(FleetHistoryTest, AModelThatAnyServerRollsBackIsSoOnAll) {
  LearnSome(kModel);
  EXPECT_EQ(
      follower().api.Call("HistoryService/CreateSnapshot", "model: 'models/m' snapshot_id: 'k'"),
      "OK");
  const std::vector<float> at_snapshot = ScoresNow(kModel);
  LearnSome(kModel);
  const int64_t later = follower().Get(kModel).revision();
  const std::vector<float> at_later = ScoresNow(kModel);
  LearnSome(kModel);
  RollBack("snapshot_id: 'k'", at_snapshot);
  // Copies follow on.
  LearnSome(kModel);
  RollBack(absl::StrCat("revision: ", later), at_later);
}

TEST_F(FleetHistoryTest, ACopyOrAFileOfAModelMadeAnywhereIsEqualOnAllServersAndLearnsByItself) {
  LearnSome(kModel);
  const v1::Model source = follower().Get(kModel);
  const std::vector<float> scores = ScoresNow(kModel);
  // The second is the same request.
  for (Node* const node : {&follower(), &writer()}) {
    const auto made = node->api.AnswerOf<v1::Model>(
        "HistoryService/CopyModel", "name: 'models/m' new_name: 'models/copy' request_id: 'once'");
    EXPECT_EQ(made.revision(), source.revision());
  }
  const std::string service = "/perceptron.v1.HistoryService/";
  std::vector<std::string> pieces;
  EXPECT_TRUE(
      follower()
          .api
          .CallRaw(service + "ExportModel",
                   {FromText<v1::ExportModelRequest>("name: 'models/m'").SerializeAsString()},
                   &pieces)
          .ok());
  v1::ImportModelRequest request;
  v1::ExportModelResponse piece;
  std::vector<std::string> messages;
  for (const std::string& one : pieces) {
    ASSERT_TRUE(piece.ParseFromString(one));
    request.set_new_name(messages.empty() ? "models/imported" : "");
    request.set_piece(piece.piece());
    messages.push_back(request.SerializeAsString());
  }
  EXPECT_EQ(Outcome(follower().api.CallRaw(service + "ImportModel", messages)), "OK");
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
  AwaitAliasTo(kModel);
  EXPECT_EQ(SetAlias(writer(), "models/two").previous_model(), kModel);
  AwaitAliasTo("models/two");
  const std::string uid = follower().Get("models/two").uid();
  EXPECT_EQ(follower().api.Call("HistoryService/RenameModel",
                                "name: 'models/two' new_name: 'models/three'"),
            "OK");
  AwaitAliasTo("models/three");
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
    const auto response = node.api.AnswerOf<v1::PredictResponse>(
        "PredictionService/Predict",
        "model: 'models/m' include_prediction_ids: true examples { named { names: 'free' } } "
        "examples { named { names: 'lunch' } }");
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
  EXPECT_THAT(Learn(writer, kModel, Labels({kept[0]})), HasSubstr("UNKNOWN_PREDICTION"));
  // At the server that writes, and the other way round.
  EXPECT_EQ(Learn(writer, kModel, Labels(Predict(follower))), "OK");
  EXPECT_EQ(Learn(follower, kModel, Labels(Predict(writer))), "OK");
  EXPECT_EQ(examples(), 6U);
  WaitUntil([&] { return follower.member.store().predictions().stats().waiting == 0; });
}

TEST_F(FleetLabelsTest, PredictionsOfAServerThatDoesNotAnswerStayAndThoseOfNoMemberAreUnknown) {
  const std::vector<std::string> kept = Predict(nodes_.follower());
  nodes_.follower().fleet->Stop();
  EXPECT_EQ(Learn(nodes_.writer(), kModel, Labels(kept)), "UNAVAILABLE KEEPER_UNREACHABLE");
  EXPECT_EQ(examples(), 0U);
  Node stranger;
  v1::Model settings = NamedSettings(kModel);
  settings.mutable_stored_predictions();
  stranger.Create(settings);
  EXPECT_THAT(Learn(nodes_.writer(), kModel, Labels(Predict(stranger))),
              HasSubstr("UNKNOWN_PREDICTION"));
}

TEST_F(FleetLabelsTest, AFleetRefusesDurablePredictions) {
  EXPECT_EQ(nodes_.follower().api.Call("ModelService/CreateModel",
                                       "model_id: 'durable' model { feature_space { named {} } "
                                       "stored_predictions { durable: true } }"),
            "INVALID_ARGUMENT INVALID_FIELD model.stored_predictions.durable");
}

}  // namespace
}  // namespace perceptrond::fleet_server_test
