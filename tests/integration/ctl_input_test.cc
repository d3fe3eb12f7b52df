// What perceptronctl takes as input, and what it says of what it cannot take.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kSvmlight = " --format svmlight --index-base 1";
const std::string kAnd01 = "0 1:0 2:0\n0 2:1\n0 1:1\n1 1:1 2:1\n";

TEST_F(CtlTest, CompressedFilesAndPipesAreReadAsTheyAre) {
  const std::string file = Write("and.svm", and_);
  ASSERT_EQ(RunCommand("gzip -k " + file).exit_code, 0);
  ASSERT_EQ(RunCommand("zstd -q " + file).exit_code, 0);
  for (const std::string& input :
       {file, file + ".gz", file + ".zst", "- --format svmlight < " + file + ".gz",
        "- --format svmlight < " + file + ".zst"}) {
    Ctl("create m --dimension 2");
    // Several passes read it again.
    const CommandResult learned = Ctl("learn m --index-base 1 --passes 9 " + input);
    EXPECT_EQ(learned.exit_code, 0) << input << ": " << learned.out;
    const v1::Model model = Json<v1::Model>("get m --weights");
    EXPECT_EQ(model.revision(), 18) << input;
    EXPECT_THAT(model.weights().vectors(0).values(), ::testing::ElementsAre(3, 2)) << input;
    EXPECT_THAT(Ctl("predict m --index-base 1 --summary " + input).out,
                HasSubstr("errors: 0 of 4"));
    Ctl("delete m");
  }
}

TEST_F(CtlTest, EachPassHasTheExamplesOfAPipeThatIsGivenAsAFile) {
  Ctl("create m --dimension 2");
  const std::string pipe = dir_.path() + "/pipe";
  ASSERT_EQ(RunCommand("mkfifo " + pipe).exit_code, 0);
  const CommandResult learned = RunCommand("cat " + Write("and.svm", and_) + " > " + pipe + " & " +
                                           PERCEPTRONCTL_BINARY + " --server " + server_.address() +
                                           " learn m " + pipe + kSvmlight + " --passes 9 2>&1");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, HasSubstr("pass 9: 4 examples"));
}

