// perceptronctl predict by an alias that names another model during the run.
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/ctl_fixture.h"
#include "tests/support/eventually.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PredictByAliasTest : public CtlTest {
 protected:
  struct Result {
    int exit_code = 0;
    std::string out;
    std::string err;
  };

  void SetUp() override {
    Expect("create a --named --labels ham,spam");
    Expect("learn a - --format text", "spam\tfree\nham\tlunch\n");
    Expect("alias prod a");
  }
  void Expect(const std::string& arguments, const std::string& input = "") {
    const CommandResult result = Ctl(arguments, input);
    EXPECT_EQ(result.exit_code, 0) << result.out;
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A run that reads `before`, and after its answer and `meanwhile` also `after`.
  Result Predict(const std::string& arguments, const std::string& before,
                 const std::function<void()>& meanwhile, const std::string& after) {
    const std::string out = dir_.path() + "/out";
    const std::string err = dir_.path() + "/err";
    std::filesystem::remove(out);
    std::FILE* const run = popen(absl::StrCat(PERCEPTRONCTL_BINARY, " --server ", server_.address(),
                                              " predict ", arguments, " > ", out, " 2> ", err)
                                     .c_str(),
                                 "w");
    EXPECT_NE(run, nullptr);
    std::fputs(before.c_str(), run);
    std::fflush(run);
    EXPECT_TRUE(Eventually([&] { return Content(out).ends_with('\n'); }));
    meanwhile();
    std::fputs(after.c_str(), run);
    Result result;
    result.exit_code = WEXITSTATUS(pclose(run));
    result.out = Content(out);
    result.err = Content(err);
    return result;
  }
};

TEST_F(PredictByAliasTest, EachLabelIsNamedByTheModelThatAnswered) {
  Expect("create b --named --labels no,yes");
  Expect("learn b - --format text", "yes\tlunch\nno\tfree\nno\tfree\n");
  const auto move = [this] { Expect("alias prod b"); };
  const Result moved = Predict("aliases/prod - --format text", "free\n", move, "free\nlunch\n");
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_THAT(moved.out, AllOf(HasSubstr("spam\t"), HasSubstr("\nno\t"), HasSubstr("\nyes\t")));
  EXPECT_THAT(moved.err,
              HasSubstr("standard input:2: from here on another model answers: models/b"));
  EXPECT_THAT(moved.err,
              HasSubstr(absl::StrCat("3 predicted at revision ",
                                     Json<v1::Model>("get b").revision(), " of models/b\n")));
  Expect("alias prod a");
  const Result json =
      Predict("aliases/prod - --format text -o json", "free\nfree\n", move, "free\n");
  EXPECT_THAT(json.out, AllOf(HasSubstr("\"model\":\"models/a\"}\n{"),
                              HasSubstr("\"model\":\"models/b\"}\n")));
}

TEST_F(PredictByAliasTest, AModelThatIsCreatedAgainNamesItsOwnLabels) {
  const Result again = Predict(
      "a - --format text", "free\n",
      [this] {
        Expect("alias prod --delete");
        Expect("delete a --yes");
        Expect("create a --named --labels good,bad");
        Expect("learn a - --format text", "bad\tfree\n");
      },
      "free\n");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("spam\t"), HasSubstr("\nbad\t")));
}

TEST_F(PredictByAliasTest, SeveralClassesAfterTwoLabelsAreNamed) {
  Expect("create many --named --classes 3 --labels red,green,blue");
  Expect("learn many - --format text", "blue\tfree\nred\tlunch\n");
  const Result moved = Predict(
      "aliases/prod - --format text", "free\n", [this] { Expect("alias prod many"); }, "free\n");
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_THAT(moved.out, HasSubstr("\nblue\t"));
}

TEST_F(PredictByAliasTest, LabelsOfAnotherModelInTheInputEndTheRun) {
  Expect("create b --named --labels no,yes");
  Expect("create c --named --labels ham,spam --tie positive");
  const Result other = Predict(
      "aliases/prod - --format text", "spam\tfree\n", [this] { Expect("alias prod b"); },
      "spam\tfree\nfree\n");
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("standard input:2: the label is one of the model that "
                                   "aliases/prod was at first, and models/b has others"));
  EXPECT_THAT(other.out, Not(HasSubstr("yes")));
  Expect("alias prod a");
  const Result same = Predict(
      "aliases/prod - --format text", "spam\tfree\n", [this] { Expect("alias prod c"); },
      "spam\tfree\n");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.err, HasSubstr("errors: 0 of 2"));
}

TEST_F(PredictByAliasTest, AnotherDimensionThanExamplesWereCutToEndsTheRun) {
  Expect("create one --dimension 1");
  Expect("create two --dimension 2");
  Expect("alias prod one");
  const std::string options = "aliases/prod - --format svmlight --index-base 1";
  const Result cut = Predict(
      options + " --unseen-indices ignore", "1:1 2:1\n", [this] { Expect("alias prod two"); },
      "1:1 2:1\n");
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.err, HasSubstr("models/two has not the dimension 1"));
  Expect("alias prod one");
  const Result whole = Predict(
      options, "1:1\n", [this] { Expect("alias prod two"); }, "1:1 2:1\n");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
}

}  // namespace
}  // namespace perceptrond::testing
