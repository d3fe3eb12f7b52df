// Bytes of text, one and eight at a time, for the formats' inner loops. A value of eight bytes has a
// byte's lowest bit first, whatever the machine's order is.
#pragma once

#include <bit>
#include <cstddef>
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

inline constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
inline constexpr uint64_t kLow = 0x7f7f'7f7f'7f7f'7f7f;

// The highest bit of each byte that equals `c`.
inline uint64_t MatchByte(uint64_t eight, char c) {
  const uint64_t other = eight ^ kOnes * static_cast<unsigned char>(c);
  return ~(((other & kLow) + kLow) | other | kLow);
}

// Powers of ten that a float holds exactly.
inline constexpr float kPowersOfTen[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f,
                                         1e6f, 1e7f, 1e8f, 1e9f, 1e10f};

// Reads a decimal number of `size` bytes up to `end`; eight bytes before `end` can be read. False: it
// has a sign, an exponent or many digits, or is none; ParseFloat() then tells. Where numbers are of
// all lengths, this is faster for having no branch for each digit.
inline bool ReadShortFloat(const char* end, size_t size, float* value) {
  if (size - 1 >= 8) return false;
  // The number, with '0' in front.
  constexpr uint64_t kZeros = kOnes * '0';
  const uint64_t in_front = (uint64_t{1} << (64 - 8 * size) % 64) - 1;
  uint64_t digits = (LoadEight(end - 8) & ~in_front) | (kZeros & in_front);
  const uint64_t points = MatchByte(digits, '.');
  // Without the point; what is before it moves up.
  const uint64_t through_point = points ^ (points - 1);
  const uint64_t before_point = through_point >> 8;
  const uint64_t moved = (digits & ~through_point) | (digits & before_point) << 8 | '0';
  const int fraction = points == 0 ? 0 : std::countl_zero(points) / 8;
  digits = points == 0 ? digits : moved;
  // Digits are '0' to '9'; neither sum carries into the next byte if all are.
  const uint64_t values = digits - kZeros;
  if (((values | (digits + kOnes * (0x7f - '9'))) & ~kLow) != 0) return false;
  // Pairs of digits, then of pairs, then of fours.
  uint64_t number = values * 10 + (values >> 8);
  number = (number & 0x00ff'00ff'00ff'00ff) * 100 + ((number >> 16) & 0x00ff'00ff'00ff'00ff);
  number = (number & 0x0000'ffff'0000'ffff) * 10'000 + ((number >> 32) & 0x0000'ffff'0000'ffff);
  const auto mantissa = static_cast<uint32_t>(number);
  if (mantissa > (1u << 24) || (size == 1 && points != 0)) return false;
  *value = static_cast<float>(mantissa) / kPowersOfTen[fraction];
  return true;
}

}  // namespace perceptrond::client