TEST_F(CtlTest, ATruncatedFileIsNamedAfterWhatItHasIsLearned) {
  Ctl("create m --dimension 2");
  std::string lines;
  for (int i = 0; i < 20'000; ++i)
    lines += "+1 1:" + std::to_string(i * 7919L % 1'000'003) + "\n-1 2:1\n";
  const std::string file = Write("rows.svm", lines);
  for (const char* packer : {"gzip -c", "zstd -qc"}) {
    const std::string cut = dir_.path() + "/cut";
    ASSERT_EQ(RunCommand(std::string(packer) + " " + file + " > " + cut).exit_code, 0);
    const uint64_t half = std::filesystem::file_size(cut) / 2;
    std::filesystem::resize_file(cut, half);
    const auto before = static_cast<double>(Get("m").report().examples());
    const CommandResult learned = Ctl("learn m " + cut + kSvmlight);
    EXPECT_EQ(learned.exit_code, 2);
    EXPECT_THAT(learned.out,
                HasSubstr(cut + " is truncated: it ends after " + std::to_string(half) + " bytes"));
    const double learned_rows = static_cast<double>(Get("m").report().examples()) - before;
    EXPECT_GT(learned_rows, 1000);
    EXPECT_LT(learned_rows, 40'000);
  }
}

TEST_F(CtlTest, LabelsZeroAndOneAreTakenWithANotice) {
  Ctl("create m --dimension 2");
  const CommandResult learned = Ctl("learn m - --until-converged" + kSvmlight, kAnd01);
  EXPECT_EQ(learned.exit_code, 0);
  EXPECT_THAT(learned.out, HasSubstr("standard input:1: label 0 is read as -1"));
  EXPECT_THAT(Json<v1::Model>("get m --weights").weights().vectors(0).values(),
              ::testing::ElementsAre(3, 2));
  const std::string quiet = Ctl("-q learn m -" + kSvmlight, kAnd01).out;
  EXPECT_EQ(quiet, "");
  EXPECT_EQ(Ctl("learn m - --zero-is-negative -q" + kSvmlight, kAnd01).out, "");

  const CommandResult predicted = Ctl("predict m - --summary" + kSvmlight, kAnd01);
  EXPECT_THAT(predicted.out, HasSubstr("label 0 is counted as -1, 3 times"));
  EXPECT_THAT(predicted.out, HasSubstr("errors: 0 of 4"));
  // Where it can mean "no label".
  const std::string unlabelled =
      Ctl("predict m - --summary" + kSvmlight, "0 1:1\n1 1:1 2:1\n-1 2:1\n").out;
  EXPECT_THAT(unlabelled, HasSubstr("label 0 is counted as no label, 1 time"));
  EXPECT_THAT(unlabelled, HasSubstr("errors: 0 of 2"));
}

TEST_F(CtlTest, LabelsZeroAndMinusOneInOneFileAreAnError) {
  Ctl("create m --dimension 2");
  const CommandResult mixed = Ctl("learn m -" + kSvmlight, "0 1:1\n1 1:1 2:1\n-1 2:1\n");
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_THAT(mixed.out, HasSubstr(":3: label -1 beside the label 0 before"));
  EXPECT_EQ(Ctl("learn m - --zero-is-negative" + kSvmlight, "0 1:1\n-1 2:1\n").exit_code, 0);
}

TEST_F(CtlTest, ATextThatIsGivenForAFileIsSaidSo) {
  Ctl("create m --named --labels ham,spam");
  const CommandResult text = Ctl("predict m 'Win a prize'");
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.out, HasSubstr("cannot read Win a prize"));
  EXPECT_THAT(text.out, HasSubstr("| perceptronctl predict NAME - --format text"));
  EXPECT_THAT(Ctl("learn m spam 'Win a prize'").out, HasSubstr("printf 'spam\\tWin"));
  EXPECT_THAT(Ctl("predict m ./rows.svm").out, Not(HasSubstr("hint")));
}

TEST_F(CtlTest, ATextModelLearnsTheTextsOfAColumnAlsoOverSeveralLines) {
  Ctl("create m --text --labels ham,spam");
  const std::string csv =
      "id,kind,message\n1,spam,\"free, \"\"prize\"\"\nfree\"\n2,ham,lunch at\n3,eggs,none\n";
  const std::string file = Write("sms.csv", csv);
  const std::string columns = " --label-column kind --text-column message ";
  const CommandResult learned = Ctl("learn m --skip-bad-lines" + columns + file);
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, HasSubstr("skipped " + file + ":5: label \"eggs\""));
  // As from the format text, with the line break for a blank.
  Ctl("create same --text --labels ham,spam");
  Ctl("learn same - --format text", "spam\tfree, \"prize\" free\nham\tlunch at\n");
  const std::string texts = "free prize\nlunch\n";
  EXPECT_EQ(Ctl("predict m - --format text -q", texts).out,
            Ctl("predict same - --format text -q", texts).out);
  EXPECT_THAT(CtlOut("predict m --skip-bad-lines --text-column 3 " + file).out,
              AllOf(HasSubstr("spam\t"), HasSubstr("\nham\t")));

  EXPECT_THAT(Ctl("learn m --label-column kind " + file).out,
              HasSubstr("the model takes texts: give --text-column"));
  EXPECT_THAT(Ctl("learn m - --format text --text-column 1").out,
              HasSubstr("--text-column is for --format csv"));
  Ctl("create named --named --labels ham,spam");
  EXPECT_THAT(Ctl("learn named" + columns + file).out,
              HasSubstr("--text-column: the model takes features"));
}

