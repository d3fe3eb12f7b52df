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

TEST_F(ReaderTest, RecognizesUtf16) {
  for (const std::string& content : {std::string("\xFF\xFE"
                                                 "1\0 \0",
                                                 6),
                                     std::string("\xFE\xFF\0"
                                                 "1\0 ",
                                                 6)}) {
    Row row;
    const absl::Status status = ReaderOf(content).Next(&row).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_EQ(status.message(), "f is UTF-16; convert it to UTF-8 with iconv -f UTF-16 -t UTF-8");
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

// Records of CSV, with line breaks within quotes.
class CsvReaderTest : public testing::Test {
 protected:
  CsvReaderTest() {
    FormatOptions options;
    options.kind = FormatKind::kCsv;
    options.label_column = "y";
    options.text_column = "text";
    format_ = *MakeFormat(options);
  }
  // Each example as line:text, each malformed line as its error.
  std::vector<std::string> Read(const std::string& content, size_t step, int64_t skip = 0) {
    Reader reader("f", std::make_unique<Trickle>(content, step), format_.get(), skip);
    std::vector<std::string> read;
    Row row;
    while (true) {
      const auto more = reader.Next(&row);
      if (more.ok() && !*more) return read;
      read.push_back(more.ok() ? std::to_string(reader.line()) + ":" + row.text
                               : std::string(more.status().message()));
      if (!more.ok() && !absl::IsInvalidArgument(more.status())) return read;
    }
  }
  std::unique_ptr<Format> format_;
};

TEST_F(CsvReaderTest, ReadsLineBreaksWithinQuotesAndCountsTheFilesLines) {
  const std::string content =
      "\xEF\xBB\xBF\"y\",text\r\n1,\"a\nb\r\n\n\"\"c\"\"\"\r\n-1,d\n\n1,\"\n\"\n2,e\n1,\"f\ng\"";
  for (size_t step = 1; step < 60; ++step) {
    EXPECT_EQ(Read(content, step),
              (std::vector<std::string>{"2:a\nb\r\n\n\"c\"", "6:d", "8:\n",
                                        "f:10: label \"2\" is neither -1 nor +1", "11:f\ng"}))
        << step;
  }
}

TEST_F(CsvReaderTest, AHeaderAndSkippedLinesMayHaveQuotesToo) {
  EXPECT_EQ(Read("a \"title\nof,\"two lines\n\"x\ny\",text,y\n0,b,1\n", 7, 2),
            std::vector<std::string>{"5:b"});
}

TEST_F(CsvReaderTest, AQuoteWithoutEndIsAnErrorAtItsLineAndTheNextLineIsRead) {
  for (const size_t step : {1, 1000}) {
    EXPECT_EQ(Read("y,text\n1,a\n1,\"b\n1,c\n-1,d\n", step),
              (std::vector<std::string>{"2:a",
                                        "f:3: the quote that begins a field is never closed; close "
                                        "it, and double the quotes inside",
                                        "4:c", "5:d"}));
  }
  const std::vector<std::string> two = Read("y,text\n1,\"a\nb\",\"c\n", 5);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].substr(0, 54), "f:2: the quote that begins a field in line 3 is never ");
  // Without the header no other line can be read.
  EXPECT_EQ(Read("y,\"text\n1,a\n", 5).size(), 1U);
}

TEST_F(CsvReaderTest, AQuoteThatIsNotClosedInTimeIsAnErrorWithoutTheRestOfTheFile) {
  const std::string line(1000, 'b');
  std::string content = "y,text\n1,\"a\n";
  while (content.size() <= Reader::kMaxRecordBytes + 100) content += "1," + line + "\n";
  const size_t lines = std::count(content.begin(), content.end(), '\n');
  // The quote's end comes too late, and begins another that has none.
  const std::vector<std::string> read = Read(content + "1,\"c\"\n", 1 << 16);
  ASSERT_EQ(read.size(), lines);
  EXPECT_EQ(
      read[0],
      "f:2: the quote that begins a field is not closed within 8 MiB; close it, and double the "
      "quotes inside");
  EXPECT_EQ(read[1], "3:" + line);
  EXPECT_EQ(read.back(), std::to_string(lines + 1) + ":c");
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
