// The line of progress that `learn` and `predict` draw.
#include "client/ctl/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/ctl/commands/learn_summary.h"

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

TEST(ProgressLine, FitsEveryWindowThatHoldsABar) {
  for (size_t columns = 40; columns < 130; ++columns) {
    for (const double read : {0.0, 0.5, 0.999, 1.0}) {
      const Progress progress = LearnProgress({9, 10, read}, Totals(), absl::Seconds(2));
      EXPECT_LE(ProgressLine(progress, columns).size(), columns);
      EXPECT_THAT(ProgressLine(progress, columns), StartsWith("[==="));
    }
  }
  EXPECT_EQ(ProgressLine({0.9999, "", {}}, 20), "[============>] 99 %");
  EXPECT_EQ(ProgressLine({1.5, "", {}}, 20), "[============] 100 %");
}

TEST(LearnProgress, SaysWhatIsKnown) {
  v1::ConvergenceReport report;
  report.set_state(v1::CONVERGENCE_STATE_LEARNING);
  LearnTotals repeated;
  repeated.examples = 10;
  repeated.duplicates = 3000;
  const absl::Duration time = absl::Seconds(2);
  for (const auto& [progress, line] : std::vector<std::pair<Progress, std::string>>{
           {LearnProgress({3, 10, 0.2}, Totals(), time),
            "[======>                       ] 22 %  pass 3/10  54,000 examples  1,520 mistakes  "
            "27,000/s"},
           {LearnProgress({1, 1, std::nullopt}, Totals(), time),
            "54,000 examples  1,520 mistakes  27,000/s"},
           {LearnProgress({1, 1, std::nullopt}, repeated, time),
            "10 examples  0 mistakes  1,505/s  3,000 duplicates"},
           {LearnProgress({2, std::nullopt, std::nullopt}, LearnTotals(), absl::ZeroDuration()),
            "pass 2  0 examples  0 mistakes  -/s"},
           {LearnProgress({1, 1, std::nullopt}, Totals(), time, report),
            "54,000 examples  1,520 mistakes  27,000/s  learning"}})
    EXPECT_EQ(ProgressLine(progress, 97), line);
}

}  // namespace
}  // namespace perceptrond::client