TEST_F(CtlTest, AVowpalWabbitLineMayRepeatAFeatureWhoseValuesAddUp) {
  Ctl("create m --named");
  const CommandResult learned =
      Ctl("learn m - --format vw", "1 |a x x:.5 y |b x |a x:-0.25\n-1 |b z z z\n");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  const v1::Model model = Json<v1::Model>("get m --weights");
  std::map<std::string, float> weights;
  for (int i = 0; i < model.weights().vectors(0).values_size(); ++i)
    weights[model.weights().vectors(0).names(i)] = model.weights().vectors(0).values(i);
  EXPECT_EQ(weights,
            (std::map<std::string, float>{{"a^x", 1.25F}, {"a^y", 1}, {"b^x", 1}, {"b^z", -3}}));
}

TEST_F(CtlTest, ALineOfTitlesBeforeTextsIsRecognized) {
  Ctl("create m --named --labels ham,spam");
  const std::string file = Write("sms.tsv", "Label\tMessage\nspam\tfree\nHam\tlunch\n");
  const CommandResult titles = Ctl("learn m " + file);
  EXPECT_EQ(titles.exit_code, 2);
  EXPECT_THAT(titles.out, HasSubstr("--skip-lines 1 skips it"));
  const CommandResult later = Ctl("learn m --skip-lines 1 " + file);
  EXPECT_EQ(later.exit_code, 2);
  EXPECT_THAT(later.out, HasSubstr(":3: label \"Ham\""));
  EXPECT_THAT(later.out, Not(HasSubstr("--skip-lines")));
}

TEST_F(CtlTest, AMalformedJsonLineIsOneSentence) {
  Ctl("create m --named");
  EXPECT_THAT(Ctl("learn m - --format jsonl", "[1]\n").out,
              HasSubstr("in JSON: Root element must be a message; --skip-bad-lines"));
  EXPECT_THAT(Ctl("learn m - --format jsonl", "1 1:1\n").out,
              HasSubstr("Parsing terminated before end of input; --skip-bad-lines"));
}

TEST_F(CtlTest, ADimensionThatIsTooSmallEndsTheRun) {
  const std::string file = Write("rows.svm", "+1 1:1\n-1 2:1\n+1 4:1\n-1 1:1 2:1\n");
  Ctl("create small --dimension 3");
  const CommandResult learned = Ctl("learn small " + file + " --index-base 1 --skip-bad-lines");
  EXPECT_EQ(learned.exit_code, 2);
  EXPECT_THAT(
      learned.out,
      HasSubstr(file +
                ":3: feature 4 needs a dimension of at least 4, but the model's dimension is 3"));
  EXPECT_EQ(Get("small").report().examples(), 2U);
  const CommandResult dense = Ctl("learn small - --format csv --label-column y", "y,a,b\n1,2,3\n");
  EXPECT_EQ(dense.exit_code, 2);
  EXPECT_THAT(dense.out, HasSubstr("has 2 values, but the model's dimension is 3"));
}

TEST_F(CtlTest, UnseenIndicesAreRefusedOrIgnoredByChoice) {
  Ctl("create m --dimension 2");
  Ctl("learn m - --passes 9" + kSvmlight, and_);
  const std::string rows = "1 1:1 2:1 3:5 9:1\n1 1:1 2:1\n1 7:1\n";
  const CommandResult refused = Ctl("predict m -" + kSvmlight, rows);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, HasSubstr("standard input:3: "));
  EXPECT_THAT(refused.out, HasSubstr("INDEX_OUT_OF_RANGE"));
  const std::string ignore = "predict m - --unseen-indices ignore";
  const CommandResult ignored = Ctl(ignore + kSvmlight, rows);
  EXPECT_EQ(ignored.exit_code, 0) << ignored.out;
  // AND's weights (3, 2), -4: the first two are equal, the last is the bias alone.
  EXPECT_THAT(ignored.out, ::testing::ContainsRegex("\\+1\t1\t[^\n]+\n\\+1\t1\t[^\n]+\n-1\t-4\t"));
  EXPECT_THAT(ignored.out, HasSubstr("2 examples have features beyond the model's dimension 2"));
  EXPECT_THAT(Ctl(ignore + " --format csv --label-column y", "y,a,b,c\n1,1,1,9\n").out,
              HasSubstr("errors: 0 of 1"));
}

