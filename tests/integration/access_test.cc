// With an access file, a caller does what it may, and learns nothing about the rest.
#include "tests/integration/access_fixture.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <csignal>

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kUnauthenticated = grpc::StatusCode::UNAUTHENTICATED;
constexpr auto kDenied = grpc::StatusCode::PERMISSION_DENIED;

// A status as a caller sees it, to compare.
std::string Seen(const grpc::Status& status) {
  return absl::StrCat(status.error_code(), status.error_message(), status.error_details());
}

std::string WithoutName(std::string text, const std::string& name) {
  for (size_t at; (at = text.find(name)) != std::string::npos;) text.erase(at, name.size());
  return text;
}

TEST_F(AccessTest, AMissingTokenAndAnUnknownOneGetTheSameAnswerForEveryMethod) {
  for (const char* method :
       {"perceptron.v1.ModelService/ListModels", "perceptron.v1.ModelService/GetModel",
        "perceptron.v1.LearningService/LearnStream", "inference.GRPCInferenceService/ServerLive",
        "grpc.health.v1.Health/Check", "no.Service/Method",
        "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    const grpc::Status status = CallRaw(absl::StrCat("/", method), {""});
    EXPECT_EQ(status.error_code(), kUnauthenticated) << method;
    EXPECT_EQ(Reason(status), "UNAUTHENTICATED") << method;
  }
  const grpc::Status missing = GetAs("", "spam-a");
  EXPECT_EQ(missing.error_code(), kUnauthenticated);
  EXPECT_EQ(Seen(GetAs("unknown", "spam-a")), Seen(missing));
}

TEST_F(AccessTest, ARoleAllowsWhatItNamesForItsPrefix) {
  EXPECT_TRUE(CreateAs("admin", "spam-a").ok());
  EXPECT_TRUE(GetAs("trainer", "spam-a").ok());
  EXPECT_TRUE(GetAs("reader", "spam-a").ok());
  EXPECT_EQ(CreateAs("trainer", "spam-b").error_code(), kDenied);
  EXPECT_EQ(DeleteAs("reader", "spam-a").error_code(), kDenied);
  v1::LearnRequest learn;
  learn.set_model("models/spam-a");
  *learn.add_examples() = SparseExample(1, {});
  learn.mutable_examples(0)->mutable_dense()->add_values(1);
  learn.mutable_examples(0)->mutable_dense()->add_values(1);
  for (const char* principal : {"reader", "trainer"}) {
    grpc::ClientContext context;
    Authorize(context, principal);
    v1::LearnResponse response;
    const grpc::Status status = learning_->Learn(&context, learn, &response);
    EXPECT_EQ(status.ok(), principal == std::string("trainer")) << status.error_message();
  }
  EXPECT_TRUE(DeleteAs("admin", "spam-a").ok());
}

TEST_F(AccessTest, AModelThatOneMayNotReadAnswersTheSameWhetherItExistsOrNot) {
  ASSERT_TRUE(CreateAs("admin", "secret").ok());
  const auto compare = [](const grpc::Status& there, const grpc::Status& absent) {
    EXPECT_EQ(there.error_code(), kDenied);
    EXPECT_EQ(WithoutName(Seen(there), "secret"), WithoutName(Seen(absent), "absent"));
  };
  compare(GetAs("reader", "secret"), GetAs("reader", "absent"));
  compare(CreateAs("reader", "secret"), CreateAs("reader", "absent"));
  compare(DeleteAs("trainer", "secret"), DeleteAs("trainer", "absent"));
  compare(CreateAs("trainer", "spam-c", "secret"), CreateAs("trainer", "spam-c", "absent"));
}

TEST_F(AccessTest, ListsAndTheirPagesHaveTheModelsThatOneMayRead) {
  for (const char* id : {"a", "spam-1", "spam-2", "spam-3", "spamx", "x", "x1", "z"})
    ASSERT_TRUE(CreateAs("admin", id).ok());
  for (const int page_size : {1, 2, 5, 100}) {
    const auto [ids, pages] = ListAs("reader", page_size);
    EXPECT_THAT(ids, ElementsAre("spam-1", "spam-2", "spam-3", "x", "x1"));
    // A last page that is full is the last: no token tells of further models.
    EXPECT_EQ(pages, (5 + page_size - 1) / page_size);
  }
  EXPECT_EQ(ListAs("admin", 3).first.size(), 8);
  EXPECT_THAT(ListAs("trainer", 3).first, ElementsAre("spam-1", "spam-2", "spam-3"));
}

TEST_F(AccessTest, ACompositionNeedsItsComponentsToBeReadableAndHidesItsName) {
  ASSERT_TRUE(CreateAs("admin", "spam-a").ok());
  Write(absl::StrCat(Text("trainer"), "principal { name: 'owner' token_sha256: '",
                     Digest("owner-token"), "' allow { role: ADMIN models: 'spam-' } }\n"));
  server_.Signal(SIGHUP);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!GetAs("owner", "spam-a").ok()) ASSERT_LT(absl::Now(), deadline);
  ASSERT_TRUE(CreateAs("admin", "secret", "spam-a").ok());
  const grpc::Status status = DeleteAs("owner", "spam-a");
  EXPECT_EQ(Reason(status), "MODEL_IN_USE");
  EXPECT_THAT(Seen(status), Not(HasSubstr("secret")));
  EXPECT_THAT(Seen(DeleteAs("admin", "spam-a")), HasSubstr("secret"));
}

