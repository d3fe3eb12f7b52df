#include "server/fleet/segments.h"

#include <functional>
#include <limits>

#include "core/vector/check.h"
#include "server/fleet/segment_session.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond {
namespace {

namespace fleet = ::perceptron::fleet::v1;

Tally MakeTally(uint64_t examples, double min_score) {
  Tally tally;
  tally.examples = examples;
  tally.weighted_examples = 1;
  tally.risk = 0.5;
  tally.loss = 0.25;
  tally.min_score = min_score;
  tally.squared_radius = 4;
  return tally;
}

TEST(SegmentsTest, WhatDoesNotAddUpIsMalformed) {
  PendingRows pending;
  pending.Add(0, 3, 7, MakeTally(3, 2));
  pending.Add(3, 1, 8, MakeTally(1, 2));
  fleet::Segment segment;
  pending.MoveTo(4, segment);
  const auto refused = [](const fleet::EvaluatedRows& evaluated) {
    std::vector<UnchangedRows> rows;
    return absl::IsInvalidArgument(Read(evaluated, rows));
  };
  EXPECT_FALSE(refused(segment.evaluated()));
  fleet::EvaluatedRows more = segment.evaluated();
  more.set_rows(5);
  EXPECT_TRUE(refused(more));
  fleet::EvaluatedRows unordered = segment.evaluated();
  unordered.mutable_correct_rows()->SwapElements(0, 1);
  EXPECT_TRUE(refused(unordered));
  for (const char* const reason : {"NO_SUCH_REASON", ""}) {
    fleet::EvaluatedRows unknown = segment.evaluated();
    (*unknown.mutable_correct_rows(0)->mutable_row_errors())[reason] = 1;
    unknown.set_rows(5);
    EXPECT_TRUE(refused(unknown));
  }
  grpc::ByteBuffer bytes = testing::ToBytes("\x07");
  SegmentRequest parsed;
  EXPECT_TRUE(absl::IsInvalidArgument(ParseMessage(bytes, 1 << 20, parsed)));
}

// Each would stay in the model's figures, take the writer's time, or overflow where offsets are added.
TEST(SegmentsTest, SumsOffsetsAndCountsThatNoExamplesHaveAreMalformed) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto read =
      [](const std::function<void(fleet::EvaluatedRows&, fleet::CorrectRows&)>& change) {
        fleet::EvaluatedRows evaluated;
        evaluated.set_rows(3);
        fleet::CorrectRows& rows = *evaluated.add_correct_rows();
        rows.set_examples(3);
        change(evaluated, rows);
        std::vector<UnchangedRows> unchanged;
        return Read(evaluated, unchanged);
      };
  using Rows = fleet::EvaluatedRows;
  using Tallied = fleet::CorrectRows;
  EXPECT_OK(read([](Rows&, Tallied&) {}));
  EXPECT_OK(read([](Rows& all, Tallied& rows) {
    all.set_rows(kMostEvaluatedRows);
    rows.set_examples(kMostEvaluatedRows);
  }));
  const std::function<void(Rows&, Tallied&)> changes[] = {
      [](Rows&, Tallied& rows) { rows.set_risk(kNaN); },
      [](Rows&, Tallied& rows) { rows.set_risk(-1); },
      [](Rows&, Tallied& rows) { rows.set_loss(kNaN); },
      [](Rows&, Tallied& rows) { rows.set_min_score(kNaN); },
      [](Rows&, Tallied& rows) { rows.set_squared_radius(kNaN); },
      [](Rows&, Tallied& rows) { rows.set_weighted_examples(4); },
      // A tally without rows; and one that has sums of examples, and none.
      [](Rows& all, Tallied&) { all.add_correct_rows()->set_revision(1); },
      [](Rows&, Tallied& rows) {
        rows.clear_examples();
        rows.set_loss(1);
        (*rows.mutable_row_errors())["NON_FINITE_VALUE"] = 3;
      },
      [](Rows& all, Tallied& rows) {
        all.set_rows(kMostEvaluatedRows + 1);
        rows.set_examples(kMostEvaluatedRows + 1);
      },
      [](Rows& all, Tallied&) { all.set_first_offset(-1); },
      [](Rows& all, Tallied&) { all.set_first_offset(std::numeric_limits<int64_t>::max()); },
      [](Rows& all, Tallied&) { all.set_request_offset(-1); },
  };
  for (size_t i = 0; i < std::size(changes); ++i)
    EXPECT_TRUE(absl::IsInvalidArgument(read(changes[i]))) << i;
}

}  // namespace
}  // namespace perceptrond
