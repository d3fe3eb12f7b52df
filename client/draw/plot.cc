#include "client/draw/plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

namespace {

constexpr double kTickLength = 5;
// Smallest distance of ticks, in pixels.
constexpr double kTickRoomX = 70;
constexpr double kTickRoomY = 55;
constexpr int kLeastTicks = 5;
constexpr double kTickGap = 6;
constexpr double kLegendStep = 24;
constexpr double kMarkWidth = 26;
constexpr double kMarginLeft = 20;
constexpr double kMostStretch = 4;

// Whether the labels of neighbouring ticks do not overlap.
bool Fit(const std::vector<Tick>& ticks, const Scale& scale) {
  for (size_t i = 1; i < ticks.size(); ++i) {
    const double room = std::abs(scale(ticks[i].value) - scale(ticks[i - 1].value)) - kTickGap;
    const double width =
        TextWidth(ticks[i - 1].label, kTextSize) / 2 + TextWidth(ticks[i].label, kTextSize) / 2;
    if (width > room) return false;
  }
  return true;
}

int WantedX(const Frame& frame, const Scale& scale) {
  int wanted = std::max(kLeastTicks, static_cast<int>(frame.width / kTickRoomX));
  while (wanted > 1 && !Fit(scale.Ticks(wanted), scale)) --wanted;
  return wanted;
}
int WantedY(const Frame& frame) {
  return std::max(kLeastTicks, static_cast<int>(frame.height / kTickRoomY));
}

std::string Titled(const std::string& title, const std::string& base, double width) {
  return Shorten(title, kTextSize, width - TextWidth(base, kTextSize)) + base;
}

// Equilateral; `up` is 1 or -1.
Polyline Triangle(Point at, double radius, int up) {
  const double tip = 1.555 * radius * up;
  const double half = 1.347 * radius;
  return {{at.x, at.y - tip}, {at.x + half, at.y + tip / 2}, {at.x - half, at.y + tip / 2}};
}

void DrawMark(Point at, const LegendEntry& entry, Svg* svg) {
  const double middle = at.x + kMarkWidth / 2;
  switch (entry.mark) {
    case Mark::kLine:
      return svg->Line({at.x, at.y}, {at.x + kMarkWidth, at.y}, entry.style);
    case Mark::kDot:
    case Mark::kSquare:
    case Mark::kTriangle:
    case Mark::kWedge:
      return DrawShape(entry.mark, {middle, at.y}, 5, entry.style, svg);
    case Mark::kDiamond:
      return DrawShape(entry.mark, {middle, at.y}, 6, entry.style, svg);
    case Mark::kRing:
      return svg->Circle({middle, at.y}, 8, entry.style);
    case Mark::kArea:
      return svg->Rectangle({at.x, at.y - 7}, kMarkWidth, 14, entry.style);
    case Mark::kMore:
    case Mark::kNone:
      return;
  }
}

}  // namespace

Polyline Axes::operator()(const Polyline& line) const {
  Polyline drawn;
  for (const Point& point : line) drawn.push_back((*this)(point));
  return drawn;
}

Axes MakeAxes(const Frame& frame, Range x, Range y, std::string x_title, std::string y_title) {
  return {Scale(x, frame.left, frame.right()), Scale(y, frame.bottom(), frame.top),
          std::move(x_title), std::move(y_title)};
}

void EqualUnits(const Frame& frame, Range* x, Range* y) {
  if (x->size() > kMostStretch * y->size() || y->size() > kMostStretch * x->size()) return;
  const double unit = std::max(x->size() / frame.width, y->size() / frame.height);
  const auto grow = [unit](double pixels, Range* range) {
    const double middle = range->middle();
    *range = {middle - unit * pixels / 2, middle + unit * pixels / 2};
  };
  grow(frame.width, x);
  grow(frame.height, y);
}

