// perceptronctl against the real server, as scripts use it: the forms they rely on, every input
// format, exit codes.
#include <cmath>
#include <map>

#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

TEST_F(CtlTest, TheCommonPathReadsAsDocumented) {
  const std::string file = Write("and.svm", and_);
  EXPECT_EQ(Ctl("create and --learner perceptron --dimension 2").exit_code, 0);
  const CommandResult learned =
      Ctl("learn and " + file + " --format svmlight --index-base 1 --passes 9");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 9: 4 examples, 0 mistakes"));
  const v1::Model model = Json<v1::Model>("get and --weights");
  // AND with a bias, worked by hand.
  EXPECT_EQ(model.revision(), 18);
  EXPECT_THAT(model.weights().vectors(0).values(), ::testing::ElementsAre(3, 2));
  EXPECT_EQ(model.weights().vectors(0).bias(), -4);
  EXPECT_TRUE(model.report().last_pass().converged());
  const CommandResult predicted =
      CtlOut("predict and " + file + " --format svmlight --index-base 1 -o json");
  EXPECT_EQ(predicted.exit_code, 0);
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 4);
  EXPECT_THAT(predicted.out, ::testing::HasSubstr("\n{\"scores\":[1],\"predictedLabels\":[1],"));
}

TEST_F(CtlTest, EveryFormatTeachesTheSameWeights) {
  Ctl("create a --dimension 2");
  Ctl("create b --dimension 2");
  Ctl("create c --dimension 2");
  Ctl("create d --named");
  EXPECT_EQ(Ctl("learn a - --format svmlight --index-base 1 --passes 3", and_).exit_code, 0);
  EXPECT_EQ(Ctl("learn b - --format csv --label-column y --passes 3",
                "y,p,q\n-1,0,0\n-1,0,1\n-1,1,0\n1,1,1\n")
                .exit_code,
            0);
  EXPECT_EQ(Ctl("learn c - --format jsonl --passes 3",
                "{\"label\":-1,\"dense\":{\"values\":[0,0]}}\n{\"label\":-1,\"sparse\":{"
                "\"indices\":[1]}}\n"
                "{\"label\":-1,\"sparse\":{\"indices\":[0]}}\n{\"label\":1,\"sparse\":{\"indices\":"
                "[0,1],\"values\":[1,1]}}\n")
                .exit_code,
            0);
  EXPECT_EQ(
      Ctl("learn d - --format vw --passes 3", "-1 | p:0 q:0\n-1 | q\n-1 | p\n1 | p q\n").exit_code,
      0);
  const v1::Model a = Json<v1::Model>("get a --weights");
  EXPECT_GT(a.revision(), 0);
  EXPECT_EQ(Json<v1::Model>("get b --weights").weights().SerializeAsString(),
            a.weights().SerializeAsString());
  EXPECT_EQ(Json<v1::Model>("get c --weights").weights().SerializeAsString(),
            a.weights().SerializeAsString());
  const v1::Model d = Json<v1::Model>("get d --weights");
  EXPECT_EQ(d.weights().vectors(0).bias(), a.weights().vectors(0).bias());
  EXPECT_EQ(d.revision(), a.revision());
  const auto by_name = [](const v1::WeightVector& weights) {
    std::map<std::string, float> map;
    for (int i = 0; i < weights.values_size(); ++i) {
      map[weights.names().empty() ? (weights.indices(i) == 0 ? "p" : "q") : weights.names(i)] =
          weights.values(i);
    }
    return map;
  };
  EXPECT_EQ(by_name(d.weights().vectors(0)), by_name(a.weights().vectors(0)));
}

TEST_F(CtlTest, AnIndexBaseIsStatedNeverGuessed) {
  Ctl("create and --dimension 2");
  const CommandResult result = Ctl("learn and - --format svmlight", and_);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, ::testing::HasSubstr("--index-base"));
  EXPECT_EQ(Json<v1::Model>("get and").report().examples(), 0);
}

TEST_F(CtlTest, ExitCodesAndMessagesSayWhatWentWrong) {
  const CommandResult unknown = Ctl("get nobody");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.out, ::testing::HasSubstr("MODEL_NOT_FOUND"));
  EXPECT_EQ(Ctl("create").exit_code, 2);
  EXPECT_EQ(Ctl("create m").exit_code, 2);
  EXPECT_EQ(Ctl("frobnicate").exit_code, 2);
  Ctl("create m --dimension 2");
  const CommandResult malformed =
      Ctl("learn m - --format svmlight --index-base 1", "+1 1:1\n+1 oops\n");
  EXPECT_EQ(malformed.exit_code, 2);
  EXPECT_THAT(malformed.out, ::testing::HasSubstr(":2:"));
  const CommandResult row_errors =
      Ctl("learn m - --format svmlight --index-base 1 --unseen-indices refuse",
          "+1 1:1\n# none\n+1 7:1\n");
  EXPECT_EQ(row_errors.exit_code, 3);
  EXPECT_THAT(row_errors.out,
              ::testing::HasSubstr("validation error: standard input:3: 6 is not below"));
  EXPECT_THAT(row_errors.out, ::testing::HasSubstr("INDEX_OUT_OF_RANGE"));
  Ctl("freeze m");
  const CommandResult frozen = Ctl("learn m - --format svmlight --index-base 1", "+1 1:1\n");
  EXPECT_EQ(frozen.exit_code, 1);
  EXPECT_THAT(frozen.out, ::testing::HasSubstr("MODEL_FROZEN"));
  EXPECT_EQ(Ctl("unfreeze m").exit_code, 0);
  EXPECT_EQ(Ctl("update m --description mail --etag stale").exit_code, 1);
  EXPECT_EQ(Ctl("update m --description mail").exit_code, 0);
  EXPECT_EQ(Json<v1::Model>("get m").description(), "mail");
  EXPECT_EQ(Json<v1::ListModelsResponse>("list").models_size(), 1);
  EXPECT_EQ(Ctl("delete m").exit_code, 0);
  EXPECT_EQ(Ctl("delete m").exit_code, 1);
}

