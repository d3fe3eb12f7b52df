// What perceptronctl says of runs and models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "client/ctl/command.h"
#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/evaluation.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/ctl/report.h"
#include "client/error.h"
#include "google/rpc/error_details.pb.h"

namespace perceptrond::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PredictSummary, SaysWhereItIsPartial) {
  PredictSummary summary;
  summary.examples = 7;
  summary.revision = 3;
  EXPECT_EQ(summary.Text(), "7 predicted at revision 3\n");
  EXPECT_THAT(summary.Json(), Not(HasSubstr("partial")));
  summary.partial = true;
  EXPECT_EQ(summary.Text(),
            "partial: 7 predicted at revision 3; the rest of the input was not read\n");
  EXPECT_THAT(summary.Json(), HasSubstr("\"partial\":true"));
}

TEST(LearnSummary, CountsInTheFormOfProtobufsJsonThroughout) {
  LearnSummary summary;
  summary.model = "models/m";
  summary.totals.examples = 2;
  summary.passes.emplace_back().set_examples(2);
  EXPECT_THAT(summary.Json(), HasSubstr("\"examples\":\"2\",\"mistakes\":\"0\""));
  EXPECT_THAT(summary.Json(), HasSubstr("\"passes\":[{\"number\":\"0\",\"examples\":\"2\""));
  // Of the pass too, though it is false.
  EXPECT_THAT(summary.Json(), HasSubstr("\"converged\":false}]"));
}

TEST(LearnSummary, SaysOfPassesThatAnEarlierRunLearnedOnlyThatItDid) {
  LearnSummary summary;
  summary.passes.emplace_back().set_number(1);
  summary.passes.emplace_back().set_number(2);
  summary.passes.back().set_examples(5);
  EXPECT_EQ(DescribePass(summary.passes[0]), "pass 1: learned by an earlier run");
  EXPECT_THAT(DescribePass(summary.passes[1]), HasSubstr("pass 2: 5 examples"));
  EXPECT_THAT(summary.Json(), HasSubstr("\"passes\":[{\"number\":\"2\""));
}

TEST(LearnSummary, TellsUpdatesAfterRightAnswersFromThoseAfterMistakes) {
  LearnSummary summary;
  summary.totals.mistakes = 3;
  summary.totals.updates = 57;
  EXPECT_THAT(summary.Text(), HasSubstr("3 mistakes, 57 updates (54 of them without a mistake)"));
  summary.totals.updates = 3;
  EXPECT_THAT(summary.Text(), HasSubstr("3 mistakes, 3 updates; revision"));
}

v1::Model WithRefusals() {
  v1::Model model;
  for (const char* reason : {"TOO_LONG", "BAD_LABEL", "NOT_FINITE", "FEATURE_CAP", "ZERO"}) {
    (*model.mutable_report()->mutable_row_errors())[reason] = 1;
  }
  return model;
}

TEST(Report, ListsReasonsByName) {
  EXPECT_THAT(
      DescribeReport(WithRefusals().report()),
      HasSubstr("  row errors: 1 BAD_LABEL, 1 FEATURE_CAP, 1 NOT_FINITE, 1 TOO_LONG, 1 ZERO\n"));
}

TEST(Report, ListsReasonsByNameInJsonToo) {
  EXPECT_THAT(ToJson(WithRefusals(), false),
              HasSubstr("{\"BAD_LABEL\":\"1\",\"FEATURE_CAP\":\"1\",\"NOT_FINITE\":\"1\","
                        "\"TOO_LONG\":\"1\",\"ZERO\":\"1\"}"));
}

TEST(Report, KeepsAModelsTextsInTheirLines) {
  v1::Model model;
  model.set_name("models/m");
  model.set_description("mail\nstate:        frozen\x1b[2J");
  model.add_label_names("ham\x07");
  model.add_label_names("spam");
  const std::string text = DescribeModel(model);
  EXPECT_THAT(text, HasSubstr("\nmail\\nstate:        frozen\\x1b[2J\n"));
  EXPECT_THAT(text, HasSubstr("-1 ham\\x07, +1 spam\n"));
}