TEST_F(CtlTest, UnknownNamesAreIgnoredOrRefusedByChoice) {
  Ctl("create n --named");
  Ctl("learn n - --format jsonl", R"({"named":{"names":["a"]},"label":1})");
  const std::string rows = R"({"named":{"names":["a"]}})"
                           "\n"
                           R"({"named":{"names":["a","b"]}})"
                           "\n";
  const CommandResult ignored = Ctl("predict n - --format jsonl", rows);
  EXPECT_EQ(ignored.exit_code, 0) << ignored.out;
  const CommandResult refused = Ctl("predict n - --format jsonl --unknown-names refuse", rows);
  EXPECT_EQ(refused.exit_code, 3) << refused.out;
  EXPECT_THAT(refused.out, ::testing::ContainsRegex("standard input:2: [^\n]*UNKNOWN_FEATURE"));
  EXPECT_THAT(refused.out, HasSubstr("2 predicted at revision 1, 1 with validation errors"));
  // Where no name is unknown, the choice has no meaning.
  for (const auto& [space, what] :
       {std::pair("--dimension 2", "takes indices: --unseen-indices refuse"),
        std::pair("--hash-bits 4", "has a weight for every name and word"),
        std::pair("--text", "has a weight for every name and word")}) {
    Ctl(absl::StrCat("create all ", space));
    const CommandResult senseless =
        Ctl("predict all - --format text --unknown-names refuse", "a\n");
    EXPECT_EQ(senseless.exit_code, 2) << senseless.out;
    EXPECT_THAT(senseless.out,
                HasSubstr(absl::StrCat("--unknown-names refuse is for models of --named; this one ",
                                       what)));
    Ctl("delete all --yes");
  }
}

TEST_F(CtlTest, AnIndexBeyondTheSlotsEndsTheRun) {
  Ctl("create h --hash-bits 2");
  const std::string rows = "1 1:1\n-1 4:1\n1 5:1\n-1 1:2\n";
  const CommandResult stopped = Ctl("learn h -" + kSvmlight, rows);
  EXPECT_EQ(stopped.exit_code, 2);
  EXPECT_THAT(stopped.out,
              HasSubstr("standard input:3: feature 5 needs 5 slots, but the model has 4"));
  EXPECT_EQ(Get("h").report().examples(), 2U);
  const std::string predict = "predict h - --unseen-indices ignore" + kSvmlight;
  const CommandResult ignored = Ctl(predict, "1 1:1 5:1\n1 1:1\n");
  EXPECT_EQ(ignored.exit_code, 0) << ignored.out;
  EXPECT_THAT(ignored.out,
              HasSubstr("1 example has features beyond the model's number of slots 4"));
  EXPECT_THAT(ignored.out, HasSubstr("2 predicted at revision"));
  EXPECT_THAT(
      Ctl("predict h -" + kSvmlight, "1 1:1 5:1\n").out,
      HasSubstr(
          "4 is not below 4, the model's dimension or number of slots (indices count from 0)"));
  const CommandResult refused = Ctl("learn h - --unseen-indices refuse" + kSvmlight, rows);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, HasSubstr("; the file's count from 1 (INDEX_OUT_OF_RANGE)"));
  EXPECT_THAT(refused.out, HasSubstr(", 1 row error"));
  EXPECT_THAT(refused.out, Not(HasSubstr("1 row errors")));
  const std::string right = Write("right.svm", "1 1:1\n1 5:1\n");
  EXPECT_THAT(
      Ctl("learn h " + right + " --until-converged --unseen-indices refuse" + kSvmlight).out,
      ::testing::ContainsRegex("converged at its end[^\n]*; rows with errors are left out"));
}

TEST_F(CtlTest, ATextBeforeATabThatIsNoLabelIsReadAsTextWithANotice) {
  Ctl("create t --text --labels ham,spam");
  Ctl("learn t - --format text", "spam\twin a prize\nham\thello\n");
  const CommandResult mixed =
      Ctl("predict t - --summary --format text", "spam\twin\nSpam\twin\nHam\thello\n");
  EXPECT_EQ(mixed.exit_code, 0);
  EXPECT_THAT(mixed.out, HasSubstr("standard input:2: what is before the tab is no label"));
  EXPECT_THAT(mixed.out, Not(HasSubstr("input:3")));
  EXPECT_THAT(mixed.out, HasSubstr("errors: 0 of 1"));
  EXPECT_THAT(Ctl("predict t - --summary --format text", "spam\twin\nwin\n").out,
              Not(HasSubstr("before the tab")));
}

