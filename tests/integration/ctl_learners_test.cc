// perceptronctl learns: every rule, until it converges, on the textbook's and on real data.
#include <map>

#include "core/learner/catalogue.h"
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

TEST_F(CtlTest, XorIsProvenNotSeparableAndIsLearnedWithTheProductOfItsInputs) {
  const std::string xor_ = "1 1:-1 2:-1\n1 1:1 2:1\n-1 1:-1 2:1\n-1 1:1 2:-1\n";
  const std::string options = " - --format svmlight --index-base 1";
  EXPECT_EQ(Ctl("create xor --dimension 2").exit_code, 0);
  EXPECT_EQ(Ctl("learn xor" + options, xor_).exit_code, 0);
  EXPECT_EQ(Json<v1::Model>("get xor").report().state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
  EXPECT_THAT(Ctl("get xor").out, ::testing::HasSubstr("no separator exists"));
  const CommandResult made = Ctl("create product --dimension 2 --polynomial 2 --interactions-only");
  EXPECT_EQ(made.exit_code, 0);
  EXPECT_THAT(made.out, ::testing::HasSubstr("polynomial of degree 2, interactions only"));
  EXPECT_EQ(Ctl("learn product --until-converged" + options, xor_).exit_code, 0);
  const v1::Model model = Json<v1::Model>("get product --weights");
  EXPECT_EQ(model.report().state(), v1::CONVERGENCE_STATE_CONVERGED);
  EXPECT_THAT(model.weights().vectors(0).indices(), ::testing::ElementsAre(2));
  EXPECT_THAT(model.weights().vectors(0).values(), ::testing::ElementsAre(4));
  EXPECT_EQ(Ctl("create odd --dimension 2 --interactions-only").exit_code, 2);
}

TEST_F(CtlTest, ProductsOfSeveralPairsOfGroupsAreListedOrGivenOneByOne) {
  const auto pairs = [&](const std::string& name) {
    const v1::Model model = Json<v1::Model>("get " + name);
    std::string text;
    for (const auto& pair : model.feature_space().map().products().pairs())
      text += "(" + pair.first() + " " + pair.second() + ")";
    return text;
  };
  const CommandResult listed = Ctl("create listed --named --products user:page,user:hour");
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out, ::testing::HasSubstr("products of groups user:page user:hour"));
  EXPECT_EQ(pairs("listed"), "(user page)(user hour)");
  EXPECT_EQ(Ctl("create --products user:page --products user:hour,a:a repeated --named").exit_code,
            0);
  EXPECT_EQ(pairs("repeated"), "(user page)(user hour)(a a)");
}

TEST_F(CtlTest, XorIsComposedOfGatesThatWereLearned) {
  const std::string options = " - --format svmlight --index-base 1 --until-converged";
  const auto table = [](const std::vector<int>& labels) {
    std::string text;
    for (int i = 0; i < 4; ++i) {
      text += (labels[static_cast<size_t>(i)] > 0 ? "+1 1:" : "-1 1:") + std::to_string(i / 2) +
              " 2:" + std::to_string(i % 2) + "\n";
    }
    return text;
  };
  for (const auto& [gate, labels] :
       std::map<std::string, std::vector<int>>{{"or", {-1, 1, 1, 1}}, {"nand", {1, 1, 1, -1}}}) {
    ASSERT_EQ(Ctl("create " + gate + " --dimension 2").exit_code, 0);
    ASSERT_EQ(Ctl("learn " + gate + options, table(labels)).exit_code, 0);
  }
  ASSERT_EQ(Ctl("create xor --compose or,nand").exit_code, 0);
  EXPECT_THAT(Ctl("get xor").out, ::testing::HasSubstr("the outputs of or (step), nand (step)"));
  EXPECT_EQ(Ctl("learn xor" + options, table({-1, 1, 1, -1})).exit_code, 0);
  EXPECT_EQ(
      CtlOut("predict xor - --format svmlight --index-base 1 --summary", table({-1, 1, 1, -1}))
          .exit_code,
      0);
  // What it claims was of what they answered then.
  ASSERT_EQ(Ctl("create claims --compose or,nand --store-sample 10").exit_code, 0);
  EXPECT_EQ(Ctl("learn claims --analyze" + options, table({-1, 1, 1, -1})).exit_code, 0);
  const std::string before = Ctl("get claims").out;
  EXPECT_THAT(before, ::testing::HasSubstr("\n  state: CONVERGED"));
  EXPECT_THAT(before, ::testing::HasSubstr("none left on the data seen"));
  EXPECT_EQ(Ctl("learn or - --format svmlight --index-base 1", "-1 1:0 2:1\n").exit_code, 0);
  const std::string after = Ctl("get claims").out;
  EXPECT_THAT(after, ::testing::HasSubstr("\n  state: LEARNING"));
  EXPECT_THAT(after, ::testing::Not(::testing::HasSubstr("none left on the data seen")));
  EXPECT_THAT(after, ::testing::HasSubstr("in the API completed_pass marks them"));
  const CommandResult row_errors = Ctl("delete or");
  EXPECT_NE(row_errors.exit_code, 0);
  EXPECT_THAT(row_errors.out, ::testing::HasSubstr("MODEL_IN_USE"));
  const CommandResult cycle = Ctl("create loop --compose or,loop");
  EXPECT_NE(cycle.exit_code, 0);
  EXPECT_THAT(cycle.out, ::testing::HasSubstr("COMPOSITION_CYCLE"));
  EXPECT_EQ(Ctl("create odd --compose or:sometimes").exit_code, 2);
}

