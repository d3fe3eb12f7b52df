// With an access file, a caller does what it may, and learns nothing about the rest.
#include "tests/integration/access_fixture.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <set>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "perceptron/v1/alias_service.pb.h"
#include "tests/integration/methods.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kDenied[] = "PERMISSION_DENIED PERMISSION_DENIED";
constexpr char kUnknownCaller[] = "UNAUTHENTICATED UNAUTHENTICATED";

// The models do not exist: nothing changes, and what is allowed says so.
TEST_F(AccessTest, EveryMethodIsForThoseWhoHaveItsRoleForTheModel) {
  for (const ApiMethod& method : kApiMethods) {
    SCOPED_TRACE(method.path);
    bool may = false;
    for (const char* principal : {"reader", "trainer", "keeper", "admin"}) {
      may = may || principal == std::string(method.caller);
      // A call that is not allowed gets the same answer for models that exist and others.
      const std::string outcome = As(principal, method.path, method.Request("models/spam-none"));
      EXPECT_EQ(outcome, may ? method.absent : kDenied) << principal;
      if (!method.NamesModel()) continue;
      const bool may_all = principal == std::string("admin");
      EXPECT_EQ(As(principal, method.path, method.Request("models/secret")),
                may_all ? method.absent : kDenied)
          << principal;
    }
    for (const char* principal : {"", "stranger"})
      EXPECT_EQ(As(principal, method.path, method.Request("models/spam-none")), kUnknownCaller);
  }
}

