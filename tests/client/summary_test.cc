// What perceptronctl says of runs and models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "client/ctl/command.h"
#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/commands/predict_summary.h"
#include "client/ctl/convergence.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/ctl/report.h"
#include "client/error.h"

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
  EXPECT_THAT(summary.Json(), HasSubstr("\"converged\":false,\"loss\":0}]"));
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
    (*model.mutable_report()->mutable_rejected())[reason] = 1;
  }
  return model;
}

TEST(Report, ListsReasonsByName) {
  EXPECT_THAT(DescribeReport(WithRefusals()),
              HasSubstr("  refused: 1 BAD_LABEL\n  refused: 1 FEATURE_CAP\n"
                        "  refused: 1 NOT_FINITE\n  refused: 1 TOO_LONG\n  refused: 1 ZERO\n"));
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
    summary.confusion.Add(actual, distance.value_or(0) > 0 ? 1 : -1);
    summary.margin.Add(actual, distance);
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

TEST(Report, BeginsWithTheState) {
  v1::Model model;
  const auto first = [&model](v1::ConvergenceState state) {
    model.mutable_report()->set_state(state);
    const std::string text = DescribeReport(model);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first(v1::CONVERGENCE_STATE_LEARNING), "  learning");
  EXPECT_EQ(first(v1::CONVERGENCE_STATE_CONVERGED),
            "  converged: a whole pass changed nothing, and no update came since");
  EXPECT_EQ(first(v1::CONVERGENCE_STATE_REFUTED),
            "  refuted: no separator has the margin of interest");
  EXPECT_EQ(first(v1::CONVERGENCE_STATE_NOT_SEPARABLE),
            "  not separable, proven: no separator exists, whatever its margin");
  EXPECT_EQ(first(v1::CONVERGENCE_STATE_DRIFTING),
            "  drifting: the error has risen within the last 1000 examples");
  // A server that does not say.
  EXPECT_THAT(first(v1::CONVERGENCE_STATE_UNSPECIFIED), HasSubstr("examples seen"));
}

TEST(Report, SaysTheRiskOfTheWindowAndOfThePass) {
  v1::Model model;
  EXPECT_THAT(DescribeReport(model), Not(HasSubstr("risk")));
  model.mutable_report()->set_window_examples(200);
  model.mutable_report()->set_window_risk(0.25);
  v1::PassSummary& pass = *model.mutable_report()->mutable_last_pass();
  pass.set_number(2);
  pass.set_examples(150);
  pass.set_mistakes(3);
  pass.set_updates(3);
  pass.set_risk(1.5);
  const std::string text = DescribeReport(model);
  EXPECT_THAT(text, HasSubstr("  perceptron risk over the last 200 examples 0.25 an example\n"));
  EXPECT_THAT(text, HasSubstr("  pass 2: 150 examples, 3 mistakes (2.00%), 3 updates, risk 0.01 an "
                              "example\n"));
}

// The averaged perceptron's, the pocket's and the voted perceptron's answers may err on what the
// weights they learn with have right.
TEST(Report, OfARuleThatAnswersWithOtherWeightsSaysWhoseHaveConverged) {
  for (int kind = v1::LearnerKind_MIN; kind <= v1::LearnerKind_MAX; ++kind) {
    v1::Model model;
    model.mutable_learner()->set_kind(static_cast<v1::LearnerKind>(kind));
    model.mutable_report()->set_state(v1::CONVERGENCE_STATE_CONVERGED);
    v1::PassSummary& pass = *model.mutable_report()->mutable_last_pass();
    pass.set_examples(4);
    pass.set_converged(true);
    pass.set_margin(0.5);
    const std::string text = DescribeReport(model);
    const bool otherwise = kind == v1::LEARNER_KIND_AVERAGED_PERCEPTRON ||
                           kind == v1::LEARNER_KIND_POCKET ||
                           kind == v1::LEARNER_KIND_VOTED_PERCEPTRON;
    if (otherwise) {
      EXPECT_THAT(text, HasSubstr("no update came since; it answers with other weights than it "
                                  "learns with, which may still err\n"));
      EXPECT_THAT(text, HasSubstr("converged: the weights it learns with have every example right "
                                  "with margin 0.5; its answers may still err\n"));
    } else {
      EXPECT_THAT(text, Not(HasSubstr("may still err")));
      EXPECT_THAT(text, HasSubstr("converged: every example is right with margin 0.5\n"));
    }
  }
}

TEST(Report, ThatAPassConvergedIsNotSaidAsIfItWereStillSo) {
  v1::Model model;
  model.mutable_report()->mutable_last_pass()->set_examples(4);
  model.mutable_report()->mutable_last_pass()->set_converged(true);
  model.mutable_report()->set_state(v1::CONVERGENCE_STATE_CONVERGED);
  EXPECT_THAT(DescribeReport(model), HasSubstr("converged: every example is right\n"));
  model.mutable_report()->set_state(v1::CONVERGENCE_STATE_LEARNING);
  EXPECT_THAT(DescribeReport(model),
              HasSubstr("converged: every example is right; it is learning again\n"));
}

TEST(Report, SaysTheErrorCeilingTheLossAndDriftOnlyWhereThereAreSome) {
  v1::Model model;
  model.mutable_report()->mutable_drift()->set_window_examples(9);
  EXPECT_THAT(DescribeReport(model), Not(HasSubstr("drift")));
  EXPECT_THAT(DescribeReport(model), Not(HasSubstr("confidence")));
  EXPECT_THAT(DescribeReport(model), Not(HasSubstr("loss")));
  model.mutable_report()->set_error_ceiling(0.023);
  model.mutable_report()->set_mean_loss(0.5);
  auto* drift = model.mutable_report()->mutable_drift();
  drift->set_detected(2);
  drift->set_last_example(4000);
  drift->set_error_before(0.1);
  drift->set_error_after(0.4);
  EXPECT_THAT(
      DescribeReport(model),
      HasSubstr("  mean loss 0.5 an example\n  with 95 % confidence errs on at most 2.30% of "
                "examples like the latest\n  drift found 2 times, last at example 4000: the "
                "error rose from 10.00% to 40.00%\n"));
}

TEST(PredictionLine, HasTheProbabilityWhereThereIsOne) {
  v1::PredictResponse message;
  for (const float score : {-1.F, 2.5F}) message.add_scores(score);
  for (const int label : {-1, 1}) message.add_labels(label);
  message.set_revision(7);
  const std::vector<std::string> names = {"ham", "spam"};
  EXPECT_EQ(PredictionLine(AnswerToRow(message, 1, nullptr), names), "spam\t2.5\t-\n");
  for (const float distance : {-.5F, 1.25F}) message.add_distances(distance);
  for (const float probability : {.25F, .75F}) message.add_probabilities(probability);
  EXPECT_EQ(PredictionLine(AnswerToRow(message, 1, nullptr), names), "spam\t2.5\t1.25\t0.75\n");
  EXPECT_EQ(
      PredictionJsonLine(AnswerToRow(message, 0, nullptr)),
      "{\"scores\":[-1],\"labels\":[-1],\"distances\":[-0.5],\"revision\":\"7\",\"errors\":[],"
      "\"probabilities\":[0.25],\"classScores\":[],\"classProbabilities\":[],"
      "\"componentRevisions\":[]}\n");
}

TEST(PredictionLine, SaysWhyARowWasRefusedAlsoWithDetailsThatNobodyKnows) {
  v1::PredictResponse message;
  message.add_scores(std::numeric_limits<float>::quiet_NaN());
  message.add_labels(0);
  v1::RowError error;
  *error.mutable_status() =
      ToRpcStatus(MakeError(absl::StatusCode::kInvalidArgument, "NON_FINITE_VALUE", "no number"));
  error.mutable_status()->add_details()->set_type_url("type.googleapis.com/no.such.Message");
  const std::string line = PredictionJsonLine(AnswerToRow(message, 0, &error));
  EXPECT_THAT(line, HasSubstr("\"scores\":[\"NaN\"],\"labels\":[0]"));
  EXPECT_THAT(line, HasSubstr("\"reason\":\"NON_FINITE_VALUE\""));
}

TEST(ToJson, HasZerosButInventsNothing) {
  v1::Model model;
  model.mutable_report()->mutable_last_pass();
  model.mutable_weights();
  const std::string json = ToJson(model, false);
  EXPECT_THAT(json, HasSubstr("\"revision\":\"0\""));
  EXPECT_THAT(json, HasSubstr("\"offset\":0"));
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

TEST(Failed, EscapesWhatTheServerSays) {
  EXPECT_EQ(Failed("get \x1b", absl::InternalError("a\nb\x1b[m")).error,
            "get \\x1b: a\\nb\\x1b[m (INTERNAL)");
}

}  // namespace
}  // namespace perceptrond::client