TEST_F(CtlTest, XorIsLearnedByAKernelWhichHasNoWeightsToShow) {
  const std::string xor_ = "1 1:-1 2:-1\n1 1:1 2:1\n-1 1:-1 2:1\n-1 1:1 2:-1\n";
  const CommandResult made =
      Ctl("create xor --dimension 2 --learner kernel-perceptron --kernel polynomial --budget 10");
  EXPECT_EQ(made.exit_code, 0) << made.out;
  EXPECT_THAT(made.out, ::testing::HasSubstr("budget 10, kernel (1 + x z)^2"));
  EXPECT_EQ(Ctl("learn xor - --format svmlight --index-base 1 --until-converged", xor_).exit_code,
            0);
  EXPECT_EQ(Json<v1::Model>("get xor").report().state(), v1::CONVERGENCE_STATE_CONVERGED);
  const CommandResult weights = Ctl("get xor --weights");
  EXPECT_EQ(weights.exit_code, 1);
  EXPECT_THAT(weights.out, ::testing::HasSubstr("NOT_LINEAR"));
  EXPECT_THAT(weights.out, ::testing::HasSubstr("without a weight vector"));
  EXPECT_EQ(Ctl("create odd --dimension 2 --learner kernel-perceptron --kernel-degree 3").exit_code,
            2);
  EXPECT_EQ(Ctl("create odd --dimension 2 --kernel linear").exit_code, 2);
}

TEST_F(CtlTest, AnAnalysisOfAKernelsModelIsRefusedInWordsAndLeavesItConverged) {
  const std::string xor_ = "-1 1:0 2:0\n+1 1:0 2:1\n+1 1:1 2:0\n-1 1:1 2:1\n";
  Ctl("create xor --dimension 2 --learner kernel-perceptron --kernel polynomial --store-sample 10 "
      "--margin-of-interest 0.01");
  const CommandResult learned =
      Ctl("learn xor - --format svmlight --index-base 1 --until-converged --analyze", xor_);
  EXPECT_EQ(learned.exit_code, 1) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("learns in its kernel's space"));
  EXPECT_THAT(learned.out, ::testing::HasSubstr("KERNEL_SPACE"));
  const CommandResult got = Ctl("get xor");
  EXPECT_THAT(got.out, ::testing::HasSubstr("\n  state: CONVERGED"));
  EXPECT_THAT(got.out, ::testing::Not(::testing::HasSubstr("separable")));
}

TEST_F(CtlTest, TheBatchPerceptronStepsAtTheEndOfEachPass) {
  const CommandResult made = Ctl("create and --dimension 2 --learner batch-perceptron");
  EXPECT_EQ(made.exit_code, 0) << made.out;
  const CommandResult learned =
      Ctl("learn and - --format svmlight --index-base 1 --until-converged", and_);
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 10: 4 examples, 0 mistakes"));
  // 15 mistakes and 9 steps.
  const v1::Model model = Json<v1::Model>("get and --weights");
  EXPECT_EQ(model.revision(), 24);
  EXPECT_THAT(model.weights().vectors(0).values(), ::testing::ElementsAre(2, 2));
  EXPECT_EQ(model.weights().vectors(0).bias(), -3);
}

