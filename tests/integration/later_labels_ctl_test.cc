// perceptronctl: predictions with ids, and the labels that come for them.
#include <sstream>

#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

class CtlLaterLabelsTest : public CtlTest {
 protected:
  CtlLaterLabelsTest() : data_(Write("and.svm", and_)) {}
  // The last column of each line that predict prints.
  std::vector<std::string> Ids(const std::string& printed) {
    std::vector<std::string> ids;
    std::istringstream lines(printed);
    for (std::string line; std::getline(lines, line);)
      ids.push_back(line.substr(line.rfind('\t') + 1));
    return ids;
  }

  const std::string data_;
};

TEST_F(CtlLaterLabelsTest, LabelsAreLearnedFromAFileOfIds) {
  EXPECT_EQ(Ctl("create m --dimension 2 --keep-predictions 30m").exit_code, 0);
  EXPECT_THAT(CtlOut("get m").out, HasSubstr("kept for their labels 30m, at most 65,536 KiB"));
  const CommandResult predicted = CtlOut("predict m " + data_ + " --ids --index-base 1");
  EXPECT_EQ(predicted.exit_code, 0) << predicted.out;
  const std::vector<std::string> ids = Ids(predicted.out);
  ASSERT_EQ(ids.size(), 4U);
  std::string labels = "prediction_id,label\n";
  for (size_t i = 0; i < ids.size(); ++i) labels += ids[i] + (i == 0 ? ",+1\n" : ",-1\n");
  const std::string file = Write("labels.csv", labels);
  EXPECT_EQ(Ctl("learn m " + file + " --format ids").exit_code, 0);
  EXPECT_EQ(Json<v1::Model>("get m").report().examples(), 4U);
  for (const char* repeated : {" --until-converged", " --passes 2"}) {
    const CommandResult refused = Ctl("learn m " + file + " --format ids" + repeated);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("learns its prediction's label once"));
  }
  const CommandResult again = Ctl("learn m " + file + " --format ids");
  EXPECT_THAT(again.out, HasSubstr("labels.csv:2: names no prediction that waits for its label"));
  EXPECT_THAT(again.out, HasSubstr("UNKNOWN_PREDICTION"));
}

TEST_F(CtlLaterLabelsTest, IdsNeedAModelThatKeepsPredictions) {
  EXPECT_EQ(Ctl("create m --dimension 2").exit_code, 0);
  EXPECT_THAT(Ctl("predict m " + data_ + " --ids --index-base 1").out,
              HasSubstr("create it with stored_predictions"));
  EXPECT_THAT(Ctl("create n --dimension 2 --keep-predictions soon").out,
              HasSubstr("no time above 0"));
  EXPECT_THAT(CtlOut("create n --dimension 2 --keep-predictions 7d").out,
              HasSubstr("kept for their labels 168h"));
  EXPECT_EQ(Ctl("create o --dimension 2 --durable-predictions").exit_code, 2);
}

}  // namespace
}  // namespace perceptrond::testing
