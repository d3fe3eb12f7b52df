// Requests with nested examples mean to the server what they mean to Protobuf's parser: those that
// a client would send, those that it would not, and damaged ones.
#include "server/sessions/nested_examples.h"

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

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

// Writes fields as no client does: in any order, several times, with any wire type.
class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  size_t Below(size_t n) { return random_() % n; }

  std::string Request() {
    std::string bytes;
    if (Below(2) == 0) bytes += Bytes(1, "models/m");
    for (size_t i = Below(4); i > 0; --i) bytes += Below(8) == 0 ? Unknown(0) : Example(Fields());
    if (Below(8) == 0) bytes += Bytes(4, Text());
    return bytes;
  }

  // Changes, inserts, removes or cuts off some bytes.
  std::string Damage(std::string bytes) {
    for (size_t i = 1 + Below(3); i > 0 && !bytes.empty(); --i) {
      const size_t at = Below(bytes.size());
      switch (Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random_());
          break;
        case 1:
          bytes.insert(at, 1, static_cast<char>(random_()));
          break;
        case 2:
          bytes.erase(at, 1 + Below(3));
          break;
        default:
          bytes.resize(at);
      }
    }
    return bytes;
  }

 private:
  std::string Fields() {
    std::string bytes;
    for (size_t i = Below(6); i > 0; --i) bytes += Field();
    return bytes;
  }
  std::string Field() {
    switch (Below(12)) {
      case 0:
        return Bytes(1, Features(0, 1));
      case 1:
        return Bytes(2, Features(1, 2));
      case 2:
      case 3:
      case 4:
        return Bytes(3, Names() + Features(0, 2));
      case 5:
        return Bytes(4 + static_cast<int>(Below(2)), Text());
      case 6:
      case 7:
        return Tag(6, 0) + Varint(Below(2) == 0 ? Below(4) : random_());
      case 8:
        return Bytes(7, Text());
      case 9:
        return Tag(8, 5) + Number();
      default:
        return Unknown(0);
    }
  }
  // Numbers of two fields, 0: none, packed or one at a time.
  std::string Features(int first, int second) {
    std::string bytes;
    for (size_t i = Below(4); i > 0; --i) {
      const int field = first != 0 && Below(2) == 0 ? first : second;
      std::string numbers;
      for (size_t j = Below(4); j > 0; --j) numbers += Number();
      if (Below(16) == 0) numbers += "x";
      bytes += Below(3) == 0 ? Tag(field, 5) + Number() : Bytes(field, numbers);
      if (Below(8) == 0) bytes += Unknown(0);
    }
    return bytes;
  }
  std::string Names() {
    std::string bytes;
    for (size_t i = Below(6); i > 0; --i) bytes += Bytes(1, Text());
    return bytes;
  }
  std::string Text() {
    static const std::vector<std::string> texts = {"",
                                                   "a",
                                                   "country=DE",
                                                   "straße",
                                                   "\xf0\x9f\x90\x8e",
                                                   "\xff",
                                                   "\xed\xa0\x80",
                                                   "\xc0\x80",
                                                   "\xe2\x82",
                                                   std::string(130, 'x'),
                                                   std::string("\0b", 2)};
    // Mostly valid ones.
    return texts[Below(Below(8) == 0 ? texts.size() : 5)];
  }
  std::string Number() {
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(random_());
    return bytes;
  }
  std::string Unknown(int depth) {
    const int field = static_cast<int>(Below(20));
    switch (Below(6)) {
      case 0:
        return Tag(field, 0) + Varint(random_());
      case 1:
        return Tag(field, 1) + Number() + Number();
      case 2:
        return Bytes(field, Text());
      case 3:
        return Group(field, depth < 3 ? Unknown(depth + 1) : "");
      case 4:
        return Tag(field, 5) + Number();
      default:
        // A tag that is longer than it need be.
        return std::string("\xc8\x80\x80\x00\x01", 5);
    }
  }

  std::mt19937 random_;
};

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

TEST_F(NestedExamplesTest, AnyRequestIsReadAsByProtobuf) {
  Writer writer(1);
  int valid = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string bytes = writer.Request();
    ASSERT_EQ(DifferenceFromProtobuf(bytes, 1 + writer.Below(100)), "") << i;
    valid += v1::LearnRequest().ParseFromString(bytes) ? 1 : 0;
  }
  EXPECT_GT(valid, 5'000);
  EXPECT_LT(valid, 19'000);
}

TEST_F(NestedExamplesTest, DamagedRequestsAreRefusedIfProtobufRefusesThem) {
  Writer writer(2);
  int valid = 0;
  for (int i = 0; i < 40'000; ++i) {
    const std::string bytes = writer.Damage(writer.Request());
    ASSERT_EQ(DifferenceFromProtobuf(bytes, 1 + writer.Below(100)), "") << i;
    valid += v1::LearnRequest().ParseFromString(bytes) ? 1 : 0;
  }
  EXPECT_GT(valid, 2'000);
}

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

TEST_F(NestedExamplesTest, AnEndWithinAFieldIsMalformed) {
  const std::string bytes = Named(Bytes(1, "name") + Bytes(2, "abcd")) + Bytes(1, "models/m");
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