TEST_F(CtlTest, EveryLearnerOfTheApiCanBeCreatedLearnsAndSaysItsName) {
  for (const CatalogueEntry& entry : Catalogue()) {
    const std::string& name = entry.name;
    const std::string id = "m-" + name;
    ASSERT_EQ(Ctl("create " + id + " --dimension 2 --learner " + name).exit_code, 0) << name;
    EXPECT_EQ(Ctl("learn " + id + " - --format svmlight --index-base 1", and_).exit_code, 0);
    EXPECT_THAT(Ctl("get " + id).out, ::testing::HasSubstr("learner:      " + name + ","));
    EXPECT_GT(Json<v1::Model>("get " + id).revision(), 0) << name;
  }
  const CommandResult wrong =
      Ctl("create m --dimension 2 --learner passive-aggressive --step-size 2");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.out, ::testing::HasSubstr(
                             "--step-size: the learner passive-aggressive has no such setting; "
                             "learners that have it: perceptron, logistic-regression, "
                             "batch-perceptron\n"));
  for (const auto& [flag, learners] : std::initializer_list<std::pair<const char*, const char*>>{
           {"--steps decreasing", "logistic-regression"},
           {"--budget 10", "kernel-perceptron, voted-RULE"},
           {"--ratchet-examples 10", "pocket-RULE"},
           {"--kernel-gamma 2", "kernel-perceptron"},
           {"--kernel-degree 2", "kernel-perceptron"}}) {
    const std::string given = flag;
    EXPECT_THAT(Ctl("create m --dimension 2 " + given).out,
                ::testing::HasSubstr(given.substr(0, given.find(' ')) +
                                     ": the learner perceptron has no such setting; learners that "
                                     "have it: " +
                                     learners + "\n"));
  }
  EXPECT_EQ(Ctl("create m --dimension 2 --learner voted-arow").exit_code, 1);
  EXPECT_EQ(Ctl("create m --dimension 2 --learner tall-arow").exit_code, 2);
}

TEST_F(CtlTest, StepsOfLogisticRegressionAreChosenByAFlagAndShown) {
  const std::string create = "create m --dimension 2 --step-size 0.5 --learner ";
  EXPECT_THAT(Ctl(create + "averaged-logistic-regression --steps decreasing").out,
              ::testing::HasSubstr("step size 0.5, update threshold 0, decreasing steps"));
  EXPECT_THAT(Ctl("create n --dimension 2 --learner logistic-regression --steps adaptive").out,
              ::testing::HasSubstr(", adaptive steps"));
  for (const char* model : {"m ", "n "}) {
    EXPECT_EQ(
        Ctl("learn " + std::string(model) + "- --format svmlight --index-base 1", and_).exit_code,
        0);
    EXPECT_EQ(Json<v1::Model>("get " + std::string(model)).revision(), 4);
  }
  EXPECT_THAT(Ctl("explain n - --format svmlight --index-base 1", "1:1 2:1\n").out,
              ::testing::HasSubstr("an update's step depends on those before it"));
  EXPECT_THAT(
      Ctl("create o --dimension 2 --learner averaged-logistic-regression --steps adaptive").out,
      ::testing::HasSubstr("adaptive steps cannot be averaged"));
  EXPECT_THAT(Ctl("create o --dimension 2 --steps adaptive").out,
              ::testing::HasSubstr("--steps: the learner perceptron has no such setting"));
  EXPECT_EQ(Ctl("create o --dimension 2 --learner logistic-regression --steps wide").exit_code, 2);
}

TEST_F(CtlTest, TheLearnerWithoutSettingsShowsItsMembersAndBoundAndRefusesWhatItHasNot) {
  ASSERT_EQ(Ctl("create easy --dimension 2 --learner auto").exit_code, 0);
  ASSERT_EQ(Ctl("learn easy - --format svmlight --index-base 1", and_).exit_code, 0);
  const v1::Model model = Json<v1::Model>("get easy");
  ASSERT_EQ(model.members_size(), 8);
  EXPECT_EQ(model.members(0).learner(), "arow, regularization 0.1");
  double votes = 0;
  for (const v1::Member& member : model.members()) votes += member.vote();
  EXPECT_NEAR(votes, 1, 1e-9);
  EXPECT_LE(static_cast<double>(model.report().mistakes()), model.report().majority_bound());
  const std::string shown = Ctl("get easy").out;
  EXPECT_THAT(shown, ::testing::HasSubstr("mistakes (by the weighted majority's bound)"));
  EXPECT_THAT(shown, ::testing::ContainsRegex("\n  averaged-perceptron: [0-9.]+ % of the votes, "));
  EXPECT_THAT(Ctl("create m --dimension 2 --learner averaged-auto").out,
              ::testing::HasSubstr("the rule auto does not allow it; leave it out"));
  EXPECT_THAT(
      Ctl("create m --dimension 2 --learner auto --class-weights 1,2").out,
      ::testing::HasSubstr("the learner auto has no weights of examples; leave them out, or "
                           "choose a learner that has them: perceptron, "));
  EXPECT_THAT(Ctl("create m --dimension 2 --learner auto --step-size 2").out,
              ::testing::HasSubstr("has no such setting"));
  EXPECT_THAT(Ctl("get easy --weights").out, ::testing::HasSubstr("NOT_LINEAR"));
  EXPECT_THAT(Ctl("explain easy - --format svmlight --index-base 1", "1:1 2:1\n").out,
              ::testing::HasSubstr("its learner is auto"));
  Ctl("create other --dimension 2");
  EXPECT_FALSE(Json<v1::Model>("get other").report().has_majority_bound());
}

