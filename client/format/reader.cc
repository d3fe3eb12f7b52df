#include "client/format/reader.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perceptrond::client {
namespace {

// Large, so that each read of the system copies much.
constexpr size_t kBufferBytes = 1 << 20;

class FileSource final : public ByteSource {
 public:
  FileSource(std::string path, int descriptor, std::function<bool(int)> wait)
      : path_(std::move(path)), descriptor_(descriptor), wait_(std::move(wait)) {}
  ~FileSource() override {
    if (descriptor_ != STDIN_FILENO) close(descriptor_);
  }
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    while (true) {
      if (wait_ && !wait_(descriptor_)) return 0;
      const ssize_t count = read(descriptor_, buffer, size);
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) return ReadError(errno);
    }
  }

 private:
  // Never INVALID_ARGUMENT, which is a line's.
  absl::Status ReadError(int error) const {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", path_, ": ", std::generic_category().message(error)));
  }

  const std::string path_;
  const int descriptor_;
  const std::function<bool(int)> wait_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view rest) : rest_(rest) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    const size_t count = std::min(size, rest_.size());
    std::memcpy(buffer, rest_.data(), count);
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

// By its byte order mark, which is no UTF-8.
bool IsUtf16(std::string_view start) {
  return start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(const std::string& path,
                                                     std::function<bool(int)> wait) {
  if (path == "-") return std::make_unique<FileSource>("standard input", STDIN_FILENO, wait);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  return std::make_unique<FileSource>(path, descriptor, std::move(wait));
}

std::unique_ptr<ByteSource> OpenMemory(const std::string* content) {
  return std::make_unique<MemorySource>(*content);
}

Reader::Reader(std::string name, std::unique_ptr<ByteSource> source, Format* format,
               int64_t skip_lines)
    : name_(std::move(name)),
      source_(std::move(source)),
      format_(format),
      skip_lines_(skip_lines),
      buffer_(kBufferBytes) {
  format_->StartFile();
}

absl::Status Reader::AtLine(const absl::Status& status) const {
  return absl::Status(status.code(),
                      absl::StrCat(name_, ":", line_, ": ", std::string(status.message())));
}

absl::StatusOr<bool> Reader::Next(Row* row) {
  lines_without_example_ = 0;
  while (true) {
    std::string_view record;
    absl::StatusOr<bool> more = NextRecord(&record);
    if (!more.ok() || !*more) return more;
    if (line_ <= skip_lines_) continue;
    absl::StatusOr<LineKind> kind = format_->Parse(record, row);
    if (!kind.ok()) return AtLine(kind.status());
    if (*kind == LineKind::kExample) return true;
    if (*kind == LineKind::kNothing) ++lines_without_example_;
  }
}

std::string_view Reader::View(size_t from, size_t end) const {
  return {buffer_.data() + begin_ + from, end - from};
}

absl::Status Reader::SkipLine() {
  while (is_in_long_line_) {
    const absl::StatusOr<std::optional<LineEnd>> found =
        FindEnd(0, std::max(kMaxLineBytes, end_ - begin_));
    if (!found.ok()) return found.status();
    is_in_long_line_ = !found->has_value() && end_ - begin_ >= kMaxLineBytes;
    begin_ = found->has_value() ? begin_ + (**found).next_line : end_;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Reader::NextRecord(std::string_view* record) {
  if (absl::Status status = SkipLine(); !status.ok()) return status;
  const absl::StatusOr<std::optional<LineEnd>> found = FindEnd(0, kMaxLineBytes);
  if (!found.ok()) return found.status();
  is_in_long_line_ = !found->has_value() && end_ - begin_ >= kMaxLineBytes;
  if (!found->has_value() && !is_in_long_line_) return false;
  line_ += 1 + std::exchange(more_lines_, 0);
  if (is_in_long_line_) return AtLine(absl::InvalidArgumentError("the line is longer than 64 MiB"));
  const size_t first_end = (**found).end;
  if (line_ == 1 && (compression_ = DetectCompression(View(0, first_end))) != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(name_, " is compressed with ", compression_->name));
  }
  if (line_ == 1 && IsUtf16(View(0, first_end))) {
    return absl::FailedPreconditionError(
        absl::StrCat(name_, " is UTF-16; convert it to UTF-8 with iconv -f UTF-16 -t UTF-8"));
  }
  const size_t from = line_ == 1 && View(0, first_end).starts_with("\xEF\xBB\xBF") ? 3 : 0;
  std::optional<size_t> quote;
  if (line_ > skip_lines_) quote = format_->FindOpenQuote(View(from, first_end), false);
  LineEnd last = **found;
  for (int64_t quote_line = line_; quote.has_value();) {
    const size_t next = last.next_line;
    const absl::StatusOr<std::optional<LineEnd>> next_end = FindEnd(next, kMaxRecordBytes);
    if (!next_end.ok()) return next_end.status();
    if (!next_end->has_value()) {
      const absl::Status status = QuotesWithoutEnd(View(from, first_end), quote_line);
      begin_ += (**found).next_line;
      more_lines_ = 0;
      return status;
    }
    last = **next_end;
    ++more_lines_;
    quote = format_->FindOpenQuote(View(next, last.end), true);
    if (quote.has_value() && *quote != std::string_view::npos) quote_line = line_ + more_lines_;
  }
  *record = View(from, last.end);
  begin_ += last.next_line;
  return true;
}

// Whether the other lines can be read without this record, the format says.
absl::Status Reader::QuotesWithoutEnd(std::string_view first_line, int64_t quote_line) {
  Row row;
  const bool ends_file = absl::IsFailedPrecondition(format_->Parse(first_line, &row).status());
  return AtLine(absl::Status(
      ends_file ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInvalidArgument,
      absl::StrCat(
          "the quote that begins a field",
          quote_line == line_ ? "" : absl::StrCat(" in line ", quote_line),
          end_ - begin_ >= kMaxRecordBytes ? " is not closed within 8 MiB" : " is never closed",
          "; close it, and double the quotes inside")));
}

absl::StatusOr<std::optional<Reader::LineEnd>> Reader::FindEnd(size_t from, size_t most) {
  // Few, so that the search for one kind of end does not pass many lines that have the other.
  constexpr size_t kSearchBytes = 4096;
  size_t searched = from;
  while (true) {
    const char* const start = buffer_.data() + begin_;
    const size_t available = end_ - begin_;
    while (searched < available) {
      const size_t count = std::min(available - searched, kSearchBytes);
      const char* const begin = start + searched;
      const auto* const newline = static_cast<const char*>(std::memchr(begin, '\n', count));
      const auto* const carriage_return = static_cast<const char*>(std::memchr(
          begin, '\r', newline == nullptr ? count : static_cast<size_t>(newline - begin)));
      const char* const found = carriage_return != nullptr ? carriage_return : newline;
      if (found == nullptr) {
        searched += count;
        continue;
      }
      const auto end = static_cast<size_t>(found - start);
      if (end > most) return std::nullopt;
      const bool has_next = end + 1 < available;
      if (*found == '\n' || has_next || source_ended_) {
        const bool two = *found == '\r' && has_next && found[1] == '\n';
        return LineEnd{end, end + (two ? 2 : 1)};
      }
      // A CR is the last byte so far, and LF may follow.
      searched = end;
      break;
    }
    if (source_ended_) {
      if (available > from) return LineEnd{available, available};
      return std::nullopt;
    }
    if (searched >= most) return std::nullopt;
    std::memmove(buffer_.data(), start, available);
    begin_ = 0;
    end_ = available;
    if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
    absl::StatusOr<size_t> count = source_->Read(buffer_.data() + end_, buffer_.size() - end_);
    if (!count.ok()) return count.status();
    end_ += *count;
    read_ += *count;
    source_ended_ = *count == 0;
  }
}

const Compression* DetectCompression(std::string_view start) {
  static constexpr Compression kGzip = {"gzip", "zcat", true};
  static constexpr Compression kZstd = {"zstd", "zstdcat", true};
  static constexpr Compression kXz = {"xz", "xzcat", false};
  static constexpr Compression kBzip2 = {"bzip2", "bzcat", false};
  if (start.starts_with("\x1F\x8B")) return &kGzip;
  if (start.starts_with("\x28\xB5\x2F\xFD")) return &kZstd;
  if (start.starts_with("\xFD"
                        "7zXZ")) {
    return &kXz;
  }
  // Text could start with "BZh" too, so the magic number of the first block is checked.
  if (start.starts_with("BZh") && start.substr(4).starts_with("1AY&SY")) return &kBzip2;
  return nullptr;
}

}  // namespace perceptrond::client
