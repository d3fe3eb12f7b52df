// A server of a fleet between its clients and other servers: which calls it passes on, what clients hear when the writer
// cannot be reached, changes or misbehaves, and what it takes from other servers.
#include "server/fleet/fleet_server.h"

#include <fstream>

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

}  // namespace
}  // namespace perceptrond::fleet_server_test
