#include "server/fleet/segments.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/vector/check.h"
#include "server/fleet/segment_session.h"
#include "tests/support/names.h"
#include "tests/support/status.h"

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

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

TEST(SegmentsTest, RowsOfOneRevisionAreOneTally) {
  PendingRows pending;
  EXPECT_TRUE(pending.empty());
  pending.Add(10, 3, 7, MakeTally(3, 2));
  Tally with_error = MakeTally(1, 1);
  with_error.AddRowError(ValidationCode::kUnknownLabel);
  pending.Add(13, 2, 7, with_error);
  pending.Add(15, 4, 9, MakeTally(4, 3));
  fleet::Segment segment;
  pending.MoveTo(19, segment);
  EXPECT_TRUE(pending.empty());
  EXPECT_EQ(segment.evaluated().first_offset(), 10);
  EXPECT_EQ(segment.evaluated().rows(), 9);
  EXPECT_EQ(segment.evaluated().request_offset(), 19);
  std::vector<UnchangedRows> rows;
  ASSERT_OK(Read(segment.evaluated(), rows));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].revision, 7U);
  EXPECT_EQ(rows[0].tally.examples, 4U);
  EXPECT_EQ(rows[0].tally.row_error_count, 1U);
  EXPECT_EQ(rows[0].tally.row_errors[static_cast<size_t>(ValidationCode::kUnknownLabel)], 1U);
  EXPECT_EQ(rows[0].tally.weighted_examples, 2U);
  EXPECT_EQ(rows[0].tally.risk, 1);
  EXPECT_EQ(rows[0].tally.loss, 0.5);
  EXPECT_EQ(rows[0].tally.min_score, 1);
  EXPECT_EQ(rows[0].tally.squared_radius, 4);
  EXPECT_EQ(rows[0].tally.mistakes, 0U);
  EXPECT_EQ(rows[1].revision, 9U);
  EXPECT_EQ(rows[1].tally.examples, 4U);
}

TEST(SegmentsTest, NothingPendingSendsNothing) {
  PendingRows pending;
  fleet::Segment segment;
  pending.MoveTo(19, segment);
  EXPECT_FALSE(segment.has_evaluated());
}

TEST(SegmentsTest, NamesAloneArePending) {
  PendingRows pending;
  ::perceptron::v1::NameColumn names;
  perceptrond::name_columns::AppendName("red", names);
  pending.AddNames(names);
  EXPECT_FALSE(pending.empty());
  EXPECT_EQ(pending.name_bytes(), 7U);
  fleet::Segment segment;
  pending.MoveTo(3, segment);
  EXPECT_EQ(segment.evaluated().first_offset(), 3);
  EXPECT_EQ(segment.evaluated().rows(), 0);
  EXPECT_EQ(segment.evaluated().stream_names(0).text(), "red");
}

TEST(SegmentsTest, ARequestsBytesArriveAsTheyWere) {
  ::perceptron::v1::LearnStreamRequest request;
  request.set_model("models/m");
  request.mutable_columns()->add_row_ends(0);
  request.mutable_columns()->add_labels(1);
  PendingRows pending;
  pending.Add(0, 3, 7, MakeTally(3, 2));
  fleet::Segment head;
  pending.MoveTo(3, head);
  grpc::ByteBuffer bytes = Serialize(head, Bytes(request.SerializeAsString()));
  SegmentRequest parsed;
  ASSERT_OK(ParseMessage(bytes, 1 << 20, parsed));
  EXPECT_EQ(parsed.message.SerializeAsString(), request.SerializeAsString());
  EXPECT_EQ(parsed.segment.evaluated().rows(), 3);
  EXPECT_EQ(parsed.model(), "models/m");
  // One without a request is an empty request.
  bytes = Serialize(head, {});
  ASSERT_OK(ParseMessage(bytes, 1 << 20, parsed));
  EXPECT_EQ(parsed.message.ByteSizeLong(), 0U);
  EXPECT_EQ(parsed.segment.evaluated().rows(), 3);
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
  grpc::ByteBuffer bytes = Bytes("\x07");
  SegmentRequest parsed;
  EXPECT_TRUE(absl::IsInvalidArgument(ParseMessage(bytes, 1 << 20, parsed)));
}

}  // namespace
}  // namespace perceptrond