TEST_F(AccessTest, AStreamIsCheckedAtItsFirstMessageAndForEachFurtherModel) {
  for (const char* id : {"spam-1", "secret"}) ASSERT_TRUE(CreateAs("admin", id).ok());
  grpc::ClientContext context;
  Authorize(context, "reader");
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictRequest request;
  v1::PredictResponse response;
  request.set_model("models/spam-1");
  stream->Write(request);
  ASSERT_TRUE(stream->Read(&response));
  request.clear_model();
  stream->Write(request);
  ASSERT_TRUE(stream->Read(&response));
  request.set_model("models/secret");
  stream->Write(request);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), kDenied);
}

TEST_F(AccessTest, AModelIsDeniedBeforeItsMessageIsParsed) {
  v1::LearnRequest request;
  request.set_model("models/spam-1");
  // Within the message columns, whose parser refuses it.
  const std::string malformed(100'000, '\xff');
  google::protobuf::UnknownFieldSet columns;
  columns.AddLengthDelimited(v1::LearnRequest::kColumnsFieldNumber, malformed);
  std::string bytes = request.SerializeAsString();
  columns.SerializeToString(&bytes);
  bytes = request.SerializeAsString() + bytes;
  const std::string method = "/perceptron.v1.LearningService/Learn";
  EXPECT_EQ(CallRaw(method, {bytes}, nullptr, "reader-token").error_code(), kDenied);
  EXPECT_EQ(Reason(CallRaw(method, {bytes}, nullptr, "trainer-token")), "MALFORMED_MESSAGE");
}

TEST_F(AccessTest, OpenStreamsOfARemovedPrincipalEndAndNewRulesHoldAtOnce) {
  ASSERT_TRUE(CreateAs("admin", "spam-1").ok());
  grpc::ClientContext watch_context;
  Authorize(watch_context, "reader");
  v1::WatchModelRequest watch;
  watch.set_name("models/spam-1");
  const auto watching = models_->WatchModel(&watch_context, watch);
  v1::WatchModelResponse seen;
  ASSERT_TRUE(watching->Read(&seen));
  grpc::ClientContext learn_context;
  Authorize(learn_context, "trainer");
  const auto learning = learning_->LearnStream(&learn_context);
  v1::LearnStreamRequest first;
  first.set_model("models/spam-1");
  learning->Write(first);
  v1::LearnStreamResponse answer;
  ASSERT_TRUE(learning->Read(&answer));

  Write(Text("reader"));
  while (watching->Read(&seen)) {
  }
  EXPECT_EQ(Reason(watching->Finish()), "UNAUTHENTICATED");
  EXPECT_EQ(GetAs("reader", "spam-1").error_code(), kUnauthenticated);
  // The other principal's stream goes on.
  learning->Write(first);
  EXPECT_TRUE(learning->Read(&answer));
  Write("");
  while (learning->Read(&answer)) {
  }
  EXPECT_EQ(learning->Finish().error_code(), kUnauthenticated);
}

TEST_F(AccessTest, ABrokenFileLeavesTheRulesInUse) {
  Write("principal { name: 'reader' ");
  server_.Signal(SIGHUP);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (ReadAll(audit_log()).find("reload access file") == std::string::npos)
    ASSERT_LT(absl::Now(), deadline);
  EXPECT_THAT(ReadAll(audit_log()), HasSubstr(absl::StrCat("\"file\":\"", AccessFile::path())));
  EXPECT_TRUE(CreateAs("admin", "spam-1").ok());
}

TEST_F(AccessTest, ALineAboutASlowCallNamesThePrincipal) {
  ASSERT_TRUE(CreateAs("admin", "spam-1").ok());
  EXPECT_THAT(server_.AwaitLog("slow call method=/perceptron.v1.ModelService/CreateModel "),
              HasSubstr(" principal=admin "));
}

TEST_F(AccessTest, ARefusalNamesTheRoleThatIsMissingAndAFileWithoutPrincipalsIsSaidToDenyAll) {
  EXPECT_THAT(CreateAs("reader", "spam-1").error_message(),
              HasSubstr("reader lacks the role ADMIN for "));
  Write("");
  EXPECT_NE(server_.AwaitLog("every call is denied"), "");
}

TEST_F(AccessTest, HealthAndReflectionAreRightsOfTheirOwn) {
  for (const char* method :
       {"/grpc.health.v1.Health/Check", "/inference.GRPCInferenceService/ServerReady",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    EXPECT_TRUE(CallRaw(method, {""}, nullptr, "admin-token").ok()) << method;
    EXPECT_EQ(CallRaw(method, {""}, nullptr, "reader-token").error_code(), kDenied) << method;
  }
}

TEST_F(AccessTest, AdministrativeAndDeniedCallsAreInTheAuditLogWithoutTokens) {
  ASSERT_TRUE(CreateAs("admin", "spam-1").ok());
  EXPECT_TRUE(GetAs("reader", "spam-1").ok());
  EXPECT_FALSE(GetAs("reader", "secret").ok());
  EXPECT_FALSE(GetAs("wrong", "spam-1").ok());
  EXPECT_TRUE(DeleteAs("admin", "spam-1").ok());
  EXPECT_FALSE(DeleteAs("admin", "spam-1").ok());
  EXPECT_EQ(server_.Terminate(), 0);
  const std::string log = ReadAll(audit_log());
  EXPECT_THAT(log,
              AllOf(HasSubstr(R"("principal":"admin")"), HasSubstr(R"("model":"models/spam-1")"),
                    HasSubstr(R"(ModelService/CreateModel)"),
                    HasSubstr(R"("outcome":"PermissionDenied","reason":"PERMISSION_DENIED")"),
                    HasSubstr(R"("principal":"","peer":"ipv4:127.0.0.1:)"),
                    HasSubstr(R"("outcome":"NotFound","reason":"MODEL_NOT_FOUND")"),
                    Not(HasSubstr("-token"))));
  // Of reading only what was denied.
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 5) << log;
}

TEST_F(AccessTest, TheAuditLogStatesTheCallersTrace) {
  grpc::ClientContext context;
  Authorize(context, "reader");
  context.AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  v1::DeleteModelRequest request;
  request.set_name("models/spam-1");
  google::protobuf::Empty nothing;
  EXPECT_EQ(models_->DeleteModel(&context, request, &nothing).error_code(), kDenied);
  EXPECT_EQ(server_.Terminate(), 0);
  EXPECT_THAT(ReadAll(audit_log()), HasSubstr(R"("trace_id":"4bf92f3577b34da6a3ce929d0e0e4736")"));
}

TEST_F(AccessTest, AFloodOfDeniedCallsDoesNotFillTheAuditLog) {
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(GetAs("wrong", "spam-1").ok());
  EXPECT_EQ(server_.Terminate(), 0);
  const std::string log = ReadAll(audit_log());
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 900);
}

}  // namespace
}  // namespace perceptrond::testing
