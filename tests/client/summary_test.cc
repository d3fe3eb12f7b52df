// Summaries of runs and models as JSON; tests/integration/transcripts has the texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "client/ctl/command.h"
#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/evaluation.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/error.h"

namespace perceptrond::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LearnSummary, CountsInTheFormOfProtobufsJsonWithoutThePassesOfAnEarlierRun) {
  LearnSummary summary;
  summary.model = "models/m";
  summary.totals.examples = 2;
  summary.passes.emplace_back().set_number(1);
  summary.passes.emplace_back().set_number(2);
  summary.passes.back().set_examples(2);
  EXPECT_THAT(summary.Json(), AllOf(HasSubstr("\"examples\":\"2\",\"mistakes\":\"0\""),
                                    HasSubstr("\"passes\":[{\"number\":\"2\",\"examples\":\"2\""),
                                    HasSubstr("\"converged\":false}]")));
}

TEST(PredictSummary, SaysInJsonWhereItIsPartial) {
  PredictSummary summary;
  EXPECT_THAT(summary.Json(), Not(HasSubstr("partial")));
  summary.partial = true;
  EXPECT_THAT(summary.Json(), HasSubstr("\"partial\":true"));
}

TEST(PredictSummary, TheMarginOfDataIsTheLeastOfItsExamplesMargins) {
  PredictSummary summary;
  const auto add = [&](int actual, std::optional<float> distance) {
    ++summary.examples;
    summary.labelled.confusion.Add(actual, distance.value_or(0) > 0 ? 1 : -1);
    summary.labelled.margin.Add(actual, distance);
    return summary.Json();
  };
  EXPECT_THAT(summary.Json(), Not(HasSubstr("margin")));
  EXPECT_THAT(add(1, 2), HasSubstr(",\"margin\":2}"));
  EXPECT_THAT(add(-1, -0.5F), HasSubstr(",\"margin\":0.5}"));
  EXPECT_THAT(add(1, -0.25F), HasSubstr(",\"margin\":-0.25}"));
  EXPECT_THAT(add(-1, -3), HasSubstr(",\"margin\":-0.25}"));
  // Weights that are zero have no distance.
  EXPECT_THAT(add(1, std::nullopt), Not(HasSubstr("margin")));
}

TEST(PredictSummary, LabelZeroIsMinusOneOnlyWhereTheOthersArePlusOne) {
  for (const auto& [labels, counted] : std::vector<std::pair<std::vector<int>, uint64_t>>{
           {{1, -1}, 2}, {{1, 0, 0}, 3}, {{1, 0, -1}, 2}, {{0, -1}, 1}, {{0, 0}, 0}}) {
    PredictSummary summary;
    for (const int label : labels) summary.AddTwoLabels({label, 1, 1, std::nullopt, std::nullopt});
    EXPECT_EQ(summary.DecideZeroLabels().empty(), labels[1] == -1 && labels[0] == 1);
    EXPECT_EQ(summary.labelled.confusion.total(), counted);
  }
}

TEST(PredictSummary, ALabelThatTheModelDoesNotHaveIsAnError) {
  PredictSummary two;
  two.AddTwoLabels({1, 1, 1, std::nullopt, std::nullopt});
  two.AddTwoLabels({kUnknownClass, 1, 1, std::nullopt, std::nullopt});
  EXPECT_THAT(two.Json(),
              AllOf(HasSubstr("\"labelled\":\"2\""), HasSubstr("\"unknownLabels\":\"1\""),
                    HasSubstr("\"errors\":\"1\",\"errorRate\":0.5")));
  PredictSummary classes;
  classes.AddClass({0, 0, 1, 1.F, std::nullopt});
  classes.AddClass({kUnknownClass, 0, 1, 1.F, std::nullopt});
  EXPECT_THAT(classes.Json(),
              AllOf(HasSubstr("\"unknownLabels\":\"1\""), HasSubstr("\"errors\":\"1\"")));
  for (PredictSummary* known : {&two, &classes}) {
    known->DropLabelsIfAllAreUnknown();
    EXPECT_EQ(known->unknown_labels, 1U);
  }
  // Texts with tabs in them.
  PredictSummary texts;
  texts.AddTwoLabels({kUnknownClass, 1, 1, std::nullopt, std::nullopt});
  texts.DropLabelsIfAllAreUnknown();
  EXPECT_THAT(texts.Json(), AllOf(HasSubstr("\"unknownLabels\":\"0\""), Not(HasSubstr("errors"))));
}

TEST(PredictSummary, OfEqualClassScoresNeitherIsRight) {
  PredictSummary summary;
  summary.classes_known = 2;
  summary.AddClass({0, 0, 0, std::nullopt, std::nullopt});
  summary.AddClass({0, 0, 1, 0.F, std::nullopt});
  summary.AddClass({0, 0, 1, 0.5F, std::nullopt});
  EXPECT_EQ(summary.classes.errors(), 2U);
  summary.tie_rule = v1::TIE_RULE_POSITIVE;
  summary.AddClass({0, 0, 1, 0.F, std::nullopt});
  EXPECT_EQ(summary.classes.errors(), 2U);
}

