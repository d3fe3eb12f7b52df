// Text as a JSON string. Header-only, so that the client can share it without linking the core.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "core/vector/control_characters.h"
#include "core/vector/name.h"

namespace perceptrond {

// Appends the text in quotes. Characters that terminals obey are escaped; each byte that is not part of well-formed UTF-8 becomes U+FFFD.
inline void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const std::string_view character = text.substr(0, length);
    const auto first = static_cast<unsigned char>(text.front());
    if (length == 0) {
      out->append("\\ufffd");
    } else if (first == '"' || first == '\\') {
      out->push_back('\\');
      out->append(character);
    } else if (first == '\n') {
      out->append("\\n");
    } else if (IsControlCharacter(CodePoint(character))) {
      absl::StrAppendFormat(out, "\\u%04x", CodePoint(character));
    } else {
      out->append(character);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out->push_back('"');
}

}  // namespace perceptrond
