// What a message takes once it is parsed is known before: also of one that is made to take much.
#include "core/store/parsed_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/string_view.h"
#include "perceptron/storage/v1/model_file.pb.h"

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

size_t Estimate(const std::string& bytes, const ReadInPlace& in_place = {}) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  return ParsedBytes(*storage::ModelFileFrame::descriptor(), in, in_place);
}
size_t Estimate(const storage::ModelFileFrame& frame) {
  return Estimate(frame.SerializeAsString());
}

// Compared with the frame as a parser makes it.
void ExpectNear(const std::string& bytes) {
  storage::ModelFileFrame parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_GE(Estimate(bytes), parsed.SpaceUsedLong() / 4 * 3) << bytes.size();
  EXPECT_LE(Estimate(bytes), parsed.SpaceUsedLong() * 2) << bytes.size();
}
void ExpectNear(const storage::ModelFileFrame& frame) { ExpectNear(frame.SerializeAsString()); }

std::string Repeat(absl::string_view part, int times) {
  std::string bytes;
  for (int i = 0; i < times; ++i) bytes.append(part.data(), part.size());
  return bytes;
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

// They are kept, each by itself.
TEST(ParsedBytesTest, FieldsThatTheTypeDoesNotHaveTakeWhatTheirParserKeeps) {
  for (
      const absl::string_view field : {
          // Of number 15: a number, empty bytes, a group, a group with a number, and two groups in one.
          absl::string_view("\x78\0", 2),
          absl::string_view("\x7a\0", 2),
          absl::string_view("\x7b\x7c", 2),
          absl::string_view("\x7b\x78\0\x7c", 4),
          absl::string_view("\x7b\x7b\x7c\x7b\x7c\x7c", 6),
          // Of number 4, the state, as a number.
          absl::string_view("\x20\0", 2),
      }) {
    const std::string bytes = Repeat(field, 10'000);
    ExpectNear(bytes);
    EXPECT_GE(Estimate(bytes), 12 * bytes.size());
  }
}

TEST(ParsedBytesTest, AFieldThatIsReadInPlaceTakesWhatIsSaid) {
  storage::ModelFileFrame frame;
  for (int i = 0; i < 1000; ++i) frame.mutable_state()->add_rows();
  const std::string bytes = frame.SerializeAsString();
  const size_t without = Estimate("");
  EXPECT_EQ(Estimate(bytes, {storage::ModelFileFrame::kStateFieldNumber, 100, 3}),
            without + 100 + 3 * frame.state().ByteSizeLong());
}

TEST(ParsedBytesTest, MalformedBytesEndIt) {
  storage::ModelFileFrame frame;
  for (int i = 0; i < 100; ++i)
    frame.mutable_state()->mutable_stored_rows()->add_rows()->add_indices(7);
  const std::string bytes = frame.SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_LE(Estimate(bytes.substr(0, size)), Estimate(frame)) << size;
  const size_t empty = Estimate("");
  EXPECT_GT(empty, 0);
  // No field, a string of 2 GB without its bytes, the end of a group that has not begun.
  for (const char* malformed : {"\xff\xff\xff\xff\xff\xff", "\x7a\xff\xff\xff\xff\x07", "\x7c"})
    EXPECT_EQ(Estimate(malformed), empty);
  // Protobuf follows no groups deeper.
  EXPECT_LT(Estimate(Repeat("\x7b", 100'000)), empty + 100 * 100);
}

}  // namespace
}  // namespace perceptrond
