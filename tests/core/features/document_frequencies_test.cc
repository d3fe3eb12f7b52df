#include "core/features/document_frequencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/vector/arithmetic.h"

namespace perceptrond {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeterministicLog, IsTheLogarithm) {
  EXPECT_EQ(DeterministicLog(1), 0);
  for (double x = 1e-300; x < 1e300; x *= 1.37)
    EXPECT_NEAR(DeterministicLog(x), std::log(x), 1e-15 * std::max(1.0, std::abs(std::log(x))));
}

// By scikit-learn 1.2.1: TfidfTransformer().fit([[1, 0, 0], [1, 1, 0], [1, 0, 2], [0, 0, 1]]).
TEST(InverseDocumentFrequencies, AreScikitLearns) {
  const InverseDocumentFrequencies frequencies(4, {4, {0, 1, 2}, {3, 1, 2}});
  EXPECT_FLOAT_EQ(frequencies.of(0), 1.2231436F);
  EXPECT_FLOAT_EQ(frequencies.of(1), 1.9162907F);
  EXPECT_FLOAT_EQ(frequencies.of(2), 1.5108256F);
  // No document has it.
  EXPECT_EQ(frequencies.of(3), 1);
  const uint32_t indices[] = {0, 2};
  const float values[] = {1, 2};
  float scaled[2];
  ScaleText({indices, values, 2}, &frequencies, /*keep_norm=*/false, scaled);
  EXPECT_FLOAT_EQ(scaled[0], 0.3752176F);
  EXPECT_FLOAT_EQ(scaled[1], 0.92693676F);
  ScaleText({indices, values, 2}, &frequencies, /*keep_norm=*/true, scaled);
  EXPECT_FLOAT_EQ(scaled[1], 2 * 1.5108256F);
  // Without any in force each is 1.
  EXPECT_DOUBLE_EQ(ScaleText({indices, values, 2}, nullptr, false, scaled), std::sqrt(5.0));
}

TEST(DocumentCounter, IsDueAtTheFirstCountAndWheneverItHasDoubled) {
  DocumentCounter counter(8);
  const std::vector<uint32_t> even = {0, 2};
  const std::vector<uint32_t> none;
  for (uint64_t left = DocumentCounter::kFirstDue; left > 0; --left) {
    EXPECT_EQ(counter.UntilDue(), left);
    counter.Add(left % 2 == 0 ? even : none);
  }
  EXPECT_EQ(counter.UntilDue(), 0U);
  counter.SetInForce(64);
  EXPECT_EQ(counter.UntilDue(), 64U);
  const DocumentCounts counts = counter.Copy();
  EXPECT_EQ(counts.documents, 64U);
  EXPECT_THAT(counts.slots, ElementsAre(0U, 2U));
  EXPECT_THAT(counts.counts, ElementsAre(32U, 32U));
  DocumentCounter other(8);
  other.Add(std::vector<uint32_t>{7});
  other.Restore(counts, 64);
  EXPECT_EQ(other.UntilDue(), 64U);
  EXPECT_THAT(other.Copy().slots, ElementsAre(0U, 2U));
  other.Restore({}, 0);
  EXPECT_EQ(other.UntilDue(), 64U);
  EXPECT_THAT(other.Copy().slots, IsEmpty());
}

}  // namespace
}  // namespace perceptrond
