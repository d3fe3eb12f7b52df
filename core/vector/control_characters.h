// Characters that terminals obey instead of showing them. Header-only, so that the client can share
// it without linking the core.
#pragma once

#include <cstdint>
#include <string_view>

namespace perceptrond {

// The code point of one character of well-formed UTF-8.
inline uint32_t CodePoint(std::string_view character) {
  // The first byte of a character of n bytes has n + 1 bits that say so.
  const size_t size = character.size();
  uint32_t code = static_cast<unsigned char>(character[0]) & (size == 1 ? 0x7fU : 0x7fU >> size);
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

// C0, DEL and C1 controls, marks that reorder text, and line separators.
inline bool IsControlCharacter(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace perceptrond
