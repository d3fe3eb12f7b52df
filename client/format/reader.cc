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
    if (error == EBADF && descriptor_ == STDIN_FILENO)
      return absl::FailedPreconditionError(
          "standard input is closed; give a file, or input through a pipe");
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
  while (true) {
    std::string_view line;
    absl::StatusOr<bool> more = NextLine(&line);
    if (!more.ok() || !*more) return more;
    if (line_ == 1 && (compression_ = DetectCompression(line)) != nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(name_, " is compressed with ", compression_->name));
    }
    if (line_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (line_ <= skip_lines_) continue;
    absl::StatusOr<LineKind> kind = format_->Parse(line, row);
    if (!kind.ok()) return AtLine(kind.status());
    if (*kind == LineKind::kExample) return true;
  }
}

absl::StatusOr<bool> Reader::NextLine(std::string_view* line) {
  size_t searched = 0;
  while (true) {
    const char* const start = buffer_.data() + begin_;
    const size_t available = end_ - begin_;
    const void* const found = std::memchr(start + searched, '\n', available - searched);
    if (found != nullptr || (source_ended_ && available > 0)) {
      size_t length = found != nullptr
                          ? static_cast<size_t>(static_cast<const char*>(found) - start)
                          : available;
      begin_ += found != nullptr ? length + 1 : length;
      ++line_;
      if (length > 0 && start[length - 1] == '\r') --length;
      *line = std::string_view(start, length);
      return true;
    }
    if (source_ended_) return false;
    searched = available;
    std::memmove(buffer_.data(), start, available);
    begin_ = 0;
    end_ = available;
    if (end_ == buffer_.size()) {
      if (end_ >= kMaxLineBytes) {
        ++line_;
        return AtLine(absl::OutOfRangeError("the line is longer than 64 MiB"));
      }
      buffer_.resize(2 * buffer_.size());
    }
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
