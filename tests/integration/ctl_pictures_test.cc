// perceptronctl explains and draws.
#include <algorithm>

#include "tests/integration/ctl_fixture.h"
#include "tests/support/xml.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CtlPicturesTest : public CtlTest {
 protected:
  // AND by the textbook: theta = (3, 2), theta_0 = -4.
  void LearnAnd() {
    file_ = Write("and.svm", and_);
    Ctl("create and --dimension 2 --labels off,on");
    ASSERT_EQ(Ctl("learn and " + file_ + " --index-base 1 --until-converged").exit_code, 0);
  }
  // An SVG file that perceptronctl wrote.
  std::string Draw(const std::string& arguments) {
    const std::string path = dir_.path() + "/picture.svg";
    const CommandResult drawn = Ctl("draw " + arguments + " -o " + path);
    EXPECT_EQ(drawn.exit_code, 0) << drawn.out;
    EXPECT_THAT(drawn.out, HasSubstr("wrote " + path));
    std::ifstream file(path);
    std::string svg((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EXPECT_TRUE(XmlReader::Read(svg).has_value()) << svg.substr(0, 500);
    return svg;
  }
  static size_t Count(const std::string& svg, const std::string& style) {
    size_t count = 0;
    const auto elements = XmlReader::Read(svg).value();
    for (const XmlElement& element : elements) {
      const auto own = element.attributes.find("class");
      count += own != element.attributes.end() && own->second == style ? 1 : 0;
    }
    return count;
  }

  std::string file_;
};

TEST_F(CtlPicturesTest, ExplainListsWhatMakesUpAScore) {
  LearnAnd();
  const CommandResult said = Ctl("explain and - --format svmlight --index-base 1", "1:1 2:-2\n");
  EXPECT_EQ(said.exit_code, 0) << said.out;
  EXPECT_THAT(said.out, HasSubstr("standard input:1: off, score -5 at revision 18"));
  EXPECT_THAT(said.out, HasSubstr("+3  +++++++++++++++ "));
  EXPECT_THAT(said.out, HasSubstr("-4  --------------------"));
  EXPECT_THAT(said.out, HasSubstr("(bias)"));
  const v1::ExplainResponse json = Json<v1::ExplainResponse>(
      "explain and " + Write("one.svm", "1:1 2:-2\n") + " --index-base 1");
  EXPECT_EQ(json.explanations(0).score(), -5);
  EXPECT_EQ(json.revision(), 18);
}

TEST_F(CtlPicturesTest, ExplainShortensToTheLargestAndSaysSo) {
  LearnAnd();
  const CommandResult said =
      Ctl("explain and - --format svmlight --index-base 1 --top 1", "1:1 2:1\n");
  EXPECT_THAT(said.out, HasSubstr("(1 more: see --top)"));
}

TEST_F(CtlPicturesTest, ExplainGoesOnPastARefusedExample) {
  LearnAnd();
  const CommandResult said =
      Ctl("explain and - --format svmlight --index-base 1", "1:1\n7:1\n2:1\n");
  EXPECT_EQ(said.exit_code, 3) << said.out;
  EXPECT_THAT(said.out, HasSubstr("standard input:2"));
  EXPECT_THAT(said.out, HasSubstr("standard input:3: off, score -2"));
}

TEST_F(CtlPicturesTest, AfterAReplacementExplainCountsNoOlderMistakes) {
  LearnAnd();
  ASSERT_EQ(Ctl("analyze and --replace-weights").exit_code, 0);
  const std::string explain = "explain and - --format svmlight --index-base 1";
  const CommandResult before = Ctl(explain, "1:0\n");
  EXPECT_THAT(before.out, HasSubstr("(the weights set at revision 19)"));
  EXPECT_THAT(before.out, Not(HasSubstr("  revision ")));
  EXPECT_THAT(before.out, Not(HasSubstr("no longer stored")));
  // A mistake since.
  ASSERT_EQ(Ctl("learn and - --format svmlight --index-base 1", "-1 1:1 2:1\n").exit_code, 0);
  const CommandResult after = Ctl(explain, "1:1 2:1\n");
  EXPECT_THAT(after.out, HasSubstr("  revision 20\n"));
  EXPECT_THAT(after.out, Not(HasSubstr("  revision 18\n")));
  EXPECT_THAT(after.out, HasSubstr("(the weights set at revision 19)"));
}

TEST_F(CtlPicturesTest, ExplainOfAKernelIsByMistakesAndOfVotesIsRefused) {
  const std::string file = Write("and.svm", and_);
  const std::string options = " --format svmlight --index-base 1";
  for (const std::string rule : {"kernel-perceptron", "voted-perceptron", "arow"}) {
    Ctl("create " + rule + " --dimension 2 --learner " + rule);
    Ctl("learn " + rule + " " + file + options + " --passes 3");
  }
  const CommandResult kernel = Ctl("explain kernel-perceptron -" + options, "1:1 2:1\n");
  EXPECT_EQ(kernel.exit_code, 0) << kernel.out;
  EXPECT_THAT(kernel.out,
              HasSubstr("no contributions of features: the score of a kernel-perceptron"));
  EXPECT_THAT(kernel.out, HasSubstr("  revision 1\n"));
  EXPECT_THAT(Ctl("explain voted-perceptron -" + options, "1:1 2:1\n").out,
              HasSubstr("its score is a share of votes"));
  EXPECT_THAT(Ctl("explain arow -" + options, "1:1 2:1\n").out,
              HasSubstr("no contributions of support examples: an update moves each feature"));
}

TEST_F(CtlPicturesTest, TheLearningCurveIsThereInBothForms) {
  LearnAnd();
  const v1::Model model = Json<v1::Model>("get and --learning-curve");
  // The last update as it was made, and the pass without a mistake that came after it.
  ASSERT_EQ(model.learning_curve_size(), 19);
  EXPECT_EQ(model.learning_curve(17).revision(), 18);
  EXPECT_EQ(model.learning_curve(18).revision(), 18);
  EXPECT_EQ(model.learning_curve(18).examples() - model.learning_curve(17).examples(),
            model.report().streak());
  EXPECT_GT(model.learning_curve(18).margin_floor(), 0);
  EXPECT_FALSE(model.learning_curve(17).has_margin_floor());
  EXPECT_EQ(model.learning_curve(17).weight_norm(), model.learning_curve(18).weight_norm());
  EXPECT_THAT(Ctl("get and --learning-curve").out, HasSubstr("CEILING"));
  EXPECT_EQ(Ctl("get and --learning-curve --weights").exit_code, 2);
}

TEST_F(CtlPicturesTest, DrawsTheBoundaryOfAnd) {
  LearnAnd();
  const std::string svg = Draw("and " + file_ + " --index-base 1");
  EXPECT_THAT(svg, HasSubstr("perceptron at revision 18, 4 examples, 0 wrong"));
  EXPECT_EQ(Count(svg, "positive"), 2U);  // and the legend's
  EXPECT_EQ(Count(svg, "negative"), 4U);
  EXPECT_EQ(Count(svg, "wrong"), 0U);
  // The closest are (1, 0) and (1, 1), by 1 / sqrt(13).
  EXPECT_THAT(svg, HasSubstr("margin 0.2774"));
  EXPECT_EQ(Count(svg, "margin"), 3U);
  EXPECT_THAT(svg, HasSubstr("predicts off"));
}

TEST_F(CtlPicturesTest, DrawsWhatTheModelStoresIfNoFileIsGiven) {
  LearnAnd();
  EXPECT_THAT(Draw("and"), HasSubstr("4 examples, 0 wrong"));
  Ctl("create sampled --dimension 2 --store-sample 3");
  ASSERT_EQ(Ctl("learn sampled " + file_ + " --index-base 1 --passes 2").exit_code, 0);
  EXPECT_THAT(Draw("sampled"), HasSubstr("3 examples"));
  EXPECT_THAT(Draw("and --limit 2"), HasSubstr("the first 2 examples"));
  Ctl("create none --dimension 2 --store-updates 0");
  ASSERT_EQ(Ctl("learn none " + file_ + " --index-base 1").exit_code, 0);
  EXPECT_THAT(Draw("none"), HasSubstr(">perceptron at revision 2<"));
}

TEST_F(CtlPicturesTest, DrawsWhatIsWrongAndTheBoundaryOfXorUnderAFeatureMap) {
  const std::string file = Write("xor.svm", "1 1:-1 2:-1\n1 1:1 2:1\n-1 1:-1 2:1\n-1 1:1 2:-1\n");
  Ctl("create xor --dimension 2");
  Ctl("learn xor " + file + " --index-base 1 --passes 2");
  // All weights are zero again: every score is 0 and predicted as -1.
  EXPECT_EQ(Count(Draw("xor " + file + " --index-base 1"), "wrong"), 3U);
  Ctl("create xor2 --dimension 2 --polynomial 2 --interactions-only");
  Ctl("learn xor2 " + file + " --index-base 1 --until-converged");
  const std::string svg = Draw("xor2 " + file + " --index-base 1");
  EXPECT_EQ(Count(svg, "wrong"), 0U);
  EXPECT_THAT(svg, HasSubstr("closest correct: ±4"));
  const CommandResult weights = Ctl("draw xor2 " + file + " --index-base 1 --what weights");
  EXPECT_EQ(weights.exit_code, 2);
  EXPECT_THAT(weights.out, HasSubstr("with a feature map"));
}

TEST_F(CtlPicturesTest, DrawsTheSpaceOfWeights) {
  LearnAnd();
  const std::string svg = Draw("and " + file_ + " --index-base 1 --what weights");
  EXPECT_EQ(Count(svg, "region"), 2U);
  EXPECT_THAT(svg, HasSubstr("weight of feature 0"));
}

TEST_F(CtlPicturesTest, DrawsCurvesOfAnyModel) {
  LearnAnd();
  const std::string svg = Draw("and --what learning-curve --log");
  EXPECT_THAT(svg, HasSubstr("18 updates"));
  EXPECT_EQ(Count(svg, "plot"), 4U);
  // Straight to standard output.
  EXPECT_THAT(CtlOut("draw and --what learning-curve").out, ::testing::StartsWith("<svg "));
}

TEST_F(CtlPicturesTest, TwoFeaturesOfMoreAreChosenByName) {
  Ctl("create words --named");
  const std::string file = Write("words.csv", "y,a,b,c\n1,2,1,1\n-1,-1,0,1\n1,1,3,0\n");
  const std::string input = file + " --label-column y";
  ASSERT_EQ(Ctl("learn words " + input).exit_code, 0);
  const CommandResult which = Ctl("draw words " + input);
  EXPECT_EQ(which.exit_code, 2);
  EXPECT_THAT(which.out, HasSubstr("--x FEATURE --y FEATURE"));
  const std::string svg = Draw("words " + input + " --x a --y b");
  EXPECT_THAT(svg, HasSubstr(">a<"));
  // Not in the plane: the lines would not go through what they are named for.
  EXPECT_THAT(svg, HasSubstr("examples have other"));
  EXPECT_EQ(Count(svg, "margin"), 0U);
  EXPECT_EQ(Count(Draw("words " + input + " --x a --y b --at c=1"), "margin"), 0U);
}

TEST_F(CtlPicturesTest, AnAxisIsAFeatureThatExamplesHave) {
  Ctl("create words --named --polynomial 2");
  const std::string file = Write("words.csv", "y,f^a,f^b\n1,1,1\n-1,1,-1\n1,-1,-1\n-1,-1,1\n");
  const std::string input = file + " --label-column y";
  ASSERT_EQ(Ctl("learn words " + input + " --passes 3").exit_code, 0);
  ASSERT_THAT(Ctl("get words --weights").out, HasSubstr("f^a*f^b"));
  for (const std::string& examples : {input, std::string()}) {
    const CommandResult derived = Ctl("draw words " + examples + " --x 'f^a*f^b' --y f^b");
    EXPECT_EQ(derived.exit_code, 2);
    EXPECT_THAT(derived.out, HasSubstr("is a product made by the feature map"));
    EXPECT_THAT(derived.out, HasSubstr("f^a, f^b"));
    const CommandResult unknown = Ctl("draw words " + examples + " --x f^a --y nosuchname");
    EXPECT_EQ(unknown.exit_code, 2);
    EXPECT_THAT(unknown.out, HasSubstr("unknown feature \"nosuchname\""));
    EXPECT_EQ(Ctl("draw words " + examples + " --x f^a --y f^b --at q=1").exit_code, 2);
    EXPECT_EQ(Ctl("draw words " + examples + " --x f^a --y f^b").exit_code, 0);
  }
  // A name of the model's that these examples do not have.
  Ctl("create plain --named");
  ASSERT_EQ(Ctl("learn plain - --format csv --label-column y", "y,f^a,f^b\n1,1,2\n").exit_code, 0);
  const std::string others = Write("others.csv", "y,q\n1,1\n-1,2\n") + " --label-column y";
  EXPECT_EQ(Ctl("draw plain " + others + " --x f^a --y q").exit_code, 0);
  EXPECT_EQ(Ctl("draw plain " + others + " --x f^c --y q").exit_code, 2);
  // Slots have no names: there the names of the examples are used.
  Ctl("create hashed --hash-bits 10");
  ASSERT_EQ(Ctl("learn hashed " + input).exit_code, 0);
  EXPECT_EQ(Ctl("draw hashed " + input + " --x f^a --y f^b").exit_code, 0);
  EXPECT_THAT(Ctl("draw hashed " + input + " --x f^a --y f^c").out,
              HasSubstr("no example drawn has it"));
  EXPECT_THAT(Ctl("draw hashed --x 1 --y 1024").out, HasSubstr("index 1024 is out of range"));
}

TEST_F(CtlPicturesTest, ACompositionOfGatesIsDrawnAsItsExamplesAreWithoutAFileToo) {
  const auto gate = [this](const std::string& name, const std::string& content) {
    const std::string file = Write(name + ".svm", content);
    Ctl("create " + name + " --dimension 2");
    Ctl("learn " + name + " " + file + " --index-base 1 --until-converged");
  };
  gate("or", "-1 1:0 2:0\n+1 2:1\n+1 1:1\n+1 1:1 2:1\n");
  gate("nand", "+1 1:0 2:0\n+1 2:1\n+1 1:1\n-1 1:1 2:1\n");
  const std::string file = Write("xor.svm", "-1 1:0 2:0\n+1 2:1\n+1 1:1\n-1 1:1 2:1\n");
  Ctl("create gates --compose or,nand");
  Ctl("learn gates " + file + " --index-base 1 --until-converged");
  for (const std::string& examples : {file + " --index-base 1", std::string()}) {
    const std::string svg = Draw("gates " + examples);
    EXPECT_THAT(svg, Not(HasSubstr("closest correct")));
    // Two straight lines and the legend's, all of two points.
    const std::vector<XmlElement> elements = XmlReader::Read(svg).value();
    for (const XmlElement& element : elements) {
      const auto style = element.attributes.find("class");
      if (style == element.attributes.end() || style->second != "boundary") continue;
      const std::string& path = element.attributes.at("d");
      EXPECT_LE(std::count(path.begin(), path.end(), 'L'), 6) << path;
    }
  }
  const CommandResult weights = Ctl("draw gates --what weights");
  EXPECT_EQ(weights.exit_code, 2);
  EXPECT_THAT(weights.out, HasSubstr("outputs of its component models"));
}

TEST_F(CtlPicturesTest, FeaturesOfAnySizeAreDrawn) {
  Ctl("create far --dimension 2");
  const std::string file = Write("far.svm",
                                 "+1 1:3.4028234e38 2:-3.4028234e38\n-1 1:-3.4028234e38 2:1\n"
                                 "+1 1:1e38 2:3.4028234e38\n");
  EXPECT_THAT(Draw("far " + file + " --index-base 1"), HasSubstr("3 examples"));
  EXPECT_THAT(Draw("far " + file + " --index-base 1 --what weights"), HasSubstr("3 examples"));
}

TEST_F(CtlPicturesTest, AKernelHasNoSpaceOfWeights) {
  const std::string file = Write("and.svm", and_);
  Ctl("create k --dimension 2 --learner kernel-perceptron");
  Ctl("learn k " + file + " --index-base 1 --passes 3");
  EXPECT_THAT(Ctl("draw k " + file + " --index-base 1 --what weights").out,
              HasSubstr("no sum over features"));
  EXPECT_EQ(Ctl("draw k " + file + " --index-base 1").exit_code, 0);
}

TEST_F(CtlPicturesTest, WhereAnExampleIsWrongWhateverTheWeightsNothingIsAllRight) {
  const std::string file = Write("z.svm", "+1 1:0 2:0\n+1 1:1 2:1\n-1 1:-1 2:0\n");
  Ctl("create z --dimension 2 --no-bias");
  Ctl("learn z " + file + " --index-base 1 --passes 5");
  const std::string svg = Draw("z " + file + " --index-base 1 --what weights");
  EXPECT_THAT(svg, HasSubstr("3 examples, 1 wrong"));
  EXPECT_EQ(Count(svg, "region"), 0U);
}

// Three classes in the plane, by name.
TEST_F(CtlPicturesTest, DrawsTheRegionsOfClassesByName) {
  const std::string file = Write("three.csv",
                                 "y,a,b\ntea,2,0\ntea,2,1\nrum,-1,2\nrum,0,2\ngin,-1,-2\n"
                                 "gin,-2,-2\n");
  const std::string input = file + " --label-column y";
  Ctl("create drinks --named --classes 5 --new-classes named --store-sample 10");
  EXPECT_EQ(Ctl("draw drinks " + input + " --x a --y b").exit_code, 0);
  ASSERT_EQ(Ctl("learn drinks " + input + " --until-converged").exit_code, 0);
  // The stored examples too.
  for (const std::string& examples : {input, std::string()}) {
    const std::string svg = Draw("drinks " + examples + " --x a --y b");
    EXPECT_THAT(svg, HasSubstr("6 examples, 0 wrong"));
    for (const char* name : {"tea", "rum", "gin"}) EXPECT_THAT(svg, HasSubstr(name));
    for (const char* number : {"1", "2", "3"}) {
      EXPECT_EQ(Count(svg, std::string("class-") + number + " side"), 1U);
      EXPECT_EQ(Count(svg, std::string("class-") + number + " mark"), 3U);  // and the legend's
    }
    EXPECT_EQ(Count(svg, "wrong"), 0U);
  }
  const std::string other = Write("other.csv", "y,a,b\nale,2,0\ntea,-1,-2\n");
  const std::string svg = Draw("drinks " + other + " --label-column y --x a --y b");
  EXPECT_THAT(svg, HasSubstr("2 examples, 2 wrong"));
  EXPECT_THAT(svg, HasSubstr(">unknown class<"));
}

TEST_F(CtlPicturesTest, DrawsTheWeightsOfOneClassWhileTheOthersStay) {
  const std::string file = Write("three.svm", "0 1:1\n1 2:1\n2 1:-1 2:-1\n");
  const std::string input = file + " --index-base 1";
  Ctl("create three --dimension 2 --classes 3");
  ASSERT_EQ(Ctl("learn three " + input + " --until-converged").exit_code, 0);
  for (const std::string label : {"0", "1", "2"}) {
    const std::string svg = Draw("three " + input + " --what weights --label " + label);
    EXPECT_THAT(svg, HasSubstr("weight space of " + label));
    EXPECT_THAT(svg, HasSubstr("other classes"));
    EXPECT_EQ(Count(svg, "positive-line"), 2U);  // and the legend's
    // The model is right: its weights lie in the region.
    EXPECT_EQ(Count(svg, "region"), 2U);
  }
  const CommandResult which = Ctl("draw three " + input + " --what weights");
  EXPECT_EQ(which.exit_code, 2);
  EXPECT_THAT(which.out, HasSubstr("--label CLASS"));
  const CommandResult unknown = Ctl("draw three " + input + " --what weights --label tea");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.out, HasSubstr("the model has no class \"tea\""));
  EXPECT_EQ(Ctl("draw three " + input + " --label 0").exit_code, 2);
  EXPECT_THAT(Draw("three --what learning-curve"), HasSubstr("updates"));
  LearnAnd();
  const CommandResult two = Ctl("draw and " + file_ + " --index-base 1 --what weights --label 1");
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_THAT(two.out, HasSubstr("two labels"));
}

