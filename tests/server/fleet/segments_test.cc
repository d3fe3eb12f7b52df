#include "server/fleet/segments.h"

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
  fleet::EvaluatedRows unknown = segment.evaluated();
  (*unknown.mutable_correct_rows(0)->mutable_row_errors())["NO_SUCH_REASON"] = 1;
  EXPECT_TRUE(refused(unknown));
  grpc::ByteBuffer bytes = testing::ToBytes("\x07");
  SegmentRequest parsed;
  EXPECT_TRUE(absl::IsInvalidArgument(ParseMessage(bytes, 1 << 20, parsed)));
}

}  // namespace
}  // namespace perceptrond
