// The line of progress that `learn` and `predict` draw.
#include "client/ctl/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/input.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::client {
namespace {

using ::testing::StartsWith;
namespace v1 = ::perceptron::v1;

LearnTotals Totals() {
  LearnTotals totals;
  totals.examples = 54'000;
  totals.mistakes = 1'520;
  return totals;
}

TEST(ProgressLine, DrawsABarAndTheFiguresBesideIt) {
  const Progress progress = LearnProgress({3, 10, 0.2}, Totals(), absl::Seconds(2));
  EXPECT_EQ(ProgressLine(progress, 97),
            "[======>                       ] 22 %  pass 3/10  54,000 examples  1,520 mistakes  "
            "27,000/s");
  EXPECT_EQ(ProgressLine(progress, 57),
            "[====>                 ] 22 %  pass 3/10  54,000 examples");
}

TEST(ProgressLine, FitsEveryWindowThatHoldsABar) {
  for (size_t columns = 40; columns < 130; ++columns) {
    for (const double read : {0.0, 0.5, 0.999, 1.0}) {
      const Progress progress = LearnProgress({9, 10, read}, Totals(), absl::Seconds(2));
      EXPECT_LE(ProgressLine(progress, columns).size(), columns);
      EXPECT_THAT(ProgressLine(progress, columns), StartsWith("[==="));
    }
  }
}

TEST(ProgressLine, NeverSaysAHundredPercentBeforeTheEnd) {
  EXPECT_EQ(ProgressLine({0.9999, "", {}}, 20), "[============>] 99 %");
  EXPECT_EQ(ProgressLine({1.5, "", {}}, 20), "[============] 100 %");
}

TEST(LearnProgress, IsOfThePassWhereNobodyKnowsHowManyThereWillBe) {
  const Progress progress = LearnProgress({3, std::nullopt, 0.25}, Totals(), absl::Seconds(2));
  EXPECT_THAT(ProgressLine(progress, 57),
              StartsWith("[=====>                 ] 25 % of pass 3  54,000 examples"));
}

TEST(LearnProgress, CountsWhereTheInputHasNoSize) {
  EXPECT_EQ(ProgressLine(LearnProgress({1, 1, std::nullopt}, Totals(), absl::Seconds(2)), 97),
            "54,000 examples  1,520 mistakes  27,000/s");
  EXPECT_EQ(
      ProgressLine(
          LearnProgress({2, std::nullopt, std::nullopt}, LearnTotals(), absl::ZeroDuration()), 97),
      "pass 2  0 examples  0 mistakes  -/s");
}

TEST(LearnProgress, SaysTheStateAndTheUpdatesLeftWhereTheyAreKnown) {
  v1::ConvergenceReport report;
  report.set_state(v1::CONVERGENCE_STATE_LEARNING);
  const auto line = [&] {
    return ProgressLine(LearnProgress({1, 1, std::nullopt}, Totals(), absl::Seconds(2), report),
                        97);
  };
  EXPECT_EQ(line(), "54,000 examples  1,520 mistakes  27,000/s  learning");
  report.set_updates_left(1650);
  EXPECT_EQ(line(),
            "54,000 examples  1,520 mistakes  27,000/s  learning  at most 1,650 more updates");
}

TEST(LearnProgress, CountsDuplicatesBesideNewExamples) {
  LearnTotals totals;
  totals.examples = 10;
  totals.duplicates = 3000;
  EXPECT_EQ(ProgressLine(LearnProgress({1, 1, std::nullopt}, totals, absl::Seconds(2)), 97),
            "10 examples  0 mistakes  1,505/s  3,000 duplicates");
}

TEST(Grouped, SetsThousandsApart) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
}

std::unique_ptr<Input> InputOf(std::vector<std::string> files) {
  InputOptions options;
  options.command = "learn";
  options.files = std::move(files);
  options.format = "svmlight";
  options.index_base = 1;
  perceptron::v1::Model model;
  model.mutable_feature_space()->mutable_dense()->set_dimension(4);
  auto input = Input::Make(options, model, true, false);
  EXPECT_TRUE(input.ok()) << input.status();
  return *std::move(input);
}

TEST(InputFraction, IsByTheBytesOfTheLinesTaken) {
  const testing::TempDir dir;
  std::ofstream(dir.path() + "/a") << "+1 1:1\n-1 2:1\n";
  std::ofstream(dir.path() + "/b") << "+1 1:1\n-1 2:1\n";
  const auto input = InputOf({dir.path() + "/a", dir.path() + "/b"});
  EXPECT_EQ(input->fraction(), 0);
  Row row;
  for (const double done : {0.25, 0.5, 0.75, 1.0}) {
    EXPECT_TRUE(*input->Next(&row));
    EXPECT_EQ(input->fraction(), done);
  }
  EXPECT_FALSE(*input->Next(&row));
  EXPECT_EQ(input->fraction(), 1);
  input->Rewind();
  EXPECT_EQ(input->fraction(), 0);
}

TEST(InputFraction, IsAbsentWhereAFileHasNoSize) {
  EXPECT_EQ(InputOf({"/dev/zero"})->fraction(), std::nullopt);
}

}  // namespace
}  // namespace perceptrond::client
