// Reader: a file's examples one after the other, without ever holding the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/format/format.h"
#include "client/row.h"

namespace perceptrond::client {

struct Compression {
  const char* name;
  // The command that unpacks to standard output.
  const char* unpack;
};

// How many bytes of a file's start suffice to tell.
inline constexpr size_t kCompressionMagicBytes = 10;

// Null: none that is known. Threads: any.
const Compression* DetectCompression(std::string_view start);

// Where bytes come from. Threads: one at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At most `size` bytes; 0 at the end.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;
};

// NOT_FOUND and others: the file cannot be opened. "-" is standard input. `wait` is called before
// each read that may block, with the descriptor; false ends the input there. It may be empty.
absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path,
                                                     std::function<bool(int)> wait = nullptr);
// Reads from *content, which must outlive the source.
std::unique_ptr<ByteSource> OpenMemory(const std::string* content);

// Threads: one at a time.
class Reader {
 public:
  // Lines longer than this are an error: nobody's example, and no memory without bounds.
  static constexpr size_t kMaxLineBytes = 64 << 20;

  // `name` is the file's in error messages. Leaves out the first `skip_lines` lines. *format must
  // outlive the reader.
  Reader(std::string name, std::unique_ptr<ByteSource> source, Format* format, int64_t skip_lines);

  // The next example into *row; false at the end. INVALID_ARGUMENT: a malformed line, as
  // "name:line: what is wrong"; reading may go on with the next. FAILED_PRECONDITION: the file is
  // compressed. Other errors: the file cannot be read further.
  absl::StatusOr<bool> Next(Row* row);

  // The number, from 1, of the line that Next() read last.
  int64_t line() const { return line_; }
  // How many bytes the lines up to it took.
  uint64_t consumed() const { return read_ - (end_ - begin_); }
  // How the file turned out to be compressed; null if it did not.
  const Compression* compression() const { return compression_; }
  // An error about that line.
  absl::Status AtLine(const absl::Status& status) const;

 private:
  // The next line without its end ("\n" or "\r\n"), good until the next call; false at the end.
  absl::StatusOr<bool> NextLine(std::string_view* line);

  const std::string name_;
  const std::unique_ptr<ByteSource> source_;
  Format* const format_;
  const int64_t skip_lines_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  // From the source.
  uint64_t read_ = 0;
  bool source_ended_ = false;
  int64_t line_ = 0;
  const Compression* compression_ = nullptr;
};

}  // namespace perceptrond::client
