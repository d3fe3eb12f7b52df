#include "core/convergence/adwin.h"

#include <cmath>
#include <random>

#include "gtest/gtest.h"

namespace perceptrond {
namespace {

struct Seen {
  int cuts = 0;
  // The answer at which the first came.
  int first = -1;
  Adwin::Cut last;
};

// Feeds answers that are wrong with the probability `error` has at each.
template <typename Error>
Seen Feed(Adwin& adwin, std::mt19937& random, int answers, Error error) {
  Seen seen;
  std::uniform_real_distribution<double> uniform;
  for (int i = 0; i < answers; ++i) {
    const bool mistake = uniform(random) < error(i);
    if (!adwin.Add(mistake ? 0 : 1, mistake, &seen.last)) continue;
    if (seen.cuts++ == 0) seen.first = i;
  }
  return seen;
}

TEST(Adwin, KeepsEverythingWhileTheErrorStandsStill) {
  std::mt19937 random(1);
  for (const double error : {0.0, 0.01, 0.2, 0.5}) {
    Adwin adwin;
    const Seen seen = Feed(adwin, random, 20000, [&](int) { return error; });
    EXPECT_EQ(seen.cuts, 0) << error;
    EXPECT_EQ(adwin.size(), 20000U);
    EXPECT_NEAR(adwin.error(), error, 5 * std::sqrt(error / 20000) + 1e-12);
  }
}

TEST(Adwin, FindsAJumpSoonAndForgetsWhatCameBefore) {
  std::mt19937 random(2);
  Adwin adwin;
  Feed(adwin, random, 10000, [](int) { return 0.05; });
  const Seen seen = Feed(adwin, random, 3000, [](int) { return 0.4; });
  ASSERT_GT(seen.cuts, 0);
  EXPECT_LT(seen.first, 300);
  EXPECT_LT(seen.last.error_before, seen.last.error_after);
  EXPECT_LT(adwin.size(), 3500U);
  EXPECT_NEAR(adwin.error(), 0.4, 0.05);
}

TEST(Adwin, FindsImprovementToo) {
  std::mt19937 random(3);
  Adwin adwin;
  Feed(adwin, random, 5000, [](int) { return 0.3; });
  const Seen seen = Feed(adwin, random, 5000, [](int) { return 0.1; });
  ASSERT_GT(seen.cuts, 0);
  EXPECT_NEAR(adwin.error(), 0.1, 0.03);
}

TEST(Adwin, ARunOfRightAnswersCountsAsThatManySingleOnes) {
  Adwin runs;
  Adwin singles;
  std::mt19937 random(4);
  Adwin::Cut cut;
  for (int n = 0; n < 300; ++n) {
    const uint64_t right = random() % 100;
    runs.Add(right, true, &cut);
    for (uint64_t i = 0; i < right; ++i) singles.Add(1, false, &cut);
    singles.Add(0, true, &cut);
    ASSERT_EQ(runs.size(), singles.size());
    ASSERT_EQ(runs.error(), singles.error());
  }
}

TEST(Adwin, FalseAlarmsAreAsRareAsTheTheoremSays) {
  // delta bounds the probability at any one look; over 300 streams of 1000 answers (31 looks each)
  // the expected number is far below 1 % of the looks.
  int cuts = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    Adwin adwin;
    cuts += Feed(adwin, random, 1000, [](int) { return 0.3; }).cuts > 0 ? 1 : 0;
  }
  EXPECT_LE(cuts, 300 * 31 * Adwin::kDelta);
}

}  // namespace
}  // namespace perceptrond
