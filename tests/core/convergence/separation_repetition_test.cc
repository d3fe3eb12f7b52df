// Analyses of the same data have the same bits, also several at once.
#include <future>

#include "tests/core/convergence/separation_checks.h"
#include "tests/support/separable.h"

namespace perceptrond {
namespace {

using testing::AnalyzeAll;
using testing::MakeSeparable;
using testing::Noise;
using testing::SeparableData;

void ExpectSameBits(const Analysis& a, const Analysis& b) {
  EXPECT_EQ(a.margin_floor, b.margin_floor);
  EXPECT_EQ(a.margin_ceiling, b.margin_ceiling);
  ASSERT_EQ(a.support.size(), b.support.size());
  for (size_t k = 0; k < a.support.size(); ++k)
    EXPECT_EQ(a.support[k].multiplier, b.support[k].multiplier);
  ASSERT_EQ(a.separator->vectors[0].weights.size(), b.separator->vectors[0].weights.size());
  for (size_t k = 0; k < a.separator->vectors[0].weights.size(); ++k)
    EXPECT_EQ(a.separator->vectors[0].weights[k].weight, b.separator->vectors[0].weights[k].weight);
}

TEST(Threads, AnalyzeAtOnceAsEachWouldAlone) {
  const SeparableData data = MakeSeparable(14, 1000, 30, 0.02, 1);
  const auto noise = Noise(15, 120, 20);
  const auto separate = [&] { return AnalyzeAll(data.examples, 1); };
  const auto certify = [&] { return AnalyzeAll(noise, 1); };
  auto first = std::async(std::launch::async, separate);
  auto second = std::async(std::launch::async, certify);
  auto third = std::async(std::launch::async, separate);
  auto fourth = std::async(std::launch::async, certify);
  const Analysis alone = separate();
  ExpectSameBits(first.get(), alone);
  ExpectSameBits(third.get(), alone);
  const Analysis a = second.get();
  const Analysis b = fourth.get();
  ASSERT_EQ(a.separability, Separability::kNotSeparable);
  ASSERT_EQ(a.certificate.size(), b.certificate.size());
  for (size_t k = 0; k < a.certificate.size(); ++k) {
    EXPECT_EQ(a.certificate[k].example, b.certificate[k].example);
    EXPECT_EQ(a.certificate[k].multiplier, b.certificate[k].multiplier);
  }
}

}  // namespace
}  // namespace perceptrond
