// Reader: reads the examples of a file one after the other, in constant memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/format/format.h"
#include "client/row.h"

namespace perceptrond::client {

// A compression format. A plain value.
struct Compression {
  const char* name;
  // The command that decompresses to standard output.
  const char* unpack;
  // Decompress() reads it.
  bool is_read;
};

// Number of bytes at the start of a file that DetectCompression needs.
inline constexpr size_t kCompressionMagicBytes = 10;

// The compression of a file that starts with `start`; null: none known. Threads: any.
const Compression* DetectCompression(std::string_view start);

// A source of bytes. Threads: one at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Reads at most `size` bytes and returns their number; 0 at the end.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;
};

// Opens a file; "-" is standard input. `wait`, if not empty, is called with the descriptor before
// each read that may block; false ends the input. NOT_FOUND and others: the file cannot be opened.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path,
                                                     std::function<bool(int)> wait = nullptr);
// A source of *content, which must outlive it.
std::unique_ptr<ByteSource> OpenMemory(const std::string* content);

// Threads: one at a time.
class Reader {
 public:
  // Longer lines, and records of several lines, are an error, which bounds the memory.
  static constexpr size_t kMaxLineBytes = 64 << 20;
  static constexpr size_t kMaxRecordBytes = 8 << 20;

  // `name`: the file's name in error messages. Skips the first `skip_lines` lines. *format must
  // outlive the reader.
  Reader(std::string name, std::unique_ptr<ByteSource> source, Format* format, int64_t skip_lines);

  // Reads the next example into *row; false at the end. Lines end with LF, CR LF or CR. INVALID_ARGUMENT: a malformed
  // line, as "name:line: what is wrong"; the next call reads on. FAILED_PRECONDITION: the source's bytes are
  // compressed or UTF-16. Other errors: the file cannot be read.
  absl::StatusOr<bool> Next(Row* row);

  // The lines without an example before that which Next() read last, of a header or among the skipped ones none.
  uint64_t lines_without_example() const { return lines_without_example_; }
  // Number of the line that Next() read last, from 1; of several lines the first.
  int64_t line() const { return line_; }
  // Bytes of the lines up to that line.
  uint64_t consumed() const { return read_ - (end_ - begin_); }
  // The compression detected by Next(); null if none.
  const Compression* compression() const { return compression_; }
  // The error with that line's position in front.
  absl::Status AtLine(const absl::Status& status) const;

 private:
  // Distances from begin_.
  struct LineEnd {
    size_t end;
    size_t next_line;
  };

  // Reads the next line, or the lines of a record, without the end; valid until the
  // next call. False at the end of the source. INVALID_ARGUMENT: the line is too long, or quotes do not end; the next
  // call goes on after the line where the record begins.
  absl::StatusOr<bool> NextRecord(std::string_view* record);
  // Where the line ends that begins `from` bytes after begin_.
  // Absent: the source has no more lines, or this one does not end within `most` bytes.
  absl::StatusOr<std::optional<LineEnd>> FindEnd(size_t from, size_t most);
  // Goes to the end of a line that is too long.
  absl::Status SkipLine();
  std::string_view View(size_t from, size_t end) const;
  absl::Status QuotesWithoutEnd(std::string_view first_line, int64_t quote_line);

  const std::string name_;
  const std::unique_ptr<ByteSource> source_;
  Format* const format_;
  const int64_t skip_lines_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  // Bytes read from the source.
  uint64_t read_ = 0;
  bool source_ended_ = false;
  int64_t line_ = 0;
  // Lines that were read after that one, of the same record.
  int64_t more_lines_ = 0;
  uint64_t lines_without_example_ = 0;
  // The rest of this line is still to be skipped.
  bool is_in_long_line_ = false;
  const Compression* compression_ = nullptr;
};

}  // namespace perceptrond::client