void DrawGround(const Frame& frame, const Axes& axes, Svg* svg) {
  svg->Rectangle({frame.left, frame.top}, frame.width, frame.height, "plot");
  std::vector<Polyline> lines;
  for (const Tick& tick : axes.x.Ticks(WantedX(frame, axes.x))) {
    const double x = axes.x(tick.value);
    lines.push_back({{x, frame.top}, {x, frame.bottom()}});
  }
  for (const Tick& tick : axes.y.Ticks(WantedY(frame))) {
    const double y = axes.y(tick.value);
    lines.push_back({{frame.left, y}, {frame.right(), y}});
  }
  svg->Lines(lines, "grid");
}

void DrawFrame(const Frame& frame, const Axes& axes, bool x_ticks, Svg* svg) {
  std::vector<Polyline> lines{
      {{frame.left, frame.top}, {frame.left, frame.bottom()}, {frame.right(), frame.bottom()}}};
  double widest = 0;
  for (const Tick& tick : axes.x.Ticks(WantedX(frame, axes.x))) {
    const double x = axes.x(tick.value);
    lines.push_back({{x, frame.bottom()}, {x, frame.bottom() + kTickLength}});
    if (x_ticks) svg->Text({x, frame.bottom() + 20}, "soft", "middle", tick.label);
  }
  for (const Tick& tick : axes.y.Ticks(WantedY(frame))) {
    const double y = axes.y(tick.value);
    lines.push_back({{frame.left - kTickLength, y}, {frame.left, y}});
    svg->Text({frame.left - kTickLength - 4, y + 4.5}, "soft", "end", tick.label);
    widest = std::max(widest, TextWidth(tick.label, kTextSize));
  }
  svg->Lines(lines, "axis");
  if (x_ticks) {
    svg->Text({frame.left + frame.width / 2, frame.bottom() + 42}, "text", "middle",
              Titled(axes.x_title, axes.x.Base(WantedX(frame, axes.x)), frame.width));
  }
  const double title_x =
      std::max(16.0, std::min(frame.left - 46, frame.left - kTickLength - widest - 21));
  svg->TextUpwards({title_x, frame.top + frame.height / 2}, "text",
                   Titled(axes.y_title, axes.y.Base(WantedY(frame)), frame.height + 20));
}

void DrawLegend(Point corner, double width, const std::vector<LegendEntry>& entries, Svg* svg) {
  Point at = corner;
  for (const LegendEntry& entry : entries) {
    DrawMark(at, entry, svg);
    const double indent = entry.mark == Mark::kNone ? 0 : kMarkWidth + 9;
    const bool soft = entry.mark == Mark::kNone || entry.mark == Mark::kMore;
    svg->Text({at.x + indent, at.y + 4.5}, soft ? "soft" : "text", "start",
              Shorten(entry.text, kTextSize, width - indent));
    at.y += kLegendStep;
  }
}

void DrawHeading(double width, std::string_view title, std::string_view subtitle, Svg* svg) {
  const double room = width - 2 * kMarginLeft;
  svg->Text({kMarginLeft, 30}, "title", "start", Shorten(title, kTitleSize, room));
  svg->Text({kMarginLeft, 51}, "soft", "start", Shorten(subtitle, kTextSize, room));
}

void DrawShape(Mark shape, Point at, double radius, const char* style, Svg* svg) {
  const double half = 0.89 * radius;
  if (shape == Mark::kDot) svg->Circle(at, radius, style);
  if (shape == Mark::kSquare) svg->Rectangle({at.x - half, at.y - half}, 2 * half, 2 * half, style);
  if (shape == Mark::kTriangle) svg->Areas({Triangle(at, radius, 1)}, style);
  if (shape == Mark::kWedge) svg->Areas({Triangle(at, radius, -1)}, style);
  if (shape != Mark::kDiamond) return;
  svg->Areas({{{at.x, at.y - radius},
               {at.x + radius, at.y},
               {at.x, at.y + radius},
               {at.x - radius, at.y}}},
             style);
}

}  // namespace perceptrond::client
