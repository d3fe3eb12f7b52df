// perceptronctl with several classes: created, taught by number and by name, shown and predicted.
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(CtlTest, ClassesByNumberAreTaughtAndPredicted) {
  ASSERT_EQ(Ctl("create three --dimension 2 --classes 3").exit_code, 0);
  const std::string rows = "0 1:1\n1 2:1\n2 1:-1 2:-1\n";
  const std::string options = " - --format svmlight --index-base 1";
  const CommandResult learned = Ctl("learn three --until-converged" + options, rows);
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  const CommandResult shown = Ctl("get three --weights");
  EXPECT_THAT(shown.out, HasSubstr("classes:      3\n"));
  EXPECT_THAT(shown.out, HasSubstr("weights of 2:"));
  const CommandResult predicted = Ctl("predict three" + options, rows + "2 1:1\n");
  EXPECT_EQ(predicted.exit_code, 0) << predicted.out;
  EXPECT_THAT(predicted.out, HasSubstr("errors: 1 of 4 (25.00 %); always predicting the most "
                                       "frequent class: 50.00 %\n"));
  EXPECT_THAT(predicted.out,
              HasSubstr("  2: 1 correct, 1 predicted as 0; precision 100.00 %, recall 50.00 %"));
  const auto summary =
      Object(CtlOut("predict three --summary -o json" + options, rows + "2 1:1\n").out);
  EXPECT_EQ(Number(summary, "errors"), 1);
  EXPECT_EQ(Number(summary, "errorRate"), 0.25);
  EXPECT_EQ(summary.fields().at("confusion").list_value().values_size(), 4);
  EXPECT_THAT(CtlOut("predict three --all-scores -o json" + options, "1:1\n").out,
              HasSubstr("\"predictedLabels\":[0]"));
  const CommandResult bad = Ctl("learn three" + options, "3 1:1\n");
  EXPECT_EQ(bad.exit_code, 2) << bad.out;
  EXPECT_THAT(bad.out, HasSubstr("is not a class of the model"));
}

TEST_F(CtlTest, OfSeveralClassesEachScoreIsExplained) {
  ASSERT_EQ(Ctl("create three --dimension 2 --classes 3").exit_code, 0);
  const std::string rows = "0 1:1\n1 2:1\n2 1:-1 2:-1\n";
  ASSERT_EQ(Ctl("learn three - --format svmlight --index-base 1", rows).exit_code, 0);
  const CommandResult explained =
      Ctl("explain three - --format svmlight --index-base 1", "0 1:1\n");
  EXPECT_EQ(explained.exit_code, 0);
  EXPECT_THAT(explained.out, HasSubstr("standard input:1: 0, score 1"));
  const CommandResult of_two =
      Ctl("explain three - --format svmlight --index-base 1 --label 2", "0 1:1\n");
  EXPECT_THAT(of_two.out, HasSubstr("standard input:1: 2, score 0 at"));
  // The update for class 0 adds (1, 0, 1) there and takes it from class 1, its rival at the tie.
  const CommandResult of_one =
      Ctl("explain three - --format svmlight --index-base 1 --label 1", "0 1:2\n");
  EXPECT_THAT(of_one.out, HasSubstr("            -3  --------------------             0"));
  EXPECT_EQ(Ctl("explain three - --index-base 1 --label tea", "0 1:1\n").exit_code, 2);
}

TEST_F(CtlTest, ClassesComeUpByNameInEveryFormat) {
  ASSERT_EQ(Ctl("create topics --named --classes 10 --new-classes named").exit_code, 0);
  EXPECT_EQ(Ctl("learn topics - --format text", "tea\thot leaves\nrum\tdark barrel\n").exit_code,
            0);
  EXPECT_EQ(Ctl("learn topics - --format vw", "7 |a seven\ntea |a leaves\n").exit_code, 0);
  EXPECT_EQ(Ctl("learn topics - --format csv --label-column y", "y,x\nale,1\n").exit_code, 0);
  EXPECT_EQ(Ctl("learn topics - --format jsonl",
                R"({"named": {"names": ["juniper"]}, "labelName": "gin"})"
                "\n")
                .exit_code,
            0);
  EXPECT_THAT(
      Ctl("get topics").out,
      HasSubstr("classes:      5 of at most 10, new classes by name: tea, rum, 7, ale, gin\n"));
  EXPECT_THAT(CtlOut("predict topics - --format text", "dark barrel\n").out,
              ::testing::StartsWith("rum\t"));
}

TEST_F(CtlTest, DigitsAreLearnedByEveryRuleOfSeveralClasses) {
  const std::string train = SharedData("digits_mc.train");
  if (train.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  const std::string options = " --format svmlight --index-base 1";
  for (const char* learner :
       {"perceptron", "pocket-perceptron", "averaged-perceptron", "passive-aggressive",
        "passive-aggressive-i", "passive-aggressive-ii", "arow", "logistic-regression"}) {
    const std::string name = std::string("digits-") + learner;
    ASSERT_EQ(Ctl("create " + name + " --dimension 64 --classes 10 --learner " + learner).exit_code,
              0);
    ASSERT_EQ(Ctl("learn " + name + " " + train + options + " --passes 10").exit_code, 0);
    const auto summary = Object(CtlOut("predict " + name + " " + SharedData("digits_mc.test") +
                                       options + " --summary -o json")
                                    .out);
    EXPECT_EQ(Number(summary, "labelled"), 360);
    // The perceptron errs most: see docs/learners.md.
    EXPECT_LT(Number(summary, "errorRate"), 0.15) << learner;
  }
  const CommandResult none = Ctl("create m --dimension 2 --classes 3 --learner kernel-perceptron");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.out, HasSubstr("leave classes out, or choose one of perceptron, "));
}

}  // namespace
}  // namespace perceptrond::testing