TEST_F(CtlPicturesTest, WrongUsageSaysWhatToDo) {
  LearnAnd();
  EXPECT_THAT(Ctl("draw and -o json").out, HasSubstr("-o names the SVG file"));
  EXPECT_THAT(Ctl("draw and --x 0").out, HasSubstr("give both --x and --y"));
  EXPECT_THAT(Ctl("draw and --x 0 --y 2").out, HasSubstr("index 2 is out of range"));
  EXPECT_THAT(Ctl("draw and --x 0 --y 0").out, HasSubstr("the same feature"));
  EXPECT_THAT(Ctl("draw and --at 1=2").out, HasSubstr("this feature is an axis"));
  EXPECT_THAT(Ctl("draw and --at 1").out, HasSubstr("FEATURE=VALUE"));
  EXPECT_THAT(Ctl("draw and --x-range 2 1").out, HasSubstr("the minimum first"));
  EXPECT_THAT(Ctl("draw and --what learning-curve " + file_).out, HasSubstr("without examples"));
  EXPECT_THAT(Ctl("draw and -o /nonexistent/a.svg").out, HasSubstr("cannot write"));
  EXPECT_THAT(Ctl("draw nobody").out, HasSubstr("MODEL_NOT_FOUND"));
}

}  // namespace
}  // namespace perceptrond::testing
