// Tells, without reading them, whether files changed that a running server reads again.
#pragma once

#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace perceptrond {

// Differs once the file is written or another one is in its place. Any thread.
inline std::string FingerprintOf(const std::string& path) {
  struct stat found = {};
  if (path.empty() || stat(path.c_str(), &found) != 0) return "none;";
  return absl::StrCat(found.st_dev, " ", found.st_ino, " ", found.st_size, " ",
                      found.st_mtim.tv_sec, ".", found.st_mtim.tv_nsec, ";");
}

}  // namespace perceptrond
