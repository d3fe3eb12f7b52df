// Rates of examples, and figures whose number is bounded.
#include "server/access/principal_usage.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(RateLimit, ASecondsExamplesPassAtOnceAndFurtherOnesAreOwed) {
  RateLimit limit;
  limit.Set(100);
  limit.Use(100, kStart);
  EXPECT_EQ(limit.Wait(kStart), absl::ZeroDuration());
  limit.Use(250, kStart);
  EXPECT_EQ(limit.Wait(kStart), absl::Seconds(2.5));
  EXPECT_EQ(limit.Wait(kStart + absl::Seconds(1)), absl::Seconds(1.5));
  EXPECT_EQ(limit.Wait(kStart + absl::Seconds(3)), absl::ZeroDuration());
}

TEST(RateLimit, OverAnyLongTimeNoMoreThanTheRateAndOneSecondsExamplesPass) {
  RateLimit limit;
  limit.Set(100);
  uint64_t passed = 0;
  for (int millisecond = 0; millisecond < 10'000; ++millisecond) {
    const absl::Time now = kStart + absl::Milliseconds(millisecond);
    if (limit.Wait(now) > absl::ZeroDuration()) continue;
    limit.Use(7, now);
    passed += 7;
  }
  EXPECT_GE(passed, 1000u);
  EXPECT_LE(passed, 1100u + 7);
}

TEST(RateLimit, ZeroIsNoLimitAndADebtOutlivesAHigherLimit) {
  RateLimit limit;
  limit.Use(1'000'000, kStart);
  EXPECT_EQ(limit.Wait(kStart), absl::ZeroDuration());
  limit.Set(10);
  limit.Use(30, kStart);
  limit.Set(20);
  EXPECT_EQ(limit.Wait(kStart), absl::Seconds(1));
}

TEST(PrincipalUsages, HaveOneEntryEachUpToALimitAndTheRestTogether) {
  std::string text;
  for (int i = 0; i < 150; ++i)
    absl::StrAppend(&text, "principal { name: 'p", i, "' certificate: 'cn:", i, "' }\n");
  PrincipalUsages usages(0);
  usages.Use(**AccessRules::Parse(text));
  usages.Find("p3")->calls[PrincipalUsage::kOk] = 5;
  for (const char* name : {"p120", "p140"}) usages.Find(name)->examples = 4;
  usages.Find("nobody")->calls[PrincipalUsage::kDenied] = 2;
  const std::vector<PrincipalMetrics> metrics = usages.metrics();
  ASSERT_EQ(metrics.size(), 2 + PrincipalUsages::kMaxNamed);
  EXPECT_EQ(metrics.front().name, "");
  EXPECT_EQ(metrics.front().calls[PrincipalUsage::kDenied], 2u);
  EXPECT_EQ(metrics[4].name, "p3");
  EXPECT_EQ(metrics[4].calls[PrincipalUsage::kOk], 5u);
  EXPECT_EQ(metrics.back().name, "other");
  EXPECT_EQ(metrics.back().examples, 8u);
}

TEST(PrincipalUsages, CountsOutliveAChangeOfTheFileAndLimitsFollowIt) {
  PrincipalUsages usages(10);
  usages.Use(**AccessRules::Parse("principal { name: 'a' certificate: 'cn:a' }"));
  usages.Find("a")->examples = 3;
  usages.Find("a")->examples_limit.Use(20, kStart);
  EXPECT_EQ(usages.Find("a")->examples_limit.Wait(kStart), absl::Seconds(1));
  usages.Use(**AccessRules::Parse(
      "principal { name: 'a' certificate: 'cn:a' max_examples_per_second: 0 }"));
  EXPECT_EQ(usages.Find("a")->examples, 3u);
  EXPECT_EQ(usages.Find("a")->examples_limit.Wait(kStart), absl::ZeroDuration());
}

}  // namespace
}  // namespace perceptrond
