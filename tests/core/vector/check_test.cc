#include "core/vector/check.h"

#include <cmath>
#include <limits>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "core/convergence/tally.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"

namespace perceptrond {
namespace {

using testing::Columns;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Bad {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  ValidationCode code;
  const char* field;
  std::optional<size_t> position = std::nullopt;
};

void PrintTo(const Bad& bad, std::ostream* out) {
  *out << ReasonName(bad.code) << " of " << bad.indices.size() << " indices and "
       << bad.values.size() << " values";
}

class BadRow : public ::testing::TestWithParam<Bad> {};

TEST_P(BadRow, IsFoundAndDescribed) {
  Columns columns;
  if (GetParam().indices.empty()) {
    columns.AddDense(GetParam().values, 1);
  } else {
    columns.Add(GetParam().indices, GetParam().values, 1);
  }
  const Row row = columns.batch().row(0);
  double norm = -1;
  ASSERT_EQ(CheckRow(row, 4, 5, &norm), GetParam().code);
  const ValidationError error = DescribeRow(row, 4, 5, GetParam().code);
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_EQ(error.field, GetParam().field);
  EXPECT_EQ(error.position, GetParam().position);
  EXPECT_FALSE(error.description.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Faults, BadRow,
    ::testing::Values(
        Bad{{0, 1}, {1, kNaN}, ValidationCode::kNonFiniteValue, "values", 1},
        Bad{{0, 1}, {kInfinity, 1}, ValidationCode::kNonFiniteValue, "values", 0},
        Bad{{0, 1}, {1, -kInfinity}, ValidationCode::kNonFiniteValue, "values", 1},
        Bad{{0, 2, 1}, {1, 1, 1}, ValidationCode::kUnsortedIndices, "indices", 2},
        Bad{{2, 2}, {1, 1}, ValidationCode::kUnsortedIndices, "indices", 1},
        Bad{{0, 4}, {1, 1}, ValidationCode::kIndexOutOfRange, "indices", 1},
        Bad{{0xffffffff}, {1}, ValidationCode::kIndexOutOfRange, "indices", 0},
        Bad{{0, 1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1}, ValidationCode::kTooManyFeatures, "indices"},
        Bad{{}, {1, 2, 3}, ValidationCode::kWrongDimension, "values"},
        Bad{{}, {1, 2, 3, 4, 5}, ValidationCode::kWrongDimension, "values"},
        Bad{{}, {1, 2, 3, 4, 5, 6}, ValidationCode::kTooManyFeatures, "values"},
        Bad{{}, {1, 2, kNaN, 4}, ValidationCode::kNonFiniteValue, "values", 2}));

TEST(CheckRow, TellsTheSquaredNormOfAGoodRow) {
  double norm = 0;
  EXPECT_EQ(CheckRow(Columns().Add({0, 3}, {3, -4}, 1).batch().row(0), 4, 5, &norm),
            ValidationCode::kNone);
  EXPECT_EQ(norm, 25);
}

// Its square overflows float32, but not the float64 it is kept in.
TEST(CheckRow, TakesTheLargestNumbers) {
  const float huge = std::numeric_limits<float>::max();
  double norm = 0;
  EXPECT_EQ(CheckRow(Columns().Add({0}, {huge}, 1).batch().row(0), 4, 5, &norm),
            ValidationCode::kNone);
  EXPECT_TRUE(std::isfinite(norm));
}

TEST(CheckRow, TakesARowWithoutFeaturesWhereverItLies) {
  double norm = -1;
  const Columns alone = Columns().Add({}, {}, 1);
  EXPECT_EQ(CheckRow(alone.batch().row(0), 4, 5, &norm), ValidationCode::kNone);
  EXPECT_EQ(norm, 0);
  const Columns among = Columns().Add({}, {}, 1).Add({1}, {1}, 1).Add({}, {}, -1);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(CheckRow(among.batch().row(i), 4, 5, &norm), ValidationCode::kNone) << i;
}

TEST(CheckColumns, NamesTheColumnThatIsMalformed) {
  const Columns good = Columns().Add({0, 1}, {1, 2}, 1).Add({3}, {1}, -1);
  const Columns dense = Columns().AddDense({1, 2, 3}, 1).AddDense({4, 5, 6}, 1);
  EXPECT_FALSE(CheckColumns(good.batch()));
  EXPECT_FALSE(CheckColumns(good.unlabelled()));
  EXPECT_FALSE(CheckColumns(Batch()));
  EXPECT_FALSE(CheckColumns(dense.batch()));
  const auto expect_field = [](Batch batch, const std::string& field, auto change) {
    change(batch);
    const ValidationError error = CheckColumns(batch);
    EXPECT_EQ(error.code, ValidationCode::kMalformedColumns);
    EXPECT_EQ(error.field, field);
    EXPECT_FALSE(error.description.empty());
  };
  const std::vector<uint32_t> descending = {3, 2};
  expect_field(good.batch(), "row_ends[1]", [&](Batch& batch) { batch.row_ends = descending; });
  for (const std::vector<uint32_t>& ends :
       {std::vector<uint32_t>{2, 2}, std::vector<uint32_t>{2, 4}, std::vector<uint32_t>{}})
    expect_field(good.batch(), "row_ends", [&](Batch& batch) { batch.row_ends = ends; });
  expect_field(good.batch(), "values", [](Batch& batch) { batch.values = batch.values.first(2); });
  expect_field(good.batch(), "labels", [](Batch& batch) { batch.labels = batch.labels.first(1); });
  expect_field(good.batch(), "dense_width", [](Batch& batch) { batch.dense_width = 3; });
  expect_field(dense.batch(), "values", [](Batch& batch) { batch.values = batch.values.first(5); });
}

TEST(ReasonName, OfEachFaultIsItsOwn) {
  std::set<std::string> reasons;
  for (size_t i = 0; i < kValidationCodes; ++i)
    reasons.insert(ReasonName(static_cast<ValidationCode>(i)));
  EXPECT_EQ(reasons.size(), kValidationCodes);
  EXPECT_STREQ(ReasonName(ValidationCode::kNonFiniteValue), "NON_FINITE_VALUE");
  EXPECT_STREQ(ReasonName(ValidationCode::kFeatureCap), "FEATURE_CAP");
}

}  // namespace
}  // namespace perceptrond
