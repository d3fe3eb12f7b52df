// A figure is defined by the options of its field alone: metrics, text and page follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/report/figures.h"
#include "core/report/format.h"
#include "core/report/learner_text.h"
#include "core/report/suggestion.h"
#include "perceptron/v1/learner.pb.h"
#include "perceptron/v1/report.pb.h"
#include "server/metrics/family.h"
#include "tests/core/report/test_report.pb.h"

namespace perceptrond {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace pb = ::google::protobuf;
namespace test = ::perceptron::test::v1;
namespace v1 = ::perceptron::v1;

test::TestReport FullTestReport() {
  test::TestReport report;
  report.set_mood(test::MOOD_GOOD);
  report.set_apples(54'000);
  report.set_pears(1);
  (*report.mutable_sorts())["russet"] = 2;
  (*report.mutable_sorts())["cox"] = 1200;
  report.set_ripe(true);
  report.set_weight(12.3456);
  report.mutable_time()->set_seconds(1'700'000'000);
  report.mutable_part()->set_number(3);
  report.mutable_part()->set_share(0.25);
  report.set_bound(6072708.9);
  return report;
}

// Returns "name label=value ... value" for each sample.
std::vector<std::string> Samples(const pb::Message& report) {
  MetricFamilies families;
  AppendReportFamilies({{"m", report}}, families);
  std::vector<std::string> samples;
  for (const MetricFamily& family : families) {
    EXPECT_EQ(family.kind == MetricKind::kCounter, absl::EndsWith(family.name, "_total"));
    for (const MetricSample& sample : family.samples) {
      std::string text = family.name;
      for (const auto& [label, value] : sample.labels)
        absl::StrAppend(&text, " ", label, "=", value);
      samples.push_back(absl::StrCat(text, " ", sample.value));
    }
  }
  return samples;
}

std::vector<std::string> Values(const pb::Message& report) {
  std::vector<std::string> values;
  for (const FigureView& figure : ViewFigures(report))
    values.push_back(absl::StrCat(figure.name, " (", figure.title, "): ", figure.value));
  return values;
}

TEST(Figures, AFieldWithOptionsIsAMetric) {
  EXPECT_THAT(Samples(FullTestReport()),
              ElementsAre("perceptrond_model_mood model_name=m mood=very_good 1",
                          "perceptrond_model_mood model_name=m mood=bad 0",
                          "perceptrond_model_apples_total model_name=m 54000",
                          "perceptrond_model_pears model_name=m 1",
                          "perceptrond_model_sorts_total model_name=m sort=cox 1200",
                          "perceptrond_model_sorts_total model_name=m sort=russet 2",
                          "perceptrond_model_ripe model_name=m 1",
                          "perceptrond_model_weight model_name=m 12.3456",
                          "perceptrond_model_timestamp_seconds model_name=m 1.7e+09",
                          "perceptrond_model_part_number model_name=m 3",
                          "perceptrond_model_part_share_ratio model_name=m 0.25",
                          "perceptrond_model_bound model_name=m 6.07271e+06"));
}

TEST(Figures, AFieldWithOptionsIsALineOfText) {
  EXPECT_THAT(FormatReport(FullTestReport()),
              ElementsAre("mood: VERY GOOD (all is well)",
                          "fruit: 54,000 apples, 1 pear of 54,000 apples (0.008892), ripe",
                          "sorts: 1,200 cox, 2 russet", "weight: 12.3, at most 6,072,708",
                          "time: 2023-11-14T22:13:20Z", "part 3: 25.00 %"));
  EXPECT_EQ(FormatFigures(FullTestReport().part()), "part 3: 25.00 %");
}

TEST(Figures, AFieldWithOptionsIsOnThePage) {
  EXPECT_THAT(Values(FullTestReport()),
              ElementsAre("mood (Mood): VERY GOOD (all is well)", "apples (Apples): 54,000",
                          "pears (Pears): 1", "sorts (Sorts): 1,200 cox, 2 russet",
                          "ripe (Ripe): yes", "weight (Weight): 12.3",
                          "time (Time): 2023-11-14T22:13:20Z", "part.number (Part: number): 3",
                          "part.share (Part: share): 25.00 %", "bound (Bound): 6,072,708"));
}

TEST(Figures, WhatIsNotValidIsAbsentEverywhere) {
  const test::TestReport report;
  EXPECT_THAT(Samples(report), ElementsAre("perceptrond_model_apples_total model_name=m 0",
                                           "perceptrond_model_bound model_name=m 0"));
  EXPECT_THAT(FormatReport(report), ElementsAre("fruit: 0 apples", "weight: no bound"));
  EXPECT_THAT(Values(report), ElementsAre("apples (Apples): 0", "bound (Bound): 0"));
}

TEST(Figures, ATimeThatIsNoneIsTheNearestThatIs) {
  test::TestReport report;
  report.mutable_time()->set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_THAT(FormatReport(report), Contains("time: 9999-12-31T23:59:59Z"));
  report.mutable_time()->set_seconds(std::numeric_limits<int64_t>::min());
  EXPECT_THAT(FormatReport(report), Contains("time: 0001-01-01T00:00:00Z"));
}

TEST(Figures, AFalseThatIsKnownIsAMetricOfZero) {
  test::TestReport report;
  report.set_ripe(false);
  EXPECT_THAT(Samples(report), Contains("perceptrond_model_ripe model_name=m 0"));
  EXPECT_THAT(FormatReport(report), Not(Contains(HasSubstr("ripe"))));
}

bool IsMentioned(const Figure& figure) {
  const std::string name = figure.field().name();
  const pb::Descriptor& type = *figure.field().containing_type();
  for (int i = 0; i < type.field_count(); ++i) {
    const std::string& text = type.field(i)->options().GetExtension(v1::figure).text();
    if (absl::StrContains(text, absl::StrCat("{", name, "}"))) return true;
  }
  return false;
}

TEST(ConvergenceReport, EveryFigureHasAMetricOrAReasonAndATextAndATitle) {
  std::set<std::string> metrics;
  for (const Figure& figure : ListFigures(*v1::ConvergenceReport::descriptor())) {
    const std::string& name = figure.field().full_name();
    EXPECT_NE(figure.options->metric().empty(), figure.options->no_metric().empty()) << name;
    if (!figure.options->metric().empty()) {
      EXPECT_TRUE(metrics.insert(figure.metric).second) << name << " shares " << figure.metric;
      const v1::FigureUnit unit = figure.options->unit();
      EXPECT_EQ(unit == v1::FIGURE_UNIT_RATIO, absl::EndsWith(figure.metric, "_ratio")) << name;
      EXPECT_EQ(unit == v1::FIGURE_UNIT_TIME, absl::EndsWith(figure.metric, "_seconds")) << name;
    }
    EXPECT_TRUE(!figure.options->text().empty() || IsMentioned(figure)) << name;
    EXPECT_FALSE(figure.title.empty()) << name;
    EXPECT_TRUE(absl::EndsWith(figure.options->help(), ".")) << name;
    const bool labelled =
        figure.field().is_map() || figure.field().cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM;
    EXPECT_EQ(labelled, !figure.options->metric_label().empty()) << name;
    // A text for a bool is said if it is true: what is said of false has to be defined.
    if (figure.field().cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL) {
      EXPECT_TRUE(figure.options->has_zero_text()) << name;
    }
  }
}

TEST(ConvergenceReport, EveryFieldIsAFigure) {
  for (const pb::Descriptor* type :
       {v1::ConvergenceReport::descriptor(), v1::PassSummary::descriptor(),
        v1::DriftReport::descriptor(), v1::Analysis::descriptor()}) {
    for (int i = 0; i < type->field_count(); ++i)
      EXPECT_NE(type->field(i)->options().HasExtension(v1::figure),
                type->field(i)->options().deprecated())
          << type->field(i)->full_name();
  }
}

TEST(ConvergenceReport, EveryStateHasAName) {
  const pb::EnumDescriptor& states = *v1::ConvergenceState_descriptor();
  for (int i = 0; i < states.value_count(); ++i) {
    const auto state = static_cast<v1::ConvergenceState>(states.value(i)->number());
    EXPECT_EQ(StateName(state).empty(), state == v1::CONVERGENCE_STATE_UNSPECIFIED);
  }
}

TEST(LearnerText, IsWrapperAndRuleWithTheSettingsThatWereMade) {
  v1::Learner learner;
  EXPECT_EQ(LearnerName(learner), "a learner unknown to this version");
  learner.mutable_perceptron()->set_step_size(0.5);
  learner.mutable_pocket()->set_ratchet_examples(100);
  learner.add_class_weights(1);
  learner.add_class_weights(3);
  EXPECT_EQ(LearnerName(learner), "pocket-perceptron");
  EXPECT_EQ(FormatLearner(learner),
            "pocket-perceptron, step size 0.5, ratchet examples 100, bias input 1, class weights 1 "
            "and 3, a score of 0 is a mistake");
}

TEST(Percent, KeepsTheFirstDigitsOfASmallRatio) {
  EXPECT_EQ(Percent(0), "0.00 %");
  EXPECT_EQ(Percent(0.12345), "12.35 %");
  EXPECT_EQ(Percent(1.2e-6), "0.00012 %");
}

TEST(SuggestWord, FindsTheNearestWordOfATypingErrorAndNothingThatIsFarOff) {
  const std::vector<std::string> commands = {"create", "learn", "list", "predict"};
  EXPECT_EQ(SuggestWord("lern", commands), "learn");
  EXPECT_EQ(SuggestWord("laern", commands), "learn");
  EXPECT_EQ(SuggestWord("predikt", commands), "predict");
  EXPECT_EQ(SuggestWord("creates", commands), "create");
  EXPECT_EQ(SuggestWord("--pases", {"--producer", "--passes-before", "--passes"}), "--passes");
  // Equally near words: the first.
  EXPECT_EQ(SuggestWord("card", {"care", "card"}), "card");
  EXPECT_EQ(SuggestWord("cart", {"card", "care"}), "card");
  EXPECT_EQ(SuggestWord("frobnicate", commands), "");
  EXPECT_EQ(SuggestWord("x", {"y", "xyz"}), "");
  EXPECT_EQ(SuggestWord("", {"a", ""}), "");
  EXPECT_EQ(SuggestWord("learn", {}), "");
  // An exchange of neighbours is one edit, of letters apart two.
  EXPECT_EQ(SuggestWord("abc", {"acb"}), "acb");
  EXPECT_EQ(SuggestWord("abc", {"cba"}), "");
}

}  // namespace
}  // namespace perceptrond
