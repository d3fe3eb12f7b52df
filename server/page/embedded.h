// The page's files, which the build puts into the program: server/page/embed.cmake.
#pragma once

#include <span>

#include "absl/strings/string_view.h"

namespace perceptrond {

struct EmbeddedFile {
  // "page.css".
  absl::string_view name;
  absl::string_view bytes;
};

std::span<const EmbeddedFile> EmbeddedFiles();

}  // namespace perceptrond