TEST_F(CtlTest, PredictionsComeWithTheirErrorBesideTheMajoritys) {
  const std::string file = Write("and.svm", and_);
  Ctl("create and --dimension 2 --labels no,yes");
  const std::string options = " --format svmlight --index-base 1";
  // Without weights all scores are 0, which are mistakes when they are learned.
  const CommandResult untaught = Ctl("predict and " + file + options + " --summary -o json");
  EXPECT_EQ(untaught.exit_code, 0);
  const google::protobuf::Struct before = Object(untaught.out);
  EXPECT_EQ(Number(before, "errors"), 4);
  EXPECT_EQ(Number(before, "errorRate"), 1);
  EXPECT_EQ(Number(before, "majorityErrorRate"), 0.25);
  EXPECT_EQ(Number(before, "falseNegatives"), 0);
  EXPECT_EQ(Number(before, "zeroScores"), 4);
  // Zero weights have no boundary.
  EXPECT_THAT(untaught.out, ::testing::Not(::testing::HasSubstr("margin")));

  EXPECT_EQ(Ctl("learn and " + file + options + " --until-converged").exit_code, 0);
  const CommandResult text = Ctl("predict and " + file + options);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, ::testing::StartsWith("no\t-4\t-"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("\nyes\t1\t0.27"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("4 predicted at revision 18"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("errors: 0 of 4 (0.00 %); always predicting "
                                             "the more frequent label: 25.00 %"));
  EXPECT_EQ(Ctl("predict and -" + options, "1:1\n9:1\n").exit_code, 3);
}

// A textbook's classifier: theta = (1, -1), theta_0 = 1.
TEST_F(CtlTest, TheMarginOfDataIsThatOfTheLectureNotes) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  for (const auto& [index, value] : {std::pair(0U, 1.0F), std::pair(1U, -1.0F)}) {
    start.add_indices(index);
    start.add_values(value);
  }
  start.set_bias(1);
  Create("seed", settings);
  const std::string right = "1 1:2.5 2:1.5\n-1 1:-1.5 2:1.5\n";
  const auto predict = [&](const std::string& rows, const std::string& more) {
    return CtlOut("predict seed - --format svmlight --index-base 1 --summary" + more, rows).out;
  };
  const auto margin = [&](const std::string& rows) {
    return Number(Object(predict(rows, " -o json")), "margin");
  };
  EXPECT_NEAR(margin(right), std::sqrt(2), 1e-7);
  EXPECT_NEAR(margin("1 1:1 2:3\n" + right), -std::sqrt(0.5), 1e-7);
  EXPECT_THAT(predict("1 1:1 2:3\n" + right, ""), ::testing::HasSubstr("\nmargin -0.7071"));
  // One without a label is no part of it, nor is one that is refused.
  EXPECT_NEAR(margin(right + "1:1 2:3\n1 7:1\n"), std::sqrt(2), 1e-7);
  EXPECT_THAT(predict("1:1 2:3\n", " -o json"), ::testing::Not(::testing::HasSubstr("margin")));
}

TEST_F(CtlTest, EachLineOfPredictionsInJsonIsTheAnswerToItsRow) {
  Ctl("create m --dimension 2 --learner logistic-regression");
  const std::string options = " --format svmlight --index-base 1";
  const auto predict = [&](const std::string& row) {
    v1::PredictResponse answer;
    const std::string line = CtlOut("predict m - -o json" + options, row + "\n").out;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(line, &answer).ok()) << line;
    return std::make_pair(line, answer);
  };
  const auto [fresh, untaught] = predict("1 1:1 2:1");
  EXPECT_THAT(fresh, ::testing::HasSubstr("\"revision\":\"0\""));
  EXPECT_THAT(untaught.distances(), ::testing::IsEmpty());
  EXPECT_THAT(untaught.probabilities(), ::testing::ElementsAre(0.5F));
  EXPECT_EQ(Ctl("learn m -" + options, and_).exit_code, 0);
  const v1::PredictResponse answer = predict("1:1 2:1").second;
  EXPECT_EQ(answer.revision(), 4);
  EXPECT_EQ(answer.scores_size(), 1);
  EXPECT_EQ(answer.predicted_labels_size(), 1);
  EXPECT_EQ(answer.distances_size(), 1);
  EXPECT_EQ(answer.probabilities_size(), 1);
  const v1::PredictResponse row_errors = predict("9:1").second;
  ASSERT_EQ(row_errors.row_errors_size(), 1);
  EXPECT_EQ(Reason(row_errors.row_errors(0).status()), "INDEX_OUT_OF_RANGE");
  EXPECT_THAT(CtlOut("predict m -" + options, "1:1\n").out,
              ::testing::MatchesRegex("[+-]1\t[^\t]+\t[^\t]+\t0[^\t]+\n"));
}

