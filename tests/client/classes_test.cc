// Labels of several classes on their way from a file to a message, and answers on their way back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/batch_builder.h"
#include "client/ctl/evaluation.h"
#include "client/ctl/prediction.h"
#include "client/format/format.h"

namespace perceptrond::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a label's text becomes; kNoLabel for an invalid one.
int Read(const LabelRule& rule, std::string_view text) {
  Row row;
  return ReadLabel(rule, text, &row).ok() ? row.label : Row::kNoLabel;
}

TEST(ClassLabels, AreWholeNumbersBelowTheMostOrNames) {
  LabelRule rule;
  rule.max_classes = 3;
  EXPECT_EQ(Read(rule, "0"), 0);
  EXPECT_EQ(Read(rule, "2.0"), 2);
  for (const char* text : {"3", "-1", "0.5", "", "nan", "tea"})
    EXPECT_EQ(Read(rule, text), Row::kNoLabel) << text;
  rule.names = {"tea", "rum", "ale"};
  EXPECT_EQ(Read(rule, "ale"), 2);
  EXPECT_EQ(Read(rule, "2"), 2);
  rule.names = {"tea", "2", "ale"};
  EXPECT_EQ(Read(rule, "ale"), 2);
  EXPECT_EQ(Read(rule, "2"), 1) << "where a name is a number a number is a name";
  EXPECT_EQ(Read(rule, "0"), Row::kNoLabel);
}

TEST(ClassLabels, AreNamesAsTheyStandWhereClassesComeUpByName) {
  LabelRule rule;
  rule.max_classes = 3;
  rule.names = {"tea"};
  rule.new_names = true;
  Row row;
  ASSERT_TRUE(ReadLabel(rule, "7", &row).ok());
  EXPECT_EQ(row.label_name, "7");
  EXPECT_EQ(row.label, Row::kNoLabel);
  EXPECT_TRUE(row.has_label());
  row.Clear();
  EXPECT_FALSE(row.has_label());
  EXPECT_FALSE(ReadLabel(rule, "", &row).ok());
}

Row Named(const std::string& label) {
  Row row;
  row.indices = {1};
  row.label_name = label;
  return row;
}

TEST(ClassLabels, GoOutAsPositionsInTheNamesOfTheirMessage) {
  BatchBuilder builder;
  for (const char* label : {"tea", "rum", "tea"}) ASSERT_TRUE(builder.Add(Named(label)).ok());
  Row unlabelled = Named("");
  EXPECT_TRUE(builder.Fits(unlabelled));
  Row numbered = Named("");
  numbered.label = 1;
  EXPECT_FALSE(builder.Fits(numbered)) << "names and numbers do not go together";
  EXPECT_FALSE(builder.Add(numbered).ok());
  perceptron::v1::ExampleColumns columns;
  builder.Build(&columns);
  EXPECT_THAT(columns.label_names(), ElementsAre("tea", "rum"));
  EXPECT_THAT(columns.labels(), ElementsAre(0, 1, 0));
  // The next message begins anew.
  ASSERT_TRUE(builder.Fits(numbered));
  ASSERT_TRUE(builder.Add(numbered).ok());
  EXPECT_FALSE(builder.Fits(Named("tea")));
  builder.Build(&columns);
  EXPECT_EQ(columns.label_names_size(), 0);
}

TEST(ClassLabels, ANameThatNoMessageMayHoldIsRefusedAlone) {
  BatchBuilder builder;
  EXPECT_FALSE(builder.Add(Named(std::string(1025, 'a'))).ok());
  EXPECT_FALSE(builder.Add(Named("\xff")).ok());
  EXPECT_TRUE(builder.empty());
}

TEST(ClassAnswers, SayTheClassByNameItsScoreAndItsMargin) {
  perceptron::v1::PredictResponse answer;
  answer.add_scores(2.5F);
  answer.add_predicted_labels(1);
  EXPECT_EQ(ClassPredictionLine(answer, {"tea", "rum\n"}), "rum\\n\t2.5\t-\n");
  EXPECT_EQ(ClassPredictionLine(answer, {}), "1\t2.5\t-\n");
  answer.add_distances(0.5F);
  answer.add_probabilities(0.75F);
  answer.set_predicted_labels(0, 7);
  EXPECT_EQ(ClassPredictionLine(answer, {"tea"}), "7\t2.5\t0.5\t0.75\n");
  answer.set_predicted_labels(0, -1);
  EXPECT_THAT(ClassPredictionLine(answer, {"tea"}), ::testing::StartsWith("-\t"));
}

TEST(ClassAnswers, OfOneRowHaveItsScoresOfAllClasses) {
  perceptron::v1::PredictResponse response;
  for (int row = 0; row < 2; ++row) {
    response.add_scores(1);
    response.add_predicted_labels(row);
    for (int k = 0; k < 3; ++k) response.add_class_scores(static_cast<float>(3 * row + k));
  }
  EXPECT_THAT(AnswerToRow(response, 1, nullptr).class_scores(), ElementsAre(3, 4, 5));
  EXPECT_EQ(AnswerToRow(response, 1, nullptr).class_probabilities_size(), 0);
}

TEST(ClassConfusion, CountsWhatWasTakenForWhat) {
  ClassConfusion confusion;
  for (const auto& [actual, predicted] :
       std::vector<std::pair<int, int>>{{0, 0}, {0, 0}, {0, 1}, {1, 1}, {2, 0}})
    confusion.Add(actual, predicted);
  EXPECT_EQ(confusion.errors(), 2U);
  const std::string text = confusion.Text({"tea", "rum"});
  EXPECT_THAT(text,
              HasSubstr("errors: 2 of 5 (40.00 %); always predicting the most frequent class: "
                        "40.00 %\n"));
  EXPECT_THAT(text, HasSubstr("  tea: 2 correct, 1 predicted as rum; precision 66.67 %"));
  EXPECT_THAT(
      text,
      HasSubstr("  2: 0 correct, 1 predicted as tea; precision -, recall 0.00 %, F1 0.00 %\n"));
  JsonObject json;
  confusion.AddTo(json, {});
  EXPECT_THAT(json.str(), HasSubstr("{\"actual\":2,\"predicted\":0,\"count\":\"1\"}"));
}

}  // namespace
}  // namespace perceptrond::client
