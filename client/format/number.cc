#include "client/format/number.h"

#include <cmath>
#include <system_error>

#include "absl/strings/charconv.h"

namespace perceptrond::client {
namespace {

bool IsDigit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Powers of ten that a float holds exactly.
constexpr float kPowers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};

// Any number that the fast path leaves. `p` points past the sign.
const char* ParseSlowly(const char* p, const char* end, bool negative, float* value) {
  // No "inf" and no "nan": they are not finite.
  if (p == end || !(IsDigit(*p) || *p == '.')) return nullptr;
  const absl::from_chars_result result = absl::from_chars(p, end, *value);
  if (result.ec == std::errc::result_out_of_range) {
    if (std::fabs(*value) > 1) return nullptr;
    *value = 0;
  } else if (result.ec != std::errc()) {
    return nullptr;
  }
  if (negative) *value = -*value;
  return result.ptr;
}

}  // namespace

const char* ParseFloat(const char* p, const char* end, float* value) {
  bool negative = false;
  if (p != end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  const char* const begin = p;
  uint32_t mantissa = 0;
  while (p != end && IsDigit(*p) && mantissa < 100'000'000) {
    mantissa = 10 * mantissa + static_cast<uint32_t>(*p++ - '0');
  }
  int digits = static_cast<int>(p - begin);
  int fraction = 0;
  if (p != end && *p == '.') {
    const char* const point = ++p;
    while (p != end && IsDigit(*p) && mantissa < 100'000'000) {
      mantissa = 10 * mantissa + static_cast<uint32_t>(*p++ - '0');
    }
    fraction = static_cast<int>(p - point);
    digits += fraction;
  }
  // Both exact in float, so that one division rounds correctly (Clinger 1990).
  const bool exact = digits > 0 && mantissa <= (1u << 24) && fraction <= 10;
  if (!exact || (p != end && (IsDigit(*p) || *p == 'e' || *p == 'E'))) {
    return ParseSlowly(begin, end, negative, value);
  }
  const float magnitude = static_cast<float>(mantissa) / kPowers[fraction];
  *value = negative ? -magnitude : magnitude;
  return p;
}

const char* ParseUint32(const char* p, const char* end, uint32_t* value) {
  const char* const begin = p;
  uint64_t number = 0;
  while (p != end && IsDigit(*p)) {
    number = 10 * number + static_cast<uint64_t>(*p++ - '0');
    if (number > UINT32_MAX) return nullptr;
  }
  *value = static_cast<uint32_t>(number);
  return p == begin ? nullptr : p;
}

bool ParseWholeFloat(std::string_view text, float* value) {
  const char* const end = text.data() + text.size();
  return ParseFloat(text.data(), end, value) == end && !text.empty();
}

}  // namespace perceptrond::client
