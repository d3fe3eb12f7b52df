// What a name of a feature, a label or a class may be: 1 to kMaxNameBytes bytes of UTF-8; and the
// length of ids. Header-only, so that the client library can share it without linking the core.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace perceptrond {

inline constexpr size_t kMaxNameBytes = 1024;
// The most bytes of an example that is a text.
inline constexpr size_t kMaxTextBytes = 1 << 20;
// The limit of the ids that clients choose: of models, producers and requests.
inline constexpr size_t kMaxIdBytes = 128;

// The length of the well-formed UTF-8 sequence at the beginning of `text`, which must not be empty;
// 0 if there is none. Well-formed as in RFC 3629: no overlong forms, no surrogates, nothing above
// U+10FFFF. Any thread.
inline size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) -> unsigned { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  const bool above_maximum = first == 0xf4 && byte(1) > 0x8f;
  return overlong || surrogate || above_maximum ? 0 : length;
}

// Whether all of `text` is well-formed UTF-8. O(text).
inline bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The text with U+FFFD for each byte that is not part of well-formed UTF-8: what Protobuf takes as a string. O(text).
inline std::string ToValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    valid.append(length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

}  // namespace perceptrond