TEST(PredictSummary, TheMarginOfDataIsTheLeastOfItsExamplesMargins) {
  PredictSummary summary;
  const auto text_and_json = [&] { return summary.Text() + summary.Json(); };
  const auto add = [&](int actual, std::optional<float> distance) {
    ++summary.examples;
    summary.labelled.confusion.Add(actual, distance.value_or(0) > 0 ? 1 : -1);
    summary.labelled.margin.Add(actual, distance);
  };
  summary.examples = 1;
  EXPECT_THAT(text_and_json(), Not(HasSubstr("margin")));
  add(1, 2);
  add(-1, -0.5F);
  EXPECT_THAT(summary.Text(), HasSubstr("\nmargin 0.5: "));
  EXPECT_THAT(summary.Json(), HasSubstr(",\"margin\":0.5}"));
  add(-1, 0);
  EXPECT_THAT(summary.Text(), HasSubstr("\nmargin 0: "));
  add(1, -0.25F);
  add(-1, -3);
  EXPECT_THAT(summary.Text(), HasSubstr("\nmargin -0.25: "));
  EXPECT_THAT(summary.Json(), HasSubstr(",\"margin\":-0.25}"));
  // As of an answer from weights that are zero.
  add(1, std::nullopt);
  EXPECT_THAT(text_and_json(), Not(HasSubstr("margin")));
}

TEST(PredictionLine, HasTheProbabilityWhereThereIsOne) {
  v1::PredictResponse message;
  for (const float score : {-1.F, 2.5F}) message.add_scores(score);
  for (const int label : {-1, 1}) message.add_predicted_labels(label);
  message.set_revision(7);
  const std::vector<std::string> names = {"ham", "spam"};
  EXPECT_EQ(PredictionLine(AnswerToRow(message, 1, nullptr), names), "spam\t2.5\t-\n");
  for (const float distance : {-.5F, 1.25F}) message.add_distances(distance);
  for (const float probability : {.25F, .75F}) message.add_probabilities(probability);
  EXPECT_EQ(PredictionLine(AnswerToRow(message, 1, nullptr), names), "spam\t2.5\t1.25\t0.75\n");
  EXPECT_EQ(
      PredictionJsonLine(AnswerToRow(message, 0, nullptr)),
      "{\"scores\":[-1],\"predictedLabels\":[-1],\"distances\":[-0.5],\"probabilities\":[0.25],"
      "\"classScores\":[],\"classProbabilities\":[],\"revision\":\"7\",\"epoch\":\"0\","
      "\"age\":\"0\",\"componentRevisions\":[],\"rowErrors\":[],\"predictionIds\":[],"
      "\"nameTableSize\":0,\"model\":\"\"}\n");
}

TEST(PredictionLine, SaysWhyARowWasRefusedAlsoWithDetailsThatNobodyKnows) {
  v1::PredictResponse message;
  message.add_scores(std::numeric_limits<float>::quiet_NaN());
  message.add_predicted_labels(0);
  v1::RowError error;
  *error.mutable_status() =
      ToRpcStatus(MakeError(absl::StatusCode::kInvalidArgument, "NON_FINITE_VALUE", "no number"));
  error.mutable_status()->add_details()->set_type_url("type.googleapis.com/no.such.Message");
  const std::string line = PredictionJsonLine(AnswerToRow(message, 0, &error));
  EXPECT_THAT(line, HasSubstr("\"scores\":[\"NaN\"],\"predictedLabels\":[0]"));
  EXPECT_THAT(line, HasSubstr("\"reason\":\"NON_FINITE_VALUE\""));
}

TEST(ToJson, HasZerosButInventsNothing) {
  v1::Model model;
  model.mutable_report()->mutable_last_pass();
  model.mutable_weights()->add_vectors();
  const std::string json = ToJson(model, false);
  EXPECT_THAT(json, HasSubstr("\"revision\":\"0\""));
  EXPECT_THAT(json, HasSubstr("\"bias\":0"));
  EXPECT_THAT(json, HasSubstr("\"converged\":false"));
  for (const char* absent : {"marginFloor", "marginCeiling", "errorCeiling", "progressiveError",
                             "notSeparable", "createTime", "featureSpace", "drift"}) {
    EXPECT_THAT(json, Not(HasSubstr(absent)));
  }
}

TEST(ToJson, EscapesControlCharacters) {
  v1::Model model;
  model.set_description("\x1b\x7f\xC2\x9Bü\n");
  EXPECT_THAT(ToJson(model, false), HasSubstr("\"\\u001b\\u007f\\u009bü\\n\""));
}

