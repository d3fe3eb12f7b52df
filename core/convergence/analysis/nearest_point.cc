#include "core/convergence/analysis/nearest_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace perceptrond {
namespace {

// Rows added, or refinements, in a row that improve nothing before it gives up.
constexpr int kMaxStalls = 4;
// Relative to R^2: below it ||v||^2 is rounding only.
constexpr double kVanishing = 1e-30;

double SquaredNorm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return sum;
}

}  // namespace

NearestPoint::NearestPoint(const SignedRows& rows, size_t max_support,
                           CancellationToken& cancellation)
    : rows_(rows),
      max_support_(max_support),
      cancellation_(cancellation),
      ridge_(rows.squared_radius() > 0 ? 1e-13 * rows.squared_radius() : 1),
      scratch_(rows.columns()) {}

NearestPoint::Outcome NearestPoint::Start(std::span<const RowMultiplier> support) {
  if (support.size() > max_support_) return Outcome::kTooManyRows;
  std::vector<RowMultiplier> ordered(support.begin(), support.end());
  // By falling multiplier: of rows that are nearly equal that of the smaller one is left out.
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.multiplier > b.multiplier; });
  double total = 0;
  for (const RowMultiplier& one : ordered) {
    if (Append(one)) total += one.multiplier;
    if (!cancellation_.Spend(factor_.size() * factor_.size())) return Outcome::kCancelled;
  }
  for (RowMultiplier& one : support_) one.multiplier /= total;
  return Settle();
}

NearestPoint::Outcome NearestPoint::Improve(std::span<const size_t> candidates, double tolerance) {
  double best = std::numeric_limits<double>::infinity();
  for (int stalls = 0; stalls < kMaxStalls;) {
    const std::vector<double> point = Point();
    const double squared = SquaredNorm(point);
    stalls = squared < best ? 0 : stalls + 1;
    best = std::min(best, squared);
    size_t worst = 0;
    double least = std::numeric_limits<double>::infinity();
    size_t work = 2 * support_.size() * support_.size() + 4 * rows_.columns();
    for (const size_t i : candidates) {
      const double score = rows_.Dot(i, point);
      if (score < least) {
        least = score;
        worst = i;
      }
      work += rows_.size(i);
    }
    if (!cancellation_.Spend(work)) return Outcome::kCancelled;
    if (least >= squared * (1 - tolerance)) return Outcome::kDone;
    if (squared <= kVanishing * rows_.squared_radius()) return Outcome::kDone;
    // A row of the support that is violated needs a refinement only.
    if (!Supports(worst)) {
      if (support_.size() >= max_support_) return Outcome::kTooManyRows;
      if (!Append({worst, 0})) return Outcome::kDone;
    }
    if (const Outcome outcome = Settle(); outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

std::vector<double> NearestPoint::Point() const {
  std::vector<double> point(rows_.columns());
  for (const RowMultiplier& one : support_) rows_.AddScaled(one.row, one.multiplier, point);
  return point;
}

bool NearestPoint::Supports(size_t row) const {
  return std::any_of(support_.begin(), support_.end(),
                     [row](const RowMultiplier& one) { return one.row == row; });
}

bool NearestPoint::Append(const RowMultiplier& one) {
  rows_.AddScaled(one.row, 1, scratch_);
  std::vector<double> cross;
  cross.reserve(support_.size());
  for (const RowMultiplier& other : support_) cross.push_back(rows_.Dot(other.row, scratch_));
  const double diagonal = rows_.Dot(one.row, scratch_) + ridge_;
  rows_.ForEach(one.row, [this](size_t column, double) { scratch_[column] = 0; });
  if (!factor_.Append(cross, diagonal)) return false;
  support_.push_back(one);
  return true;
}

void NearestPoint::Drop(size_t k) {
  factor_.Remove(k);
  support_.erase(support_.begin() + static_cast<std::ptrdiff_t>(k));
}

std::vector<double> NearestPoint::Change() const {
  const std::vector<double> point = Point();
  const double squared = SquaredNorm(point);
  // At the minimum all scores are equal: only their differences are solved for, so that rounding
  // errors shrink with them.
  std::vector<double> excess;
  for (const RowMultiplier& one : support_) excess.push_back(rows_.Dot(one.row, point) - squared);
  std::vector<double> change = factor_.Solve(excess);
  const std::vector<double> ones = factor_.Solve(std::vector<double>(support_.size(), 1));
  // The change adds up to 0.
  const double level = std::accumulate(change.begin(), change.end(), 0.0) /
                       std::accumulate(ones.begin(), ones.end(), 0.0);
  for (size_t k = 0; k < change.size(); ++k) change[k] = level * ones[k] - change[k];
  return change;
}

NearestPoint::Outcome NearestPoint::Settle() {
  while (true) {
    const std::vector<double> change = Change();
    // The length of the step, and the multiplier that becomes 0 there.
    double step = 1;
    size_t leaving = change.size();
    for (size_t k = 0; k < change.size(); ++k) {
      const double multiplier = support_[k].multiplier;
      if (multiplier + change[k] > 0) continue;
      const double reach = multiplier > 0 ? multiplier / -change[k] : 0;
      if (leaving < change.size() && reach >= step) continue;
      step = reach;
      leaving = k;
    }
    for (size_t k = 0; k < change.size(); ++k)
      support_[k].multiplier = std::max(0.0, support_[k].multiplier + step * change[k]);
    if (leaving == change.size()) return Outcome::kDone;
    Drop(leaving);
    if (!cancellation_.Spend(4 * (support_.size() * support_.size() + rows_.columns())))
      return Outcome::kCancelled;
  }
}

}  // namespace perceptrond
