// Who may call a fleet's servers, and what is known of a call where its model is written: three servers with
// certificates and tokens over a nats-server.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/integration/fleet_access_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr int kShared = 6;

class FleetAccessTest : public SecuredFleet {
 protected:
  FleetAccessTest()
      : SecuredFleet(
            absl::StrCat(AccessFile::Text(), "principal { name: 'slow' token_sha256: '",
                         AccessFile::Digest("slow-token"),
                         "' allow { role: LEARN models: '' } max_examples_per_second: 1 }\n"),
            3, kShared) {}
};

TEST_F(FleetAccessTest, OnlyServersOfTheFleetReachTheFleetsPort) {
  const std::string& port = servers_[0]->fleet_address;
  EXPECT_TRUE(Call(port, certificates_.Credentials("server")).ok());
  // No certificate; one of another authority; none, with the token of somebody who may do everything; no encryption.
  for (const auto& credentials :
       {certificates_.Credentials(""), certificates_.Credentials("foreign"),
        grpc::InsecureChannelCredentials()})
    EXPECT_EQ(Call(port, credentials, "admin-token").error_code(), grpc::StatusCode::UNAVAILABLE);
  // Of the authority, and not for a server.
  const grpc::Status client = Call(port, certificates_.Credentials("client"), "admin-token");
  EXPECT_EQ(client.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(client.error_message(), HasSubstr("--fleet-cert"));
  // The service between servers is not on the port for clients.
  grpc::GenericStub stub(servers_[0]->member.channel);
  grpc::ClientContext context;
  Authorize(context, "admin");
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/perceptron.fleet.v1.SegmentService/Learn", &queue);
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(&tag);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  call->Finish(&status, &tag);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
}

TEST_F(FleetAccessTest, RenewedCertificatesAreUsedByBothSidesWithoutARestart) {
  AwaitCreated("m");
  const auto [writer, other] = WriterAndOther("m");
  certificates_.MakeAuthority("ca");
  const auto before = certificates_.Credentials("server");
  certificates_.Certify("server", "perceptrond", "ca");
  for (const auto& server : servers_) {
    const auto renewed = [&] {
      return Call(server->fleet_address, certificates_.Credentials("server")).ok();
    };
    for (const absl::Time end = absl::Now() + kLong; !renewed() && absl::Now() < end;) {
    }
    EXPECT_TRUE(renewed());
  }
  EXPECT_EQ(Call(writer->fleet_address, before).error_code(), grpc::StatusCode::UNAVAILABLE);
  bool learned = false;
  for (const absl::Time end = absl::Now() + kLong; !learned && absl::Now() < end;)
    learned = Learn(*other, "m", 10, "admin").ok();
  EXPECT_TRUE(learned);
}

TEST_F(FleetAccessTest, APrincipalIsCheckedCountedAndLimitedWhereItsCallArrives) {
  AwaitCreated("m");
  const auto [writer, other] = WriterAndOther("m");
  EXPECT_EQ(Learn(*other, "m", 10, "reader").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(Learn(*other, "m", 500, "slow").ok());
  const grpc::Status refused = Learn(*other, "m", 500, "slow");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("max_examples_per_second"));
  double examples = 0;
  double limited = 0;
  double calls = 0;
  for (const auto& server : servers_) {
    examples += server->Metric("perceptrond_principal_examples_total{principal=\"slow\"}");
    limited += server->Metric("perceptrond_principal_limited_total{principal=\"slow\"}");
    calls += server->Metric("perceptrond_principal_calls_total{principal=\"slow\",outcome=\"ok\"}");
  }
  EXPECT_EQ(examples, 500);
  EXPECT_EQ(limited, 1);
  EXPECT_EQ(calls, 1);
  // A change is recorded where it was asked for alone.
  grpc::ClientContext context;
  Authorize(context, "admin");
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/m");
  v1::Model frozen;
  ASSERT_TRUE(other->member.models->FreezeModel(&context, freeze, &frozen).ok());
  std::string records;
  for (const absl::Time end = absl::Now() + kLong;
       !absl::StrContains(records, "FreezeModel") && absl::Now() < end;)
    records = ReadAll(other->audit);
  EXPECT_THAT(records, ::testing::ContainsRegex("\"principal\":\"admin\"[^\n]*FreezeModel"));
  for (const auto& server : servers_) {
    if (server.get() == other) continue;
    EXPECT_FALSE(absl::StrContains(ReadAll(server->audit), "FreezeModel"));
  }
}

// The traces of a stream's messages, in order; "-" for one without.
std::vector<std::string> TracesOf(const std::string& nats, const std::string& stream) {
  const CommandResult read = RunCommand(
      "/usr/bin/python3 - <<'END'\n"
      "import base64, json, re, socket\n"
      "host, port = '" +
      nats.substr(std::string("nats://").size()) +
      "'.split(':')\n"
      "nats = socket.create_connection((host, int(port)))\n"
      "lines = nats.makefile('rb')\n"
      "def ask(subject, body):\n"
      "    nats.sendall(b'SUB in 1\\r\\nPUB %s in %d\\r\\n%s\\r\\n' % (subject.encode(), "
      "len(body), body))\n"
      "    while True:\n"
      "        words = lines.readline().split()\n"
      "        if words and words[0] == b'MSG':\n"
      "            answer = json.loads(lines.read(int(words[-1])))\n"
      "            nats.sendall(b'UNSUB 1\\r\\n')\n"
      "            return answer\n"
      "nats.sendall(b'CONNECT {\"verbose\":false}\\r\\n')\n"
      "state = ask('$JS.API.STREAM.INFO." +
      stream +
      "', b'')['state']\n"
      "for i in range(state['first_seq'], state['last_seq'] + 1):\n"
      "    message = ask('$JS.API.STREAM.MSG.GET." +
      stream +
      "', json.dumps({'seq': i}).encode()).get('message')\n"
      "    if message is None or '.m.' not in message['subject']: continue\n"
      "    found = re.search(rb'traceparent: *(\\S+)', base64.b64decode(message.get('hdrs', '')))\n"
      "    print(found[1].decode() if found else '-')\n"
      "END\n");
  EXPECT_EQ(read.exit_code, 0);
  return absl::StrSplit(read.out, '\n', absl::SkipEmpty());
}

TEST_F(FleetAccessTest,
       ATraceLeadsFromTheClientOverTheWriterToTheAppendAndEachServerSaysWhatItsPartTook) {
  AwaitCreated("m");
  const auto [writer, other] = WriterAndOther("m");
  ASSERT_TRUE(Learn(*other, "m", 2, "admin").ok());
  const std::string id = absl::StrCat("trace_id=", kTraceId);
  int calls = 0;
  const auto call = [&] {
    ++calls;
    ASSERT_TRUE(Learn(*other, "m", 2, "admin", kTrace).ok());
  };
  const std::string unary = "/perceptron.v1.LearningService/Learn ";
  const std::vector<std::string> learned =
      CallUntil(call, *writer, {unary, id, "principal=admin"}, "commit_ms=");
  CallUntil(call, *other, {unary, id, "principal=admin", "model=models/m"}, "forward_ms=");
  // Else the stream's first message would be answered while the copy is loaded.
  {
    grpc::ClientContext context;
    Authorize(context, "admin");
    v1::PredictRequest request;
    request.set_model("models/m");
    *request.mutable_columns() = Rows(1);
    request.mutable_columns()->clear_labels();
    v1::PredictResponse response;
    ASSERT_TRUE(other->member.predictions->Predict(&context, request, &response).ok());
  }
  std::vector<std::string> evaluated;
  // A stream, whose rows call for updates and go to the writer.
  {
    grpc::ClientContext context;
    Authorize(context, "admin");
    context.AddMetadata("traceparent", absl::StrCat("cc", std::string(kTrace).substr(2), "-later"));
    const auto stream = other->member.learning->LearnStream(&context);
    v1::LearnStreamRequest request;
    request.set_model("models/m");
    *request.mutable_columns() = Rows(4);
    v1::LearnStreamResponse response;
    const auto send = [&] {
      ++calls;
      ASSERT_TRUE(stream->Write(request));
      ASSERT_TRUE(stream->Read(&response));
    };
    evaluated =
        CallUntil(send, *writer, {"SegmentService/Learn ", id, "principal=admin"}, "commit_ms=");
    CallUntil(send, *other,
              {"LearningService/LearnStream ", id, "principal=admin", "model=models/m"},
              "forward_ms=");
    stream->WritesDone();
    while (stream->Read(&response)) {
    }
    const grpc::Status ended = stream->Finish();
    ASSERT_TRUE(ended.ok()) << ended.error_message();
  }
  std::vector<std::string> traces;
  for (int partition = 0; partition < kShared; ++partition) {
    const std::vector<std::string> some =
        TracesOf(nats_.url(0), absl::StrCat("perceptrond-p", partition));
    traces.insert(traces.end(), some.begin(), some.end());
  }
  EXPECT_EQ(std::count(traces.begin(), traces.end(), kTrace), calls);
  EXPECT_GT(std::count(traces.begin(), traces.end(), "-"), 0);
  for (const std::vector<std::string>& lines : {learned, evaluated}) {
    for (const std::string& line : lines) EXPECT_EQ(PartOf(line, "forward_ms="), 0) << line;
  }
}

TEST(FleetAddress, OneThatOtherMachinesReachNeedsCertificatesOrInsecure) {
  const std::string fleet = "--journal nats://127.0.0.1:1 --fleet-address ";
  EXPECT_THAT(RunServer(fleet + "10.0.0.5:7602").out,
              HasSubstr("add --fleet-cert, --fleet-key and --fleet-ca; or --insecure"));
  EXPECT_THAT(RunServer(fleet + "127.0.0.1:7602 --access-file /dev/null").out,
              HasSubstr("must know one another"));
  EXPECT_THAT(RunServer(fleet + "127.0.0.1:7602 --fleet-cert /etc/passwd").out,
              HasSubstr("go together"));
}

}  // namespace
}  // namespace perceptrond::testing
