#include "client/format/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace perceptrond::client {
namespace {

// Hands out a few bytes at a time.
class Trickle final : public ByteSource {
 public:
  Trickle(std::string content, size_t step) : content_(std::move(content)), step_(step) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    const size_t count = std::min({size, step_, content_.size() - position_});
    std::copy_n(content_.data() + position_, count, buffer);
    position_ += count;
    return count;
  }

 private:
  const std::string content_;
  const size_t step_;
  size_t position_ = 0;
};

class ReaderTest : public testing::Test {
 protected:
  ReaderTest() {
    FormatOptions options;
    options.index_base = 1;
    format_ = *MakeFormat(options);
  }
  Reader ReaderOf(const std::string& content, size_t step = 3, int64_t skip = 0) {
    return Reader("f", std::make_unique<Trickle>(content, step), format_.get(), skip);
  }
  // The first index of each example.
  std::vector<uint32_t> Indices(Reader reader) {
    std::vector<uint32_t> indices;
    Row row;
    while (true) {
      const auto more = reader.Next(&row);
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) return indices;
      indices.push_back(row.indices.at(0));
    }
  }
  std::unique_ptr<Format> format_;
};

TEST_F(ReaderTest, ReadsLinesHoweverTheBytesArrive) {
  const std::string content = "1 1:1\n-1 22:1\r\n\n# none\n1 333:1";
  for (size_t step = 1; step < 40; ++step) {
    EXPECT_EQ(Indices(ReaderOf(content, step)), (std::vector<uint32_t>{0, 21, 332}));
  }
}

TEST_F(ReaderTest, ReadsNothingFromNothing) {
  EXPECT_TRUE(Indices(ReaderOf("")).empty());
  EXPECT_TRUE(Indices(ReaderOf("\n\r\n\n")).empty());
}

TEST_F(ReaderTest, LeavesOutAByteOrderMarkAndTheLinesToSkip) {
  EXPECT_EQ(Indices(ReaderOf("\xEF\xBB\xBF"
                             "1 5:1\n")),
            std::vector<uint32_t>{4});
  EXPECT_EQ(Indices(ReaderOf("what is this\n1 5:1\n", 3, 1)), std::vector<uint32_t>{4});
}

TEST_F(ReaderTest, NamesTheLineThatIsMalformedAndGoesOn) {
  Reader reader = ReaderOf("1 1:1\n\n1 x\n1 2:1\n");
  Row row;
  EXPECT_TRUE(*reader.Next(&row));
  const auto bad = reader.Next(&row);
  ASSERT_TRUE(absl::IsInvalidArgument(bad.status()));
  EXPECT_EQ(bad.status().message().substr(0, 5), "f:3: ");
  EXPECT_TRUE(*reader.Next(&row));
  EXPECT_EQ(reader.line(), 4);
  EXPECT_EQ(row.indices, std::vector<uint32_t>{1});
  EXPECT_FALSE(*reader.Next(&row));
}

TEST_F(ReaderTest, RecognizesACompressedFile) {
  const std::pair<std::string, std::string> files[] = {
      {"\x1F\x8B\x08rest", "zcat"},
      {"\x28\xB5\x2F\xFDrest", "zstdcat"},
      {std::string("\xFD\x37\x7A\x58\x5A\0rest", 10), "xzcat"},
      {"BZh91AY&SYrest", "bzcat"},
  };
  for (const auto& [content, unpack] : files) {
    Reader reader = ReaderOf(content, 1);
    Row row;
    EXPECT_TRUE(absl::IsFailedPrecondition(reader.Next(&row).status())) << unpack;
    ASSERT_NE(reader.compression(), nullptr) << unpack;
    EXPECT_EQ(reader.compression()->unpack, unpack);
  }
}

TEST_F(ReaderTest, TakesNoTextForACompressedFile) {
  for (const char* content : {"BZh is a word", "7zXZ", ""}) {
    Reader reader = ReaderOf(content);
    Row row;
    (void)reader.Next(&row);
    EXPECT_EQ(reader.compression(), nullptr) << content;
  }
}

TEST_F(ReaderTest, ReadsLinesLongerThanItsBuffer) {
  std::string line = "1";
  for (int i = 1; i <= 60'000; ++i) line += " " + std::to_string(i) + ":1";
  Reader reader = ReaderOf(line + "\n1 9:1\n", 1 << 16);
  Row row;
  ASSERT_TRUE(*reader.Next(&row));
  EXPECT_EQ(row.indices.size(), 60'000u);
  ASSERT_TRUE(*reader.Next(&row));
  EXPECT_EQ(row.indices, std::vector<uint32_t>{8});
}

TEST_F(ReaderTest, RefusesALineWithoutEnd) {
  Reader reader("f",
                std::make_unique<Trickle>(std::string(Reader::kMaxLineBytes + 1, 'x'), 1 << 20),
                format_.get(), 0);
  Row row;
  EXPECT_TRUE(absl::IsOutOfRange(reader.Next(&row).status()));
}

TEST_F(ReaderTest, SaysWhichFileCannotBeOpened) {
  const auto source = OpenFile("/nonexistent/file");
  EXPECT_TRUE(absl::IsNotFound(source.status()));
  EXPECT_NE(std::string(source.status().message()).find("/nonexistent/file"), std::string::npos);
}

TEST_F(ReaderTest, EndsWhereWaitingWasBrokenOff) {
  const auto source = OpenFile("/dev/zero", [](int) { return false; });
  ASSERT_TRUE(source.ok());
  char byte = 0;
  EXPECT_EQ(*(*source)->Read(&byte, 1), 0u);
}

}  // namespace
}  // namespace perceptrond::client
