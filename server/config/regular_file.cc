#include "server/config/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

absl::Status CannotRead(const std::string& path) {
  return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t max_bytes,
                                            struct stat* found) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return CannotRead(path);
  const absl::Cleanup close_file = [file] { close(file); };
  struct stat properties = {};
  if (fstat(file, &properties) != 0) return CannotRead(path);
  if (!S_ISREG(properties.st_mode))
    return absl::NotFoundError(absl::StrCat(path, " is not a regular file"));
  std::string text(max_bytes + 1, '\0');
  size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < text.size(); size += static_cast<size_t>(got)) {
    got = read(file, &text[size], text.size() - size);
    if (got < 0) return CannotRead(path);
  }
  if (size > max_bytes)
    return absl::InvalidArgumentError(absl::StrCat(path, " has more than ", max_bytes, " bytes"));
  text.resize(size);
  if (found != nullptr) *found = properties;
  return text;
}

}  // namespace perceptrond
