#include "client/draw/scale.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace perceptrond::client {
namespace {

constexpr double kMostPlain = 1e6;
constexpr int kMostDecimals = 4;
// Ticks with more steps from 0 would have long labels: "100,000.5", "1.0005×10⁶".
constexpr double kMostStepsPlain = 1e5;
constexpr double kMostSteps = 1e3;
constexpr double kMostPlainBase = 1e12;
// Significant decimal digits of a double.
constexpr int kMostDigits = 15;

std::string Superscript(int exponent) {
  constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : absl::StrCat(std::abs(exponent))) text += kDigits[digit - '0'];
  return text;
}

std::string Grouped(const std::string& digits) {
  const size_t point = std::min(digits.find('.'), digits.size());
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < point && (point - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// The smallest 1, 2 or 5 times a power of ten that is not below.
double RoundUp(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= step * (1 - 1e-9)) return digit * power;
  return 10 * power;
}

double StepOf(Range range, int wanted) { return RoundUp(range.size() / std::max(1, wanted)); }

int DecimalsOf(double step) { return -static_cast<int>(std::floor(std::log10(step) + 1e-9)); }

bool IsPlain(Range range, int decimals) {
  return decimals <= kMostDecimals && std::max(std::abs(range.lo), std::abs(range.hi)) < kMostPlain;
}

// A power of ten for the base, so that ticks are multiples of their step away from it.
double BaseUnit(Range range) { return std::pow(10, std::ceil(std::log10(range.size()))); }

std::string PowerLabel(double value) {
  const int exponent = static_cast<int>(std::floor(std::log10(value) + 1e-9));
  if (exponent >= -3 && exponent < 6) return TickLabel(value, std::max(0, -exponent));
  const double digit = std::round(value / std::pow(10, exponent));
  const std::string factor = digit == 1 ? "" : absl::StrCat(digit, "×");
  return absl::StrCat(factor, "10", Superscript(exponent));
}

}  // namespace

Range RangeOf(const std::vector<double>& values) {
  if (values.empty()) return {0, 1};
  const auto [lo, hi] = std::minmax_element(values.begin(), values.end());
  if (*lo < *hi) return {*lo, *hi};
  const double room = *lo == 0 ? 1 : std::abs(*lo) / 2;
  return {*lo - room, *lo + room};
}

std::string TickLabel(double value, int decimals) {
  const std::string sign = value < 0 ? "−" : "";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size < kMostPlain && decimals >= 0 && decimals <= kMostDecimals)
    return sign + Grouped(absl::StrFormat("%.*f", decimals, size));
  // As few digits as distinguish neighbours at a step of 10^-decimals.
  const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  const int digits = std::max(0, exponent + decimals);
  const std::string factor =
      absl::StrFormat("%.*f", std::min(digits, kMostDigits), size / std::pow(10, exponent));
  return absl::StrCat(sign, factor, "×10", Superscript(exponent));
}

double BaseOf(Range range, int wanted) {
  const double step = StepOf(range, wanted);
  const double steps = std::max(std::abs(range.lo), std::abs(range.hi)) / step;
  if (steps < (IsPlain(range, DecimalsOf(step)) ? kMostStepsPlain : kMostSteps)) return 0;
  const double unit = BaseUnit(range);
  return std::round(range.middle() / unit) * unit;
}

std::vector<Tick> LinearTicks(Range range, int wanted) {
  const double step = StepOf(range, wanted);
  const int decimals = DecimalsOf(step);
  const double base = BaseOf(range, wanted);
  const bool plain = IsPlain({range.lo - base, range.hi - base}, decimals);
  std::vector<Tick> ticks;
  const double first = std::ceil(range.lo / step - 1e-9);
  const double last = std::floor(range.hi / step + 1e-9);
  for (double i = first; i <= last; ++i) {
    const double value = i == 0 ? 0 : i * step;
    const double away = base == 0 ? value : (i - std::round(base / step)) * step;
    ticks.push_back({value, TickLabel(away, plain ? std::max(0, decimals) : decimals)});
  }
  return ticks;
}

std::vector<Tick> LogTicks(Range range, int wanted) {
  const double lo = std::log10(range.lo);
  const double hi = std::log10(range.hi);
  const bool few = hi - lo < 2;
  const int step = std::max(1, static_cast<int>(std::ceil((hi - lo) / std::max(1, wanted))));
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::floor(lo)); power <= static_cast<int>(std::ceil(hi));
       ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      if (!few && (digit > 1 || power % step != 0)) continue;
      const double value = digit * std::pow(10, power);
      if (value < range.lo * (1 - 1e-9) || value > range.hi * (1 + 1e-9)) continue;
      ticks.push_back({value, PowerLabel(value)});
    }
  }
  return ticks;
}

std::string Scale::Base(int wanted) const {
  const double base = logarithmic_ ? 0 : BaseOf(range_, wanted);
  if (base == 0) return "";
  const int decimals = DecimalsOf(BaseUnit(range_));
  const double size = std::abs(base);
  const bool plain = size < kMostPlainBase && decimals <= 2 * kMostDecimals;
  return absl::StrCat(base > 0 ? " − " : " + ",
                      plain ? Grouped(absl::StrFormat("%.*f", std::max(0, decimals), size))
                            : TickLabel(size, decimals));
}

double Scale::operator()(double value) const {
  const double share = logarithmic_ ? std::log(value / range_.lo) / std::log(range_.hi / range_.lo)
                                    : (value - range_.lo) / range_.size();
  return from_ + share * (to_ - from_);
}

}  // namespace perceptrond::client
