// Bytes of text, one and eight at a time, for the formats' inner loops. A value of eight bytes has a
// byte's lowest bit first, whatever the machine's order is.
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

// Stores eight bytes at p, the inverse of LoadEight().
inline void StoreEight(uint64_t eight, char* p) {
  if constexpr (std::endian::native == std::endian::big) eight = __builtin_bswap64(eight);
  std::memcpy(p, &eight, sizeof eight);
}

inline constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
inline constexpr uint64_t kLow = 0x7f7f'7f7f'7f7f'7f7f;

// The highest bit of each byte that equals `c`.
inline uint64_t MatchByte(uint64_t eight, char c) {
  const uint64_t other = eight ^ kOnes * static_cast<unsigned char>(c);
  return ~(((other & kLow) + kLow) | other | kLow);
}

// The highest bit of each byte from `first` to `last`, which are ASCII; that of a byte above ASCII is
// unspecified.
inline uint64_t MatchRange(uint64_t eight, char first, char last) {
  const uint64_t low = eight & kLow;
  const auto at_least = [low](unsigned bound) { return low + kOnes * (0x80 - bound); };
  return at_least(static_cast<unsigned>(first)) & ~at_least(static_cast<unsigned>(last) + 1) &
         ~kLow;
}

// The positions of the first and the last byte in a result of MatchByte(), which must not be 0.
inline int FirstMatch(uint64_t matches) { return std::countr_zero(matches) / 8; }
inline int LastMatch(uint64_t matches) { return (63 - std::countl_zero(matches)) / 8; }

}  // namespace perceptrond::client
