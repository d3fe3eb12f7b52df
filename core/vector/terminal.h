// Characters that terminals obey instead of showing them. Header-only, so that the client can share
// it without linking the core.
#pragma once

#include <cstdint>
#include <string_view>

namespace perceptrond {

// The code point of a character of well-formed UTF-8; 0 for one of four bytes, none of which
// terminals obey, and for none.
inline uint32_t CodePoint(std::string_view character) {
  const auto bits = [&](size_t i, unsigned mask) {
    return static_cast<uint32_t>(static_cast<unsigned char>(character[i])) & mask;
  };
  if (character.size() == 1) return bits(0, 0x7f);
  if (character.size() == 2) return bits(0, 0x1f) << 6 | bits(1, 0x3f);
  if (character.size() == 3) return bits(0, 0x0f) << 12 | bits(1, 0x3f) << 6 | bits(2, 0x3f);
  return 0;
}

// C0, DEL and C1 controls, marks that reorder text, and line separators.
inline bool TerminalObeys(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace perceptrond