TEST(PredictionLine, HasTheProbabilityWhereThereIsOne) {
  v1::PredictResponse message;
  for (const float score : {-1.F, 2.5F}) message.add_scores(score);
  for (const int label : {-1, 1}) message.add_predicted_labels(label);
  for (int k = 0; k < 6; ++k) message.add_class_scores(static_cast<float>(k));
  message.set_revision(7);
  const std::vector<std::string> names = {"ham", "spam"};
  EXPECT_EQ(PredictionLine(AnswerToRow(message, 1, nullptr), names), "spam\t2.5\t-\n");
  EXPECT_EQ(ClassPredictionLine(AnswerToRow(message, 1, nullptr), {"tea", "rum\n"}),
            "rum\\n\t2.5\t-\n");
  EXPECT_EQ(ClassPredictionLine(AnswerToRow(message, 1, nullptr), {"tea"}), "1\t2.5\t-\n");
  EXPECT_EQ(ClassPredictionLine(AnswerToRow(message, 0, nullptr), {"tea"}), "-\t-1\t-\n");
  for (const float distance : {-.5F, 1.25F}) message.add_distances(distance);
  for (const float probability : {.25F, .75F}) message.add_probabilities(probability);
  EXPECT_EQ(PredictionLine(AnswerToRow(message, 1, nullptr), names), "spam\t2.5\t1.25\t0.75\n");
  EXPECT_EQ(
      PredictionJsonLine(AnswerToRow(message, 0, nullptr)),
      "{\"scores\":[-1],\"predictedLabels\":[-1],\"distances\":[-0.5],\"probabilities\":[0.25],"
      "\"classScores\":[0,1,2],\"classProbabilities\":[],\"revision\":\"7\",\"epoch\":\"0\","
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

TEST(ToJson, HasZerosAndReasonsByNameButInventsNothing) {
  v1::Model model;
  model.mutable_report()->mutable_last_pass();
  model.mutable_weights()->add_vectors();
  for (const char* reason : {"TOO_LONG", "BAD_LABEL", "ZERO"})
    (*model.mutable_report()->mutable_row_errors())[reason] = 1;
  model.set_description("\x1b\x7f\xC2\x9Bü\n");
  const std::string json = ToJson(model, false);
  for (const char* present :
       {"\"revision\":\"0\"", "\"bias\":0", "\"converged\":false",
        "{\"BAD_LABEL\":\"1\",\"TOO_LONG\":\"1\",\"ZERO\":\"1\"}", "\"\\u001b\\u007f\\u009bü\\n\""})
    EXPECT_THAT(json, HasSubstr(present));
  for (const char* absent : {"marginFloor", "marginCeiling", "errorCeiling", "progressiveError",
                             "notSeparable", "createTime", "featureSpace", "drift"})
    EXPECT_THAT(json, Not(HasSubstr(absent)));
}

TEST(Failed, TellsATimeoutFromARefusalAndEscapesWhatTheServerSays) {
  const absl::Status away = absl::UnavailableError("refused");
  EXPECT_EQ(Failed("get m", absl::NotFoundError("no")).code, kExitFailed);
  EXPECT_EQ(Failed("get m", away).code, kExitFailed);
  EXPECT_EQ(Failed("get m", absl::DeadlineExceededError("late")).code, kExitTimeout);
  EXPECT_EQ(Failed("learn m", WithGaveUpAfter(away, absl::Seconds(5))).code, kExitTimeout);
  EXPECT_EQ(Failed("get \x1b", absl::InternalError("a\nb\x1b[m")).error,
            "get \\x1b: a\\nb\\x1b[m (INTERNAL)");
}

// A transcript shows none of these: the words before are gRPC's.
TEST(Failed, SaysWhatToDoAboutTlsAndWebServers) {
  for (const auto& [said, hint] : std::map<std::string, std::string>{
           {"last error: Socket closed", "If it uses TLS, give --tls"},
           {"routines::wrong version number", "omit --tls"},
           {"certificate verify failed", "see --tls-ca"},
           {"Peer name db1 is not in peer certificate", "see --tls-server-name"},
           {"Trying to connect an http1.x server", "give the address that it serves"}})
    EXPECT_THAT(Failed("list", absl::UnavailableError(said)).error, HasSubstr(hint)) << said;
}

TEST(Failed, NamesTheProxyThatTheServerIsCalledThrough) {
  NameProxy("http_proxy");
  EXPECT_THAT(Failed("list", absl::UnavailableError("no")).error, HasSubstr("http_proxy"));
  NameProxy("");
  EXPECT_THAT(Failed("list", absl::UnavailableError("no")).error, Not(HasSubstr("proxy")));
}

}  // namespace
}  // namespace perceptrond::client
