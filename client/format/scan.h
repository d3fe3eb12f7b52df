// Bytes of text, one and eight at a time, for the formats' inner loops. A value of eight bytes has
// a byte's lowest bit first, whatever the machine's order is.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace perceptrond::client {

inline bool IsBlank(char c) { return c == ' ' || c == '\t'; }

inline bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The eight bytes at p.
inline uint64_t LoadEight(const char* p) {
  uint64_t eight = 0;
  std::memcpy(&eight, p, sizeof eight);
  if constexpr (std::endian::native == std::endian::big) eight = __builtin_bswap64(eight);
  return eight;
}

// All ones if `condition`, else 0: for choices that are not predictable.
inline uint64_t AllIf(bool condition) { return -static_cast<uint64_t>(condition); }

}  // namespace perceptrond::client