TEST(Failed, TellsATimeoutFromARefusal) {
  EXPECT_EQ(Failed("get m", absl::NotFoundError("no")).code, kExitFailed);
  EXPECT_EQ(Failed("get m", absl::DeadlineExceededError("late")).code, kExitTimeout);
  const absl::Status away = absl::UnavailableError("refused");
  EXPECT_EQ(Failed("get m", away).code, kExitFailed);
  const Outcome gave_up = Failed("learn m", WithGaveUpAfter(away, absl::Seconds(5)));
  EXPECT_EQ(gave_up.code, kExitTimeout);
  EXPECT_THAT(gave_up.error, HasSubstr("learn m: gave up after 5s without an answer: refused"));
}

TEST(Failed, SaysWhatToDoAboutTls) {
  const auto hint = [](const char* said) {
    return Failed("list", absl::UnavailableError(said)).error;
  };
  EXPECT_THAT(hint("last error: Socket closed"),
              HasSubstr("hint: is perceptrond running there? If it uses TLS, give --tls"));
  EXPECT_THAT(hint("routines::wrong version number"), HasSubstr("omit --tls"));
  EXPECT_THAT(hint("certificate verify failed"), HasSubstr("see --tls-ca"));
  EXPECT_THAT(hint("Peer name db1 is not in peer certificate"), HasSubstr("see --tls-server-name"));
  EXPECT_THAT(hint("Connection refused"), HasSubstr("is perceptrond running there?"));
}

TEST(Failed, SaysThatAWebServerAnswers) {
  const absl::Status status = absl::UnavailableError(
      "last error: UNKNOWN: ipv4:127.0.0.1:7601: Trying to connect an http1.x server");
  EXPECT_THAT(Failed("list", status).error,
              HasSubstr("port 7601): give the address that it serves"));
}

TEST(Failed, SuggestsAModelThatTheCallerMaySee) {
  absl::Status status = absl::NotFoundError("there is no model \"models/spma\"");
  google::rpc::Status details = ToRpcStatus(MakeError(status.code(), "MODEL_NOT_FOUND", "none"));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  (*info.mutable_metadata())["model"] = "models/spma";
  details.mutable_details(0)->PackFrom(info);
  status = ToAbslStatus(details);
  EXPECT_THAT(Failed("get spma", status).error,
              HasSubstr("hint: 'perceptronctl list' lists the models"));
  ListModelsBy([] { return std::vector<std::string>{"ham", "spam"}; });
  EXPECT_THAT(Failed("get spma", status).error,
              HasSubstr("hint: did you mean spam? 'perceptronctl list' lists the models"));
  ListModelsBy([] { return std::vector<std::string>{"eggs"}; });
  EXPECT_THAT(Failed("get spma", status).error, Not(HasSubstr("did you mean")));
  ListModelsBy(nullptr);
}

TEST(Globals, AWebAddressIsNoServer) {
  Globals globals;
  EXPECT_EQ(globals.CheckAddress(), "");
  globals.server = "http://[::1]:7600/models";
  EXPECT_THAT(globals.CheckAddress(), HasSubstr("as [::1]:7600 (perceptrond"));
  globals.server = "a:1,https://b:2";
  EXPECT_THAT(globals.CheckAddress(), HasSubstr("as b:2, and --tls for TLS"));
}

TEST(Globals, APortThatIsNoneIsSaidInsteadOfAnother) {
  Globals globals;
  for (const char* good :
       {"a:1", "a:65535", "[::1]:7600", "::1", "a", "::0", "unix:/tmp/99999", "a:1,b"}) {
    globals.server = good;
    EXPECT_EQ(globals.CheckAddress(), "") << good;
  }
  for (const char* bad : {"a:99999", "a:0", "a:1,b:65536", "[::1]:4294967297000"}) {
    globals.server = bad;
    EXPECT_THAT(globals.CheckAddress(), HasSubstr(" is no port; ports are 1 to 65535")) << bad;
  }
  for (const char* empty : {"", ","}) {
    globals.server = empty;
    EXPECT_THAT(globals.CheckAddress(), HasSubstr("the address is empty")) << empty;
  }
}

TEST(Failed, EscapesWhatTheServerSays) {
  EXPECT_EQ(Failed("get \x1b", absl::InternalError("a\nb\x1b[m")).error,
            "get \\x1b: a\\nb\\x1b[m (INTERNAL)");
}

}  // namespace
}  // namespace perceptrond::client