TEST_F(CtlTest, JsonHasEveryFigureThatAScriptReliesOnAlsoWhereItIsZero) {
  Ctl("create m --dimension 2");
  const std::string fresh = CtlOut("get m --weights -o json").out;
  EXPECT_THAT(fresh, ::testing::HasSubstr("\"revision\": \"0\""));
  EXPECT_THAT(fresh, ::testing::ContainsRegex("\"weights\": \\{[^}]*\"bias\": 0"));
  // What is not known stays absent.
  EXPECT_THAT(fresh, ::testing::Not(::testing::HasSubstr("progressiveError")));
  EXPECT_THAT(fresh, ::testing::Not(::testing::HasSubstr("marginFloor")));
  const std::string learned =
      CtlOut("learn m - --format svmlight --index-base 1 -o json", "+1 1:1\n").out;
  EXPECT_THAT(learned, ::testing::HasSubstr("\"examples\":\"1\""));
  EXPECT_THAT(learned, ::testing::HasSubstr("\"converged\":false"));
}

TEST_F(CtlTest, NothingItPrintsCommandsTheTerminal) {
  EXPECT_EQ(
      Ctl("create m --dimension 2 --description \"$(printf '\\033[31mred\\302\\233')\"").exit_code,
      0);
  const std::string file = Write("evil.svm", "1 1:1\n\x1b[31mX\xFF 1:1\n");
  for (const char* arguments :
       {"get m", "get m -o json", "list -o json", "get \"$(printf 'a\\033[31m')\"",
        "learn m evil.svm --index-base 1", "learn m evil.svm --index-base 1 --skip-bad-lines"}) {
    const CommandResult result =
        RunCommand("cd " + dir_.path() + "; " PERCEPTRONCTL_BINARY " --server " +
                   server_.address() + " " + arguments + " 2>&1");
    EXPECT_THAT(result.out, ::testing::AnyOf(::testing::HasSubstr("\\x1b[31m"),
                                             ::testing::HasSubstr("\\u001b[31m")))
        << arguments;
    EXPECT_EQ(result.out.find_first_of("\x1b\x9b\xff"), std::string::npos) << arguments;
  }
}

TEST_F(CtlTest, AFileCompressedOtherwiseIsRefusedWithTheWayToReadIt) {
  Ctl("create m --dimension 2");
  const std::string bzip2 = "BZh91AY&SY\n\n";
  const std::string file = Write("and.svm.bz2", bzip2);
  const CommandResult learned = Ctl("learn m " + file);
  EXPECT_EQ(learned.exit_code, 2);
  EXPECT_THAT(learned.out, ::testing::HasSubstr("bzcat " + file + " | perceptronctl learn NAME -"));
  const CommandResult predicted =
      Ctl("predict m - --format svmlight --index-base 1 --skip-bad-lines", bzip2);
  EXPECT_EQ(predicted.exit_code, 2);
  EXPECT_THAT(predicted.out, ::testing::HasSubstr("| bzcat | perceptronctl predict NAME -"));
}

TEST_F(CtlTest, AResultThatCannotBeWrittenIsNoSuccess) {
  Ctl("create m --dimension 2");
  const CommandResult lost =
      Ctl("predict m - --format svmlight --index-base 1 > /dev/full", "1:1\n");
  EXPECT_EQ(lost.exit_code, 1);
}

TEST_F(CtlTest, AnEtagGuardsAgainstAChangeInBetween) {
  const v1::Model created = Json<v1::Model>("create m --hash-bits 4");
  EXPECT_EQ(created.feature_space().hashed().bits(), 4);
  const v1::Model updated =
      Json<v1::Model>("update m --margin-of-interest 0.5 --etag " + created.etag());
  EXPECT_EQ(updated.margin_of_interest(), 0.5);
  EXPECT_NE(updated.etag(), created.etag());
  const CommandResult stale = Ctl("delete m --etag " + created.etag());
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.out, ::testing::HasSubstr("ETAG_MISMATCH"));
  EXPECT_EQ(Json<v1::Model>("freeze m --etag " + updated.etag()).state(), v1::MODEL_STATE_FROZEN);
}

}  // namespace
}  // namespace perceptrond::testing
