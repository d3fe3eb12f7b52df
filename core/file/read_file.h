// Reads files that others write: whole, up to a limit. Header-only, so that the client library can share it without
// linking the core.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace perceptrond {

// Room for all certificate authorities that systems trust, many times.
inline constexpr size_t kMaxPemBytes = 4 << 20;

// kRegular: neither waits for a pipe's writer nor reads a device.
enum class FileKind : uint8_t { kRegular, kAny };

// Returns the file's content, and in `found` what stat says of it, unless that is null. INVALID_ARGUMENT: it has more
// than `max_bytes`, as every device that has no end; FAILED_PRECONDITION: it is no regular file; else the system's
// error, of which NOT_FOUND is that there is no file. Any thread.
inline absl::StatusOr<std::string> ReadFileUpTo(const std::string& path, size_t max_bytes,
                                                FileKind kind, struct stat* found = nullptr) {
  constexpr size_t kPieceBytes = 64 << 10;
  const auto error = [&path] {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  };
  const bool is_regular = kind == FileKind::kRegular;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | (is_regular ? O_NONBLOCK : 0));
  if (file < 0) return error();
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat properties = {};
  if (fstat(file, &properties) != 0) return error();
  if (is_regular && !S_ISREG(properties.st_mode))
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  std::string text;
  for (ssize_t got = 1; got != 0 && text.size() <= max_bytes;) {
    const size_t size = text.size();
    text.resize(std::min(size + kPieceBytes, max_bytes + 1));
    got = read(file, &text[size], text.size() - size);
    text.resize(size + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) return error();
  }
  if (text.size() > max_bytes)
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", max_bytes, " bytes"));
  if (found != nullptr) *found = properties;
  return text;
}

}  // namespace perceptrond
