// The page's files, which the build puts into the program: server/page/embed.cmake.
#pragma once

#include <span>

#include "absl/strings/string_view.h"

namespace perceptrond {

struct EmbeddedFile {
  // "page.css".
  absl::string_view name;
  absl::string_view plain;
  // The same by gzip.
  absl::string_view packed;
  // SHA-256 of the plain bytes, in hexadecimal digits.
  absl::string_view digest;
};

// For as long as the program runs.
std::span<const EmbeddedFile> EmbeddedFiles();

}  // namespace perceptrond