TEST_F(AccessTest, HealthReflectionAndUnknownMethodsAreForThoseWhoHaveTheirRights) {
  for (const char* method : {"/grpc.health.v1.Health/Check",
                             "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    EXPECT_EQ(Outcome(CallRaw(method, {""}, nullptr, "admin-token")), "OK") << method;
    EXPECT_EQ(Outcome(CallRaw(method, {""}, nullptr, "reader-token")), kDenied) << method;
    EXPECT_EQ(Outcome(CallRaw(method, {""})), kUnknownCaller) << method;
  }
  EXPECT_EQ(Outcome(CallRaw("/no.Service/Method", {""})), kUnknownCaller);
}

TEST_F(AccessTest, ListsAndTheirPagesHaveWhatOneMayRead) {
  for (const char* id : {"a", "spam-1", "spam-2", "spam-3", "spamx", "x", "x1", "z"})
    ASSERT_EQ(CreateAs("admin", id), "OK");
  for (const int page_size : {1, 2, 5, 100}) {
    std::vector<std::string> names;
    int pages = 0;
    v1::ListModelsResponse page;
    do {
      const std::string request =
          absl::StrCat("page_size: ", page_size, " page_token: '", page.next_page_token(), "'");
      page.Clear();
      ASSERT_EQ(As("reader", "ModelService/ListModels", request, &page), "OK");
      for (const v1::Model& model : page.models()) names.push_back(model.name());
      ++pages;
    } while (!page.next_page_token().empty());
    EXPECT_THAT(names, ElementsAre("models/spam-1", "models/spam-2", "models/spam-3", "models/x",
                                   "models/x1"));
    // A last page that is full is the last: no token tells of further models.
    EXPECT_EQ(pages, (5 + page_size - 1) / page_size);
  }
  for (const char* alias : {"live", "spam-x"}) NameAs("admin", alias, "spam-1");
  v1::ListAliasesResponse aliases;
  ASSERT_EQ(As("reader", "AliasService/ListAliases", "", &aliases), "OK");
  ASSERT_EQ(aliases.aliases_size(), 1);
  EXPECT_EQ(aliases.aliases(0).name(), "aliases/spam-x");
}

TEST_F(AccessTest, AnErrorHidesTheNamesThatOneMayNotRead) {
  for (const char* id : {"spam-a", "spam-b"}) ASSERT_EQ(CreateAs("admin", id), "OK");
  ASSERT_EQ(As("admin", "ModelService/CreateModel",
               "model_id: 'secret' model { feature_space { composition { inputs { model: "
               "'models/spam-a' } } } }"),
            "OK");
  NameAs("admin", "secret", "spam-b");
  for (const auto& [method, request] :
       {std::pair{"ModelService/DeleteModel", "name: 'models/spam-a'"},
        {"HistoryService/RenameModel", "name: 'models/spam-a' new_name: 'models/spam-c'"},
        {"ModelService/DeleteModel", "name: 'models/spam-b'"}}) {
    for (const std::string principal : {"keeper", "admin"}) {
      const grpc::Status status = Send(method, request, nullptr, principal + "-token");
      EXPECT_EQ(Outcome(status), "FAILED_PRECONDITION MODEL_IN_USE");
      EXPECT_EQ(absl::StrContains(status.error_message() + status.error_details(), "secret"),
                principal == "admin")
          << status.error_message();
    }
  }
}

TEST_F(AccessTest, WhoeverMayDoNothingIsDeniedBeforeAMessageHasCome) {
  EXPECT_EQ(
      Outcome(CallRaw("/perceptron.v1.LearningService/LearnStream", {}, nullptr, "scraper-token")),
      kDenied);
}

TEST_F(AccessTest, AnAliasIsAsReadableAsTheModelThatItNames) {
  for (const char* id : {"spam-a", "other"}) ASSERT_EQ(CreateAs("admin", id), "OK");
  const auto predict = [this](const std::string& alias) {
    return As("reader", "PredictionService/Predict", "model: 'aliases/" + alias + "'");
  };
  NameAs("admin", "live", "spam-a");
  EXPECT_EQ(predict("live"), "OK");
  grpc::ClientContext context;
  Authorize(context, "reader");
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictResponse response;
  EXPECT_TRUE(stream->Write(FromText<v1::PredictRequest>("model: 'aliases/live'")));
  EXPECT_TRUE(stream->Read(&response));
  for (const char* alias : {"live", "spam-x"}) NameAs("admin", alias, "other");
  for (const char* alias : {"live", "spam-x", "none"}) EXPECT_EQ(predict(alias), kDenied) << alias;
  EXPECT_EQ(predict("spam-none"), kNoAlias);
  // The stream follows the alias, and ends.
  EXPECT_TRUE(stream->Write({}));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(Outcome(stream->Finish()), kDenied);
}

TEST_F(AccessTest, AStreamIsCheckedForEachFurtherModel) {
  for (const char* id : {"spam-1", "secret"}) ASSERT_EQ(CreateAs("admin", id), "OK");
  grpc::ClientContext context;
  Authorize(context, "reader");
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictResponse response;
  for (const char* request : {"model: 'models/spam-1'", ""}) {
    stream->Write(FromText<v1::PredictRequest>(request));
    ASSERT_TRUE(stream->Read(&response));
  }
  stream->Write(FromText<v1::PredictRequest>("model: 'models/secret'"));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(Outcome(stream->Finish()), kDenied);
}

TEST_F(AccessTest, AModelIsDeniedBeforeItsMessageIsParsed) {
  v1::LearnRequest request;
  request.set_model("models/spam-1");
  // Within the message columns, whose parser refuses it.
  google::protobuf::UnknownFieldSet columns;
  columns.AddLengthDelimited(v1::LearnRequest::kColumnsFieldNumber, std::string(100'000, '\xff'));
  std::string malformed;
  columns.SerializeToString(&malformed);
  const std::string bytes = request.SerializeAsString() + malformed;
  const std::string method = "/perceptron.v1.LearningService/Learn";
  EXPECT_EQ(Outcome(CallRaw(method, {bytes}, nullptr, "reader-token")), kDenied);
  EXPECT_EQ(Reason(CallRaw(method, {bytes}, nullptr, "trainer-token")), "MALFORMED_MESSAGE");
}

TEST_F(AccessTest, OpenStreamsOfARemovedPrincipalEndAndOthersGoOn) {
  ASSERT_EQ(CreateAs("admin", "spam-1"), "OK");
  grpc::ClientContext watch_context;
  Authorize(watch_context, "reader");
  const auto watching =
      models_->WatchModel(&watch_context, FromText<v1::WatchModelRequest>("name: 'models/spam-1'"));
  v1::WatchModelResponse seen;
  ASSERT_TRUE(watching->Read(&seen));
  grpc::ClientContext learn_context;
  Authorize(learn_context, "trainer");
  const auto learning = learning_->LearnStream(&learn_context);
  const auto first = FromText<v1::LearnStreamRequest>("model: 'models/spam-1'");
  learning->Write(first);
  v1::LearnStreamResponse answer;
  ASSERT_TRUE(learning->Read(&answer));
  Write(Text("reader"));
  while (watching->Read(&seen)) {
  }
  EXPECT_EQ(Outcome(watching->Finish()), kUnknownCaller);
  EXPECT_EQ(GetAs("reader", "spam-1"), kUnknownCaller);
  // A file that is none changes nothing.
  Write("principal {");
  EXPECT_NE(server_.AwaitLog("the rules in use stay"), "");
  learning->Write(first);
  EXPECT_TRUE(learning->Read(&answer));
  // Without principals every call is denied.
  Write("");
  while (learning->Read(&answer)) {
  }
  EXPECT_EQ(Outcome(learning->Finish()), kUnknownCaller);
  EXPECT_NE(server_.AwaitLog("every call is denied"), "");
}

TEST_F(AccessTest, RatesOfExamplesFollowTheFile) {
  ASSERT_EQ(CreateAs("admin", "m"), "OK");
  Replace(absl::StrCat(Text(), "principal { name: 'slow' token_sha256: '", Digest("slow-token"),
                       "' allow { role: ADMIN models: '' } max_examples_per_second: 1 }\n"));
  // The debt of 100 minutes: it is there however late the next call comes.
  v1::LearnRequest rows;
  rows.set_model("models/m");
  rows.mutable_columns()->mutable_row_ends()->Resize(6000, 0);
  rows.mutable_columns()->mutable_labels()->Resize(6000, 1);
  const std::string learn = "LearningService/Learn";
  EXPECT_EQ(As("slow", learn, rows.ShortDebugString()), "OK");
  const grpc::Status refused = Send(learn, rows.ShortDebugString(), nullptr, "slow-token");
  EXPECT_EQ(Outcome(refused), "RESOURCE_EXHAUSTED RATE_LIMITED");
  EXPECT_GT(RetryDelay(refused), absl::Seconds(1));
  // It may do what takes no examples, and others are not concerned.
  EXPECT_EQ(GetAs("slow", "m"), "OK");
  EXPECT_EQ(As("admin", learn, rows.ShortDebugString()), "OK");
  for (const auto& [figure, count] : {std::pair{"examples", "6000"}, {"limited", "1"}}) {
    EXPECT_EQ(Metric(server_,
                     absl::StrCat("perceptrond_principal_", figure, "_total{principal=\"slow\"}"),
                     "scraper-token"),
              count);
  }
  // A stream that is paused ends with its client: the server's end would wait for it.
  grpc::ClientContext context;
  Authorize(context, "slow");
  const auto stream = learning_->LearnStream(&context);
  v1::LearnStreamRequest message;
  message.set_model("models/m");
  *message.mutable_columns() = rows.columns();
  stream->Write(message);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(server_.Terminate(), 0);
}

TEST_F(AccessTest, AdministrativeAndDeniedCallsAreInTheAuditLogWithoutTokens) {
  ASSERT_EQ(CreateAs("admin", "spam-1"), "OK");
  EXPECT_EQ(GetAs("reader", "spam-1"), "OK");
  EXPECT_EQ(GetAs("wrong", "spam-1"), kUnknownCaller);
  grpc::ClientContext context;
  Authorize(context, "reader");
  context.AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  google::protobuf::Empty nothing;
  const auto request = FromText<v1::DeleteModelRequest>("name: 'models/spam-1'");
  EXPECT_FALSE(models_->DeleteModel(&context, request, &nothing).ok());
  for (const char* outcome : {"OK", kNoModel})
    EXPECT_EQ(As("admin", "ModelService/DeleteModel", "name: 'models/spam-1'"), outcome);
  EXPECT_THAT(server_.AwaitLog("slow call method=/perceptron.v1.ModelService/CreateModel "),
              HasSubstr(" principal=admin "));
  EXPECT_EQ(server_.Terminate(), 0);
  const std::string log = ReadAll(audit_log());
  EXPECT_THAT(log,
              AllOf(HasSubstr(R"("principal":"admin")"), HasSubstr(R"("model":"models/spam-1")"),
                    HasSubstr(R"(ModelService/CreateModel)"),
                    HasSubstr(R"("outcome":"PermissionDenied","reason":"PERMISSION_DENIED")"),
                    HasSubstr(R"("principal":"","peer":"ipv4:127.0.0.1:)"),
                    HasSubstr(R"("outcome":"NotFound","reason":"MODEL_NOT_FOUND")"),
                    HasSubstr(R"("trace_id":"4bf92f3577b34da6a3ce929d0e0e4736")"),
                    Not(HasSubstr("-token"))));
  // Calls that read are not in it unless they were denied.
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 5) << log;
}

// Two principals, each with models of its own, and both with shared ones.
class TwoPrincipalsTest : public Transfers<AccessTest> {
 protected:
  TwoPrincipalsTest() { Replace(Rules("")); }

  // `alice`: what her principal has besides her token and her roles.
  static std::string Rules(const std::string& alice) {
    std::string text = Text();
    for (const std::string name : {"alice", "bob"}) {
      const std::string named = name == "bob" || alice.empty() ? "name: '" + name + "'" : alice;
      absl::StrAppend(&text, "principal { ", named, " token_sha256: '", Digest(name + "-token"),
                      "' allow { role: ADMIN models: '", name.substr(0, 1),
                      "-' } allow { role: ADMIN models: 'shared-' } }\n");
    }
    return text;
  }
  void CreateComposition(const std::string& id, const std::string& component) {
    ASSERT_EQ(As("admin", "ModelService/CreateModel",
                 absl::StrCat("model_id: '", id,
                              "' model { feature_space { composition { inputs { "
                              "model: '",
                              component, "' output: OUTPUT_SCORE } } } }")),
              "OK");
  }
  // The file of a composition that no longer exists.
  std::string FileOver(const std::string& component) {
    CreateComposition("composition", component);
    std::string file = Export("composition", kAdminToken);
    EXPECT_EQ(As("admin", "ModelService/DeleteModel", "name: 'models/composition'"), "OK");
    return file;
  }
  // Outcome and answer of a call, with the model's name replaced.
  std::string Seen(const std::string& principal, const std::string& method,
                   const std::string& request, const std::string& name = "") {
    const std::string full =
        absl::StrContains(method, '.') ? method : absl::StrCat("perceptron.v1.", method);
    const auto* const found = google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
        absl::StrReplaceAll(full, {{"/", "."}}));
    const std::unique_ptr<google::protobuf::Message> answer(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(found->output_type())
            ->New());
    const grpc::Status status = Send(method, request, answer.get(), principal + "-token");
    google::rpc::Status error;
    error.ParseFromString(status.error_details());
    // They come in any order.
    std::set<std::string> details;
    for (const auto& detail : error.details()) details.insert(detail.SerializeAsString());
    return absl::StrReplaceAll(
        absl::StrCat(Outcome(status), " ", status.error_message(), " ", absl::StrJoin(details, " "),
                     " ", answer->ShortDebugString()),
        {{name, "NAME"}});
  }
  // What Alice sees, and may do, by every method that only reads or can be tried.
  std::string ViewOfAlice() {
    std::string view;
    for (const ApiMethod& method : kApiMethods) {
      // These never end, change the model, or have the time of the call.
      const std::set<std::string> left_out = {"ModelService/WatchModel", "AnalysisService/Analyze",
                                              "HistoryService/ExportModel"};
      if (method.caller != std::string("reader") || left_out.contains(method.path)) continue;
      absl::StrAppend(&view, method.path, ": ",
                      Seen("alice", method.path, method.Request("models/a-here")), "\n");
    }
    for (const auto& [method, request] :
         {std::pair{"ModelService/GetModel", "name: 'models/a-here' view: MODEL_VIEW_WEIGHTS"},
          {"PredictionService/Predict",
           "model: 'aliases/a-here' examples { dense { values: [1, 2] } }"},
          {"ModelService/DeleteModel", "name: 'models/a-other' validate_only: true"},
          {"ModelService/FreezeModel", "name: 'models/a-here' validate_only: true"},
          {"AliasService/UpdateAlias",
           "alias { name: 'aliases/a-here' model: 'models/a-other' } "
           "validate_only: true"}})
      absl::StrAppend(&view, method, ": ", Seen("alice", method, request), "\n");
    return view;
  }
};

// Each request of Bob's names Alice's model in a field, or where none of the fields is: he is told the same whether it
// exists or not, and she sees and may do the same afterwards.
TEST_F(TwoPrincipalsTest, WhateverOneDoesTheOtherSeesAndMayDoTheSame) {
  for (const char* id : {"a-here", "a-other", "a-none", "b-mine"})
    ASSERT_EQ(CreateAs("admin", id), "OK");
  ASSERT_EQ(As("alice", "LearningService/Learn",
               "model: 'models/a-here' examples { dense { values: [1, 2] } label: 1 }"),
            "OK");
  NameAs("alice", "a-here", "a-here");
  NameAs("bob", "b-x", "b-mine");
  const std::string file_over_here = FileOver("models/a-here");
  const std::string file_over_none = FileOver("models/a-none");
  CreateComposition("b-over", "models/a-here");
  EXPECT_EQ(
      As("bob", "HistoryService/CopyModel", "name: 'models/b-over' new_name: 'models/b-copy'"),
      kDenied);
  const std::string exported = Export("b-over", "bob-token");
  for (const char* id : {"b-over", "a-none"})
    ASSERT_EQ(As("admin", "ModelService/DeleteModel", absl::StrCat("name: 'models/", id, "'")),
              "OK");

  // As ApiMethod's.
  std::vector<std::pair<std::string, std::string>> attempts = {
      {"ModelService/CreateModel",
       "model_id: 'b-c' model { feature_space { composition { inputs { model: '$' } } } }"},
      {"ModelService/GetModel", "name: 'aliases/%'"},
      {"PredictionService/PredictStream", "model: 'aliases/%'"},
      {"AliasService/UpdateAlias", "alias { name: 'aliases/b-y' model: '$' } allow_missing: true"},
      {"AliasService/UpdateAlias",
       "alias { name: 'aliases/%' model: 'models/b-mine' } allow_missing: true"},
      {"AliasService/ChallengeAlias", "name: 'aliases/b-x' challenger: '$'"},
      {"HistoryService/CopyModel", "name: '$' new_name: 'models/b-c'"},
      {"HistoryService/CopyModel", "name: 'models/b-mine' new_name: '$'"},
      {"HistoryService/RenameModel", "name: '$' new_name: 'models/b-c'"},
      {"HistoryService/RenameModel", "name: 'models/b-mine' new_name: '$'"},
  };
  for (const ApiMethod& method : kApiMethods)
    if (method.NamesModel()) attempts.emplace_back(method.path, method.request);
  const std::string before = ViewOfAlice();
  for (const auto& [path, request] : attempts) {
    SCOPED_TRACE(absl::StrCat(path, " ", request));
    const auto seen = [&, &path = path, &request = request](const std::string& name) {
      return Seen("bob", path, absl::StrReplaceAll(request, {{"$", "models/" + name}, {"%", name}}),
                  name);
    };
    const std::string of_here = seen("a-here");
    EXPECT_THAT(of_here, ::testing::StartsWith(kDenied));
    EXPECT_EQ(of_here, seen("a-none"));
    ASSERT_EQ(ViewOfAlice(), before);
  }
  for (const std::string& file : {file_over_here, file_over_none, exported}) {
    ImportCall call(*history_, "b-c", "", "bob-token");
    call.SendAll(file);
    EXPECT_EQ(Outcome(call.Finish()), kDenied);
  }
  ASSERT_EQ(ViewOfAlice(), before);
  // What he may do himself, by every method, with a model of his and without one.
  for (const ApiMethod& method : kApiMethods) {
    SCOPED_TRACE(method.path);
    // It never ends.
    if (method.path == std::string("ModelService/WatchModel")) continue;
    EXPECT_THAT(Seen("bob", method.path, method.Request("models/b-mine")),
                Not(HasSubstr("a-here")));
    ASSERT_EQ(ViewOfAlice(), before);
  }
  EXPECT_EQ(As("alice", "ModelService/DeleteModel", "name: 'models/a-other'"), "OK");
}

TEST_F(TwoPrincipalsTest, AnIdThatOneHasUsedIsNotTheOthers) {
  const std::string create =
      "model_id: 'shared-m' request_id: 'r' model { feature_space { dense { dimension: 2 } } }";
  const std::string freeze = "name: 'models/shared-m' request_id: 'r'";
  v1::Model model;
  ASSERT_EQ(As("alice", "ModelService/CreateModel", create, &model), "OK");
  // The example at this offset, which is always a mistake.
  const auto learn = [&](const std::string& principal, int offset) {
    v1::LearnResponse response;
    const std::string outcome =
        As(principal, "LearningService/Learn",
           absl::StrCat("model: 'models/shared-m' producer_id: 'p' first_offset: ", offset,
                        " examples { dense { values: [1, ", offset,
                        "] } label: ", offset % 2 == 0 ? 1 : -1, " }"),
           &response);
    return absl::StrCat(outcome, " ", response.result().acknowledged_offset());
  };
  EXPECT_EQ(learn("alice", 0), "OK 0");
  const auto bob_is_denied = [&] {
    EXPECT_EQ(learn("bob", 1), absl::StrCat(kDenied, " 0"));
    for (const std::string& resume :
         {std::string(), absl::StrCat("resume { model_uid: '", model.uid(),
                                      "' acknowledged_offset: 1000 accept_loss: true }")}) {
      EXPECT_EQ(As("bob", "LearningService/LearnStream",
                   absl::StrCat("model: 'models/shared-m' producer { id: 'p' ", resume, " }")),
                kDenied);
    }
    EXPECT_EQ(As("bob", "ModelService/CreateModel", create), kDenied);
  };
  bob_is_denied();
  EXPECT_EQ(learn("alice", 1), "OK 1");
  EXPECT_EQ(As("alice", "ModelService/CreateModel", create), "OK");
  EXPECT_EQ(As("alice", "ModelService/FreezeModel", freeze), "OK");
  EXPECT_EQ(As("bob", "ModelService/FreezeModel", freeze), kDenied);
  EXPECT_EQ(As("alice", "ModelService/UnfreezeModel", freeze), "OK");
  // The ids of a principal are still its own after a restart, and under its new name.
  server_.Terminate();
  Write(Rules("name: 'carol' former_name: 'alice'"));
  RestartAfterEnd();
  bob_is_denied();
  EXPECT_EQ(learn("alice", 2), "OK 2");
  EXPECT_EQ(As("alice", "ModelService/CreateModel", create), "OK");
  EXPECT_EQ(As("alice", "ModelService/GetModel", "name: 'models/shared-m'", &model), "OK");
  EXPECT_EQ(model.report().examples(), 3);
}

}  // namespace
}  // namespace perceptrond::testing
