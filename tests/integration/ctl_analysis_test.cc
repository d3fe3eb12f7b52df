// perceptronctl analyze, examples, and learn --analyze against the real server.
#include "perceptron/v1/analysis_service.pb.h"

#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(CtlTest, AnalyzeAdoptsTheBestSeparator) {
  Ctl("create and --dimension 2 --retain-sample 10");
  Ctl("learn and - --format svmlight --index-base 1", and_);
  const CommandResult analyzed = Ctl("analyze and");
  EXPECT_EQ(analyzed.exit_code, 0) << analyzed.out;
  EXPECT_THAT(analyzed.out, HasSubstr("separable, best margin at least 0.2425"));
  EXPECT_THAT(analyzed.out, HasSubstr("(R/margin)^2 = 51.0000"));
  const auto result = Json<v1::AnalysisResult>("analyze and --adopt");
  EXPECT_EQ(result.adopted_revision(), Json<v1::Model>("get and").revision());
  EXPECT_THAT(Ctl("get and").out, HasSubstr("a sample of 4 of at most 10"));
  EXPECT_EQ(Ctl("analyze and --adopt --if-revision 1").exit_code, 1);
  EXPECT_EQ(Ctl("analyze and --if-revision 1").exit_code, 2);
}

TEST_F(CtlTest, ExamplesAreListedWithTheirRevisions) {
  Ctl("create and --dimension 2 --retain-updates 5");
  EXPECT_THAT(Ctl("examples and").out, HasSubstr("no examples are retained"));
  Ctl("learn and - --format svmlight --index-base 1", and_);
  const CommandResult listed = CtlOut("examples and");
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out, ::testing::StartsWith("-1"));
  EXPECT_THAT(listed.out, HasSubstr("# update 1, score 0"));
  EXPECT_THAT(listed.out, HasSubstr("+1 0:1 1:1 # update "));
  EXPECT_THAT(CtlOut("examples and -o json").out, HasSubstr("\"updateRevision\":\"1\""));
}

// The lecture's theorem on real data, by one command.
TEST_F(CtlTest, MushroomsConvergeWithinTheBoundOfTheirBestMargin) {
  const std::string file = SharedData("agaricus.train");
  if (file.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  Ctl("create agaricus --dimension 127 --retain-sample 10000");
  const CommandResult learned = Ctl(
      "learn agaricus " + file + " --format svmlight --index-base 1 --until-converged --analyze");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, HasSubstr("(R/margin)^2 = 304.675"));
  EXPECT_THAT(learned.out, HasSubstr("the model made 139 updates, which is within the bound"));
  const v1::Model model = Json<v1::Model>("get agaricus");
  EXPECT_EQ(model.report().analysis().examples(), 6513U);
  EXPECT_EQ(model.report().updates_left(), 304U - 139U);
}

}  // namespace
}  // namespace perceptrond::testing