TEST_F(CtlTest, TheDimensionComesFromFiles) {
  const std::string train = Write("train.svm", "+1 1:1\n-1 2:1\n# none\n");
  const std::string test = Write("test.svm", "+1 7:1\n-1 2:1\n");
  const CommandResult created =
      Ctl("create m --dimension-from " + train + " --dimension-from " + test + " --index-base 1");
  EXPECT_EQ(created.exit_code, 0) << created.out;
  EXPECT_EQ(Get("m").feature_space().dense().dimension(), 7U);
  const std::string csv = Write("rows.csv", "y,a,b\n1,2,3\n");
  const CommandResult no_label = Ctl("create c --dimension-from " + csv);
  EXPECT_EQ(no_label.exit_code, 2);
  EXPECT_THAT(no_label.out, HasSubstr("give --label-column"));
  Ctl("create c --dimension-from " + csv + " --label-column y");
  EXPECT_EQ(Get("c").feature_space().dense().dimension(), 2U);
  const std::string named = Write("rows.vw", "1 | a b\n");
  const CommandResult wrong = Ctl("create n --dimension-from " + named);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.out, HasSubstr("the features have names"));
  EXPECT_EQ(Ctl("create n --dimension-from " + train + " --dimension 3").exit_code, 2);
  EXPECT_EQ(
      Ctl("create n --dimension-from " + Write("empty.svm", "\n") + " --index-base 1").exit_code,
      2);
}

// Interrupted after its first pass, and repeated: what the server has is known by its number, and the
// order is the same.
TEST_F(CtlTest, ARepeatedShuffledRunLearnsEachExampleOfEachPassOnce) {
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    const int x = i * 7919 % 41 - 20;
    const int y = i * 104729 % 37 - 18;
    lines += (x + 2 * y + i % 3 > 0 ? "+1 1:" : "-1 1:") + std::to_string(x) +
             " 2:" + std::to_string(y) + "\n";
  }
  const std::string file = Write("rows.svm", lines);
  const auto learn = [&](const std::string& arguments) {
    return Object(CtlOut("learn " + arguments + " -o json --index-base 1 --batch 7 " + file).out);
  };
  for (const char* model : {"whole", "parts", "plain", "other"})
    Ctl("create " + std::string(model) + " --dimension 2");
  const std::string numbered = " --producer p --start-offset 0";
  EXPECT_EQ(Number(learn("whole --shuffle 5 --passes 3" + numbered), "examples"), 600);
  EXPECT_EQ(Number(learn("parts --shuffle 5" + numbered), "examples"), 200);
  const auto rest = learn("parts --shuffle 5 --passes 3" + numbered);
  EXPECT_EQ(Number(rest, "examples"), 400);
  EXPECT_EQ(Number(rest, "duplicates"), 200);
  learn("plain --passes 3");
  learn("other --shuffle 6 --passes 3");
  const auto weights = [&](const std::string& model) {
    return Get(model).weights().SerializeAsString();
  };
  EXPECT_EQ(weights("parts"), weights("whole"));
  EXPECT_NE(weights("plain"), weights("whole"));
  EXPECT_NE(weights("other"), weights("whole"));
  // From the second pass on, by its own numbers.
  Ctl("create second --dimension 2");
  EXPECT_EQ(Number(learn("second --shuffle 5" + numbered), "examples"), 200);
  EXPECT_EQ(Number(learn("second --shuffle 5 --passes 2 --producer p --start-offset 200 "
                         "--passes-before 1"),
                   "examples"),
            400);
  EXPECT_EQ(weights("second"), weights("whole"));
}

}  // namespace
}  // namespace perceptrond::testing
