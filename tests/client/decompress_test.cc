#include "client/format/decompress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/client/trickle.h"

namespace perceptrond::client {
namespace {

using ::testing::HasSubstr;

std::string Gzip(const std::string& content) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.erase(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(const std::string& content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 3));
  return out;
}

// Lines that compress well, and some that do not.
std::string Lines(size_t count) {
  std::string lines;
  uint64_t random = 1;
  for (size_t i = 0; i < count; ++i) {
    random = 6364136223846793005U * random + 1442695040888963407U;
    lines += "+1 1:0.5 2:" + std::to_string(random >> 40) + "\n";
  }
  return lines;
}

struct Decompressed {
  std::string content;
  absl::Status status;
};

Decompressed ReadAllOf(const std::string& bytes, size_t step = 1000, size_t room = 333) {
  const auto source = Decompress("f.gz", std::make_unique<Trickle>(bytes, step));
  Decompressed result;
  std::string buffer(room, '\0');
  while (true) {
    const absl::StatusOr<size_t> count = source->Read(buffer.data(), buffer.size());
    result.status = count.status();
    if (!count.ok() || *count == 0) return result;
    result.content.append(buffer, 0, *count);
  }
}

TEST(Decompress, ReadsBothFormatsHoweverTheirBytesArrive) {
  const std::string lines = Lines(5000);
  for (const std::string& packed : {Gzip(lines), Zstd(lines), lines}) {
    for (const size_t step : {size_t{1}, size_t{7}, size_t{1} << 20}) {
      const Decompressed read = ReadAllOf(packed, step);
      EXPECT_TRUE(read.status.ok()) << read.status;
      EXPECT_EQ(read.content, lines);
    }
  }
}

TEST(Decompress, ReadsMembersAndFramesAfterOneAnotherAsOneFile) {
  for (const auto& pack : {Gzip, Zstd}) {
    const Decompressed read = ReadAllOf(pack("1 1:1\n") + pack("") + pack("-1 2:1\n"), 3);
    EXPECT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.content, "1 1:1\n-1 2:1\n");
  }
  // A tape pads a member with zeros.
  EXPECT_EQ(ReadAllOf(Gzip("1 1:1\n") + std::string(512, '\0')).content, "1 1:1\n");
}

TEST(Decompress, WhatIsInTheFileBeforeItsTruncationIsReadAndTheFileNamed) {
  // More than one of zstd's blocks, which are decoded as a whole.
  const std::string lines = Lines(30'000);
  for (const auto& pack : {Gzip, Zstd}) {
    const std::string packed = pack(lines);
    // Also without its last byte, and without all but the magic number.
    for (const size_t size : {packed.size() - 1, packed.size() / 2, size_t{5}}) {
      const Decompressed read = ReadAllOf(packed.substr(0, size));
      EXPECT_TRUE(absl::IsDataLoss(read.status)) << size;
      EXPECT_THAT(std::string(read.status.message()),
                  HasSubstr("f.gz is truncated: it ends after " + std::to_string(size) + " bytes"));
      EXPECT_EQ(read.content, lines.substr(0, read.content.size()));
      if (size > 1000) {
        EXPECT_GT(read.content.size(), 1000U);
      }
    }
  }
}

TEST(Decompress, DamageIsDataLoss) {
  for (const auto& pack : {Gzip, Zstd}) {
    std::string packed = pack(Lines(5000));
    packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x55);
    EXPECT_TRUE(absl::IsDataLoss(ReadAllOf(packed).status));
  }
}

TEST(Decompress, ALineThatIsTypedIsReadBeforeTheNextOne) {
  for (const std::string& line : {std::string("1\n"), std::string("\x1F\n")}) {
    int reads = 0;
    const auto source =
        Decompress("f", std::make_unique<Trickle>(line + "1\n", line.size(), &reads));
    char buffer[100];
    EXPECT_EQ(*source->Read(buffer, sizeof buffer), line.size());
    EXPECT_EQ(reads, 1);
    EXPECT_FALSE(source->compressed_bytes().has_value());
  }
}

}  // namespace
}  // namespace perceptrond::client
