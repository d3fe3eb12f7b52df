// What a message takes once it is parsed is known before: also of one that is made to take much.
#include "core/store/parsed_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "perceptron/storage/v1/model_file.pb.h"

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

size_t Estimate(const storage::ModelFileFrame& frame) {
  return ParsedBytes(*storage::ModelFileFrame::descriptor(), frame.SerializeAsString());
}

// The frame as a parser makes it.
size_t Actual(const storage::ModelFileFrame& frame) {
  storage::ModelFileFrame parsed;
  EXPECT_TRUE(parsed.ParseFromString(frame.SerializeAsString()));
  return parsed.SpaceUsedLong();
}

void ExpectNear(const storage::ModelFileFrame& frame) {
  EXPECT_GE(Estimate(frame), Actual(frame) / 4 * 3) << frame.ByteSizeLong();
  EXPECT_LE(Estimate(frame), Actual(frame) * 2) << frame.ByteSizeLong();
}

TEST(ParsedBytesTest, WeightsTakeTheirBytes) {
  storage::ModelFileFrame frame;
  storage::StateArray& array = *frame.mutable_state()->add_arrays();
  for (uint32_t i = 0; i < 100'000; ++i) {
    array.add_indices(i);
    array.add_values(1);
  }
  ExpectNear(frame);
  EXPECT_LT(Estimate(frame), frame.ByteSizeLong() + 10'000);
}

TEST(ParsedBytesTest, PartsThatAreEmptyTakeWhatTheirObjectsDo) {
  storage::ModelFileFrame rows;
  storage::ModelFileFrame stored;
  storage::ModelFileFrame names;
  for (int i = 0; i < 10'000; ++i) {
    rows.mutable_state()->add_rows();
    stored.mutable_state()->mutable_stored_rows()->add_rows();
    names.mutable_state()->add_names("");
  }
  for (const storage::ModelFileFrame& frame : {rows, stored, names}) {
    ExpectNear(frame);
    EXPECT_GT(Estimate(frame), 15 * frame.ByteSizeLong());
  }
}

TEST(ParsedBytesTest, MalformedBytesEndIt) {
  storage::ModelFileFrame frame;
  for (int i = 0; i < 100; ++i)
    frame.mutable_state()->mutable_stored_rows()->add_rows()->add_indices(7);
  const std::string bytes = frame.SerializeAsString();
  const google::protobuf::Descriptor& type = *storage::ModelFileFrame::descriptor();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_LE(ParsedBytes(type, bytes.substr(0, size)), Estimate(frame)) << size;
  EXPECT_GT(ParsedBytes(type, ""), 0);
  EXPECT_GT(ParsedBytes(type, "\xff\xff\xff\xff\xff\xff"), 0);
}

}  // namespace
}  // namespace perceptrond
