// Requests with nested examples mean to the server what they mean to Protobuf's parser, at the ends of what it takes.
// tests/fuzz/nested_fuzz.cc has damaged ones.
#include "server/sessions/nested_examples.h"

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/nested_examples.h"

namespace perceptrond::nested_examples_test {
namespace {

namespace v1 = ::perceptron::v1;
using ::perceptrond::testing::DifferenceFromProtobuf;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Tag(int field, int type) { return Varint(static_cast<uint64_t>(field * 8 + type)); }
std::string Bytes(int field, const std::string& value) {
  return Tag(field, 2) + Varint(value.size()) + value;
}
std::string Group(int field, const std::string& fields) {
  return Tag(field, 3) + fields + Tag(field, 4);
}
std::string Example(const std::string& fields) { return Bytes(2, fields); }
std::string Named(const std::string& fields) { return Example(Bytes(3, fields)); }

class NestedExamplesTest : public ::testing::Test {
 protected:
  // Protobuf logs invalid UTF-8.
  NestedExamplesTest() : logs_(google::protobuf::SetLogHandler(nullptr)) {}
  ~NestedExamplesTest() override { google::protobuf::SetLogHandler(logs_); }

  static void ExpectSame(const std::string& bytes, bool valid) {
    v1::LearnRequest request;
    EXPECT_EQ(request.ParseFromString(bytes), valid);
    EXPECT_EQ(DifferenceFromProtobuf(bytes, 1000), "");
    EXPECT_EQ(DifferenceFromProtobuf(bytes, 3), "");
  }

 private:
  google::protobuf::LogHandler* const logs_;
};

TEST_F(NestedExamplesTest, NamesOfAnyLengthAreReadAndCheckedForUtf8) {
  for (const size_t size : {0, 1, 7, 127, 128, 129, 1025, 20'000}) {
    ExpectSame(Named(Bytes(1, std::string(size, 'x')) + Bytes(1, "next")), true);
    ExpectSame(Named(Bytes(1, "first") + Bytes(1, std::string(size, '\x80'))), size == 0);
  }
  ExpectSame(Named(Bytes(1, "stra\xc3") + Bytes(1,
                                                "\x9f"
                                                "e")),
             false);
  // Also a name that does not count.
  ExpectSame(Example(Bytes(3, Bytes(1, "\xff")) + Bytes(1, "")), false);
}

TEST_F(NestedExamplesTest, NumbersComeOneAtATimeAndInPieces) {
  const std::string one = Tag(1, 5) + "abcd";
  const std::string value = Tag(2, 5) + "efgh";
  for (const int features : {1, 2, 3}) {
    for (const std::string& piece : {one, value, Bytes(1, "abcdefgh"), Bytes(2, "ijkl")}) {
      const std::string pieces = piece + one + Bytes(1, "") + Bytes(2, "") + value + piece;
      // Features that occur again are merged; others replace them.
      ExpectSame(Example(Bytes(features, pieces) + Bytes(features, piece)), true);
      ExpectSame(Example(Bytes(features, pieces) + Bytes(features % 3 + 1, piece)), true);
    }
    ExpectSame(Example(Bytes(features, Bytes(features == 1 ? 1 : 2, "abc"))), false);
  }
  const std::string weight = Tag(8, 5) + "abcd";
  ExpectSame(Example(weight + Tag(8, 5) + "efgh"), true);
  ExpectSame(Example(weight.substr(0, 4)), false);
}

TEST_F(NestedExamplesTest, AnEndWithinAFieldIsMalformed) {
  const std::string bytes =
      Named(Bytes(1, "name") + Bytes(2, "abcd") + Tag(2, 5) + "efgh") + Bytes(1, "models/m");
  for (size_t size = 0; size < bytes.size(); ++size) {
    v1::LearnRequest request;
    ExpectSame(bytes.substr(0, size), request.ParseFromString(bytes.substr(0, size)));
  }
}

TEST_F(NestedExamplesTest, GroupsNestAsDeeplyAsWithProtobuf) {
  std::string groups;
  for (int depth = 1; depth <= 103; ++depth) {
    groups = Group(15, groups);
    ExpectSame(Named("") + groups, depth <= 100);
    ExpectSame(Example(groups), depth <= 99);
    ExpectSame(Named(groups), depth <= 98);
  }
  ExpectSame(Named(Tag(15, 3) + Tag(14, 4)), false);
  ExpectSame(Named(Tag(15, 4)), false);
}

TEST_F(NestedExamplesTest, UnknownFieldsOfEveryTypeAreSkipped) {
  // Of types 4, 6 and 7 there are no fields.
  const std::string contents[] = {"\1", "abcdefgh", "\1a", Tag(15, 4), "", "abcd", "", ""};
  for (const int type : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const std::string field = Tag(15, type) + contents[type];
    for (const std::string& fields : {field, Group(14, field)})
      ExpectSame(Example(fields), type < 4 || type == 5);
  }
}

TEST_F(NestedExamplesTest, VarintsAreAsLongAsWithProtobuf) {
  for (int more = 0; more <= 10; ++more) {
    std::string varint(static_cast<size_t>(more), '\x81');
    varint += '\x01';
    ExpectSame(Example(Tag(6, 0) + varint), more <= 9);
    std::string size = "\x84" + std::string(static_cast<size_t>(more), '\x80');
    size += '\0';
    ExpectSame(Named("\x0a" + size + "name"), more <= 3);
  }
  // Bits beyond 32 do not count in a tag, and are too many in a size.
  ExpectSame(Named("\x8a\x80\x80\x80\x70\x01"
                   "a"),
             true);
  ExpectSame(Named("\x0a\x81\x80\x80\x80\x10"
                   "a"),
             false);
}

}  // namespace
}  // namespace perceptrond::nested_examples_test
