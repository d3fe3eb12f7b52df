// Which names of labels are one: equal numbers are, so that where "2" is a name, 2.0 and 20e-1 are it. Where classes are
// added by name, the spelling that came first is the name, and a code, such as 007, is a name of its own. Header-only, so
// that the client can share it; those in Python and Node have the same rule, and tests/client/conformance/labels.json its cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace perceptrond {

// A key that equal numbers share and others do not: the digits without zeros at either end, and an exponent. Empty: the
// text is no decimal number with an exponent of at most nine digits. O(text). Any thread.
inline std::string NumberKey(std::string_view text) {
  const auto take_sign = [](std::string_view& of) {
    const bool negative = of.starts_with('-');
    if (negative || of.starts_with('+')) of.remove_prefix(1);
    return negative;
  };
  const auto has_digits_alone = [](std::string_view of) {
    return !of.empty() && of.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const bool negative = take_sign(text);
  int64_t exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view stated = text.substr(e + 1);
    const bool negative_exponent = take_sign(stated);
    if (!has_digits_alone(stated) || stated.size() > 9) return "";
    for (const char digit : stated) exponent = 10 * exponent + (digit - '0');
    if (negative_exponent) exponent = -exponent;
    text = text.substr(0, e);
  }
  const size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  if (point != std::string_view::npos) {
    digits += text.substr(point + 1);
    exponent -= static_cast<int64_t>(text.size() - point - 1);
  }
  if (!has_digits_alone(digits)) return "";
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return "0";
  const size_t last = digits.find_last_not_of('0');
  exponent += static_cast<int64_t>(digits.size() - 1 - last);
  return (negative ? "-" : "") + digits.substr(first, last + 1 - first) + "e" +
         std::to_string(exponent);
}

// Whether the text is a number with more zeros than it needs before its digits, such as 007.
inline bool IsCode(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

}  // namespace perceptrond
