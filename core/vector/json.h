// Text as a JSON string. Header-only, so that the client can share it without linking the core.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "core/vector/name.h"

namespace perceptrond {

// Appends the text in quotes. Control characters (C0, DEL, C1) are escaped, so that the string is
// safe in a terminal; each byte that is not part of well-formed UTF-8 becomes U+FFFD.
inline void AppendJsonString(std::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const std::string_view character = text.substr(0, length);
    const auto first = static_cast<unsigned char>(text.front());
    const auto last = static_cast<unsigned char>(text[length == 0 ? 0 : length - 1]);
    // C1 is U+0080 to U+009F: the byte C2 and then the code itself.
    const bool c1 = length == 2 && first == 0xc2 && last < 0xa0;
    if (length == 0) {
      out->append("\\ufffd");
    } else if (first == '"' || first == '\\') {
      out->push_back('\\');
      out->append(character);
    } else if (first == '\n') {
      out->append("\\n");
    } else if (first < 0x20 || first == 0x7f || c1) {
      absl::StrAppendFormat(out, "\\u%04x", last);
    } else {
      out->append(character);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out->push_back('"');
}

}  // namespace perceptrond
