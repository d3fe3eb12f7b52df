#include "client/ctl/progress.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace perceptrond::client {
namespace {

// Inside the brackets.
constexpr size_t kShortestBar = 8;
constexpr size_t kLongestBar = 30;
// The brackets, and a blank behind them.
constexpr size_t kAroundBar = 3;
constexpr size_t kBetweenFigures = 2;

constexpr uint64_t kRowsBetweenLooks = 64;
constexpr absl::Duration kBetweenDraws = absl::Milliseconds(100);

std::string Bar(double fraction, size_t length) {
  const size_t done = std::min(length, static_cast<size_t>(fraction * static_cast<double>(length)));
  std::string bar(length, ' ');
  std::fill_n(bar.begin(), done, '=');
  if (done < length) bar[done] = '>';
  return absl::StrCat("[", bar, "] ");
}

// Rounded down: 100 % is said of nothing that goes on.
std::string InPercent(double fraction, const std::string& of) {
  return absl::StrCat(static_cast<int>(100 * fraction), " %", of.empty() ? "" : " ", of);
}

}  // namespace

bool DrawPace::Due() {
  if (++rows_ % kRowsBetweenLooks != 0) return false;
  const absl::Time now = absl::Now();
  if (now - drawn_ < kBetweenDraws) return false;
  drawn_ = now;
  return true;
}

std::string ProgressLine(const Progress& progress, size_t columns) {
  const bool has_bar = progress.fraction.has_value();
  const double fraction = std::clamp(progress.fraction.value_or(0), 0.0, 1.0);
  std::string text = has_bar ? InPercent(fraction, progress.of) : "";
  const size_t reserved = has_bar ? kShortestBar + kAroundBar : 0;
  for (const std::string& figure : progress.figures) {
    const size_t gap = text.empty() ? 0 : kBetweenFigures;
    if (!text.empty() && reserved + text.size() + gap + figure.size() > columns) break;
    absl::StrAppend(&text, std::string(gap, ' '), figure);
  }
  if (!has_bar) return text;
  const size_t room = columns - std::min(columns, text.size() + kAroundBar);
  return Bar(fraction, std::clamp(room, kShortestBar, kLongestBar)) + text;
}

std::string Rate(uint64_t count, absl::Duration elapsed) {
  const double rate = static_cast<double>(count) / absl::ToDoubleSeconds(elapsed);
  return std::isfinite(rate)
             ? absl::StrCat(Grouped(static_cast<uint64_t>(std::llround(rate))), "/s")
             : "-/s";
}

}  // namespace perceptrond::client
