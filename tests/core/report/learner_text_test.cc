// Learners as the command line and the status page show them.
#include "core/report/learner_text.h"

#include "gtest/gtest.h"
#include "perceptron/v1/learner.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

TEST(LearnerText, TheNameIsTheWrapperAndTheRule) {
  v1::Learner learner;
  learner.mutable_arow();
  EXPECT_EQ(LearnerName(learner), "arow");
  learner.clear_rule();
  learner.mutable_margin_perceptron();
  learner.mutable_averaged();
  EXPECT_EQ(LearnerName(learner), "averaged-margin-perceptron");
}

TEST(LearnerText, SettingsOfRuleAndWrapperFollowTheName) {
  v1::Learner learner;
  learner.mutable_perceptron()->set_step_size(0.5);
  learner.mutable_pocket()->set_ratchet_examples(100);
  EXPECT_EQ(
      FormatLearner(learner),
      "pocket-perceptron, step size 0.5, ratchet examples 100, bias input 1, a score of 0 is a "
      "mistake");
}

TEST(LearnerText, ACountOf0IsLeftOut) {
  v1::Learner learner;
  learner.mutable_perceptron()->set_step_size(1);
  learner.mutable_pocket()->set_ratchet_examples(0);
  EXPECT_EQ(FormatLearner(learner),
            "pocket-perceptron, step size 1, bias input 1, a score of 0 is a mistake");
}

TEST(LearnerText, AKernelIsItsFormula) {
  v1::Learner learner;
  learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_rbf()->set_gamma(0.5);
  learner.set_bias_input(0);
  learner.set_tie_rule(v1::TIE_RULE_POSITIVE);
  EXPECT_EQ(
      FormatLearner(learner),
      "kernel-perceptron, kernel exp(-0.5 |x - z|^2), bias input 0, a score of 0 is predicted "
      "as +1");
}

TEST(LearnerText, ClassWeightsAndStartingWeightsAreNamed) {
  v1::Learner learner;
  learner.mutable_perceptron();
  learner.add_class_weights(1);
  learner.add_class_weights(3);
  learner.mutable_starting_weights();
  EXPECT_EQ(
      FormatLearner(learner),
      "perceptron, bias input 1, class weights 1 and 3, a score of 0 is a mistake, started from "
      "given weights");
}

TEST(LearnerText, ARuleOfALaterVersionIsSaidToBeUnknown) {
  EXPECT_EQ(LearnerName(v1::Learner()), "a learner unknown to this version");
}

}  // namespace
}  // namespace perceptrond
