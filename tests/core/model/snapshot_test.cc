// A learner's rows through a snapshot, whole and in parts.
#include "core/model/snapshot.h"

#include <functional>
#include <random>

#include "core/journal/snapshot_parts.h"
#include "gtest/gtest.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

RowStore RandomRows(uint32_t seed, size_t count, size_t features) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  RowStore rows;
  for (size_t n = 0; n < count; ++n) {
    std::vector<float> values(random() % (features + 1));
    for (float& value : values) value = normal(random);
    rows.Push({nullptr, values.data(), values.size()}, normal(random));
    // Some that have gone: no trace of them is kept.
    if (random() % 4 == 0) rows.Pop();
  }
  return rows;
}

void ExpectSame(const RowStore& one, const RowStore& other) {
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) {
    const Row a = one.row(i);
    const Row b = other.row(i);
    ASSERT_EQ(a.size, b.size);
    EXPECT_EQ(one.coefficient(i), other.coefficient(i));
    for (size_t j = 0; j < a.size; ++j) {
      EXPECT_EQ(a.index(j), b.index(j));
      EXPECT_EQ(a.value(j), b.value(j));
    }
  }
}

storage::Snapshot Write(const RowStore& rows) {
  LearnerStateView view;
  view.scalars = {1, 2};
  view.rows = &rows;
  return WriteState(view);
}

TEST(SnapshotRows, ComeBackAsTheyWere) {
  for (const size_t features : {0, 1, 30, 3000}) {
    const RowStore rows = RandomRows(1, 200, features);
    const auto state = ReadState(Write(rows));
    ASSERT_OK(state.status());
    ExpectSame(state->rows, rows);
  }
}

TEST(SnapshotRows, AreCutIntoPartsAndPutTogether) {
  // More features than are written together.
  const RowStore rows = RandomRows(2, 200, 8000);
  const storage::Snapshot snapshot = Write(rows);
  ASSERT_GT(snapshot.rows_size(), 2);
  int parts = 0;
  storage::Snapshot whole;
  ASSERT_OK(ForEachPart(snapshot, 1 << 20, [&](const storage::Snapshot& part) {
    ++parts;
    return AppendPart(part, whole);
  }));
  EXPECT_GT(parts, 2);
  EXPECT_EQ(whole.SerializeAsString(), snapshot.SerializeAsString());
}

TEST(SnapshotRows, ThatContradictThemselvesAreDataLoss) {
  const auto read = [](const std::function<void(storage::StateRows&)>& change) {
    RowStore rows;
    const std::vector<float> values = {1, 2, 3};
    rows.Push({nullptr, values.data(), 3}, 1);
    storage::Snapshot snapshot = Write(rows);
    change(*snapshot.mutable_rows(0));
    return ReadState(snapshot).status();
  };
  EXPECT_OK(read([](storage::StateRows&) {}));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.set_row_ends(0, 4); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.add_row_ends(1); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.add_values(1); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.set_indices(0, 1); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) {
    rows.add_row_ends(2);
    rows.add_coefficients(1);
  })));
}

}  // namespace
}  // namespace perceptrond
