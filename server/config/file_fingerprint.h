// Tells, without reading them, whether files changed that a running server reads again.
#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perceptrond {

// Differs once the file is written or another one is in its place. Any thread.
inline std::string FingerprintOf(const std::string& path) {
  struct stat found = {};
  if (path.empty() || stat(path.c_str(), &found) != 0) return "none;";
  return absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                      found.st_mtim.tv_sec, ".", found.st_mtim.tv_nsec, ";");
}

// Notices that a file changed, as soon as two calls in a row find it the same: it is then no longer
// being written. Not thread-safe.
class FileWatch {
 public:
  // An empty path never changes.
  explicit FileWatch(std::string path) : path_(std::move(path)) { OnRead(); }

  // To be called when the file is read for another reason.
  void OnRead() { read_ = seen_ = FingerprintOf(path_); }
  // Whether the file must be read again. To be called regularly.
  bool HasChanged() {
    const std::string now = FingerprintOf(path_);
    if (std::exchange(seen_, now) != now || now == read_) return false;
    read_ = now;
    return true;
  }

 private:
  const std::string path_;
  std::string read_;
  std::string seen_;
};

}  // namespace perceptrond
