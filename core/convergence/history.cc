#include "core/convergence/history.h"

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace perceptrond {
namespace {

// What the stored form, an int64, can say.
constexpr uint64_t kMostRevisions = std::numeric_limits<int64_t>::max();

bool IsFigure(double value) { return std::isfinite(value) && value >= 0; }
bool IsFigure(const std::optional<double>& value) { return !value.has_value() || IsFigure(*value); }

}  // namespace

bool IsSound(const HistoryPoint& point) {
  return point.revision > 0 && point.revision <= kMostRevisions &&
         point.mistakes <= point.examples && IsFigure(point.weight_norm) &&
         IsFigure(point.margin_ceiling) && IsFigure(point.margin_floor) &&
         IsFigure(point.window_error);
}

std::optional<History> History::From(uint64_t spacing, std::vector<HistoryPoint> points) {
  if (!std::has_single_bit(spacing) || points.size() > kMaxPoints) return std::nullopt;
  History history;
  history.spacing_ = spacing;
  for (const HistoryPoint& point : points) {
    if (!IsSound(point) || !history.Wants(point.revision)) return std::nullopt;
    history.points_.push_back(point);
  }
  return history;
}

bool History::Wants(uint64_t revision) const {
  return revision % spacing_ == 0 && (points_.empty() || revision > points_.back().revision);
}

bool History::Add(const HistoryPoint& point) {
  if (!Wants(point.revision) || !IsSound(point)) return false;
  points_.push_back(point);
  if (points_.size() > kMaxPoints) {
    spacing_ *= 2;
    std::erase_if(points_,
                  [this](const HistoryPoint& held) { return held.revision % spacing_ != 0; });
  }
  return true;
}

}  // namespace perceptrond