TEST_F(CtlTest, LearningUntilConvergedStopsAtTheFirstPassWithoutAChange) {
  Ctl("create and --dimension 2 --tie positive");
  const CommandResult learned =
      Ctl("learn and - --format svmlight --index-base 1 --until-converged", and_);
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 6: 4 examples, 0 mistakes"));
  EXPECT_EQ(Json<v1::Model>("get and").revision(), 11);
}

TEST_F(CtlTest, TextAndLabelNamesTeachANamedModel) {
  Ctl("create spam --named --labels ham,spam");
  const std::string texts = "spam\tWin a prize now\nham\tSee you now\nspam\tA prize!\n";
  EXPECT_EQ(Ctl("learn spam - --format text --until-converged", texts).exit_code, 0);
  const v1::Model model = Json<v1::Model>("get spam --weights");
  EXPECT_THAT(model.weights().vectors(0).names(), ::testing::Contains("prize"));
  EXPECT_THAT(CtlOut("predict spam - --format text", "prize\n").out,
              ::testing::StartsWith("spam\t"));
}

TEST_F(CtlTest, ATextModelLearnsPredictsAndExplainsTexts) {
  EXPECT_THAT(Ctl("create spam --text --labels ham,spam").out,
              ::testing::HasSubstr("text, presence of words 1 to 2, l2 norm 1, 2^20 weights"));
  const std::string texts = "spam\tWIN a prize now\nham\tSee you now\nspam\tA prize!\n";
  EXPECT_EQ(Ctl("learn spam - --format text --until-converged", texts).exit_code, 0);
  EXPECT_THAT(CtlOut("predict spam - --format text", "Prize\n").out,
              ::testing::StartsWith("spam\t"));
  EXPECT_THAT(CtlOut("predict spam - --format jsonl", "{\"text\": \"a PRIZE\"}\n").out,
              ::testing::StartsWith("spam\t"));
  EXPECT_THAT(CtlOut("explain spam - --format text", "A prize\n").out,
              ::testing::HasSubstr("  a prize\n"));
  const CommandResult features = Ctl("learn spam - --format vw", "1 | free\n");
  EXPECT_EQ(features.exit_code, 2);
  EXPECT_THAT(features.out, ::testing::HasSubstr("the model takes texts"));
  EXPECT_THAT(Ctl("draw spam --x free --y prize").out, ::testing::HasSubstr("explain"));
}

TEST_F(CtlTest, FlagsChooseHowTextsBecomeFeatures) {
  const v1::FeatureSpace::Text text =
      Json<v1::Model>(
          "create m --text --text-value log-count --words 1 --characters 3-5 "
          "--keep-norm --hash-bits 18")
          .feature_space()
          .text();
  EXPECT_EQ(text.value(), v1::FeatureSpace::Text::VALUE_LOG_COUNT);
  EXPECT_EQ(text.max_words(), 1U);
  EXPECT_EQ(text.min_characters(), 3U);
  EXPECT_EQ(text.max_characters(), 5U);
  EXPECT_TRUE(text.keep_norm());
  EXPECT_EQ(text.bits(), 18U);
  EXPECT_EQ(Ctl("create n --text --characters 3").exit_code, 2);
  EXPECT_EQ(Ctl("create n --text --named").exit_code, 2);
  EXPECT_EQ(Ctl("create n --named --words 1").exit_code, 2);
}

TEST_F(CtlTest, MushroomsConvergeAsTheReferenceDoes) {
  const std::string file = SharedData("agaricus.train");
  if (file.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  Ctl("create agaricus --dimension 127");
  const CommandResult learned =
      Ctl("learn agaricus " + file + " --format svmlight --index-base 1 --until-converged");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 1: 6,513 examples, 61 mistakes"));
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 15: 6,513 examples, 0 mistakes"));
  EXPECT_EQ(Json<v1::Model>("get agaricus").revision(), 139);
}

TEST_F(CtlTest, IrisConvergesAsTheReferenceDoes) {
  const std::string file = SharedData("iris_setosa.all");
  if (file.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  Ctl("create iris --dimension 4");
  const CommandResult learned =
      Ctl("learn iris " + file + " --format svmlight --index-base 1 --until-converged");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 4: 150 examples, 0 mistakes"));
  EXPECT_THAT(learned.out, ::testing::Not(::testing::HasSubstr("pass 5")));
  EXPECT_EQ(Json<v1::Model>("get iris").revision(), 5);
}

}  // namespace
}  // namespace perceptrond::testing
