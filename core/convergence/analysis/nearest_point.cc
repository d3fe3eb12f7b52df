#include "core/convergence/analysis/nearest_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace perceptrond {
namespace {

// Of the plane of two columns (Givens).
struct Turn {
  double cosine;
  double sine;
};

// Four lanes: the compiler may not reorder a sum by itself.
double Dot(const double* a, const double* b, size_t n) {
  double lanes[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t k = 0; k < 4; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) lanes[0] += a[i] * b[i];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

}  // namespace

bool Cholesky::Append(std::span<const double> cross, double diagonal) {
  std::vector<double> row(size() + 1);
  for (size_t i = 0; i < size(); ++i)
    row[i] = (cross[i] - Dot(row.data(), rows_[i].data(), i)) / rows_[i][i];
  const double pivot = diagonal - Dot(row.data(), row.data(), size());
  if (!(pivot > 0) || !std::isfinite(pivot)) return false;
  row.back() = std::sqrt(pivot);
  rows_.push_back(std::move(row));
  return true;
}

void Cholesky::Remove(size_t i) {
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
  // The rows after it now have one column too many: rotating each pair of columns removes it. A row
  // needs the rotations of the rows before it, so that one pass over the rows is enough.
  std::vector<Turn> turns;
  for (size_t r = i; r < size(); ++r) {
    double* row = rows_[r].data() + i;
    for (size_t k = 0; k < turns.size(); ++k) {
      const double x = row[k];
      const double y = row[k + 1];
      row[k] = turns[k].cosine * x + turns[k].sine * y;
      row[k + 1] = turns[k].cosine * y - turns[k].sine * x;
    }
    double& diagonal = rows_[r][r];
    const double length = std::hypot(diagonal, rows_[r][r + 1]);
    turns.push_back({diagonal / length, rows_[r][r + 1] / length});
    diagonal = length;
    rows_[r].pop_back();
  }
}

std::vector<double> Cholesky::Solve(std::span<const double> b) const {
  std::vector<double> x(b.begin(), b.end());
  for (size_t i = 0; i < size(); ++i)
    x[i] = (x[i] - Dot(x.data(), rows_[i].data(), i)) / rows_[i][i];
  for (size_t i = size(); i-- > 0;) {
    x[i] /= rows_[i][i];
    for (size_t k = 0; k < i; ++k) x[k] -= rows_[i][k] * x[i];
  }
  return x;
}

namespace {

// Rows added, or refinements, in a row that improve nothing before it gives up.
constexpr size_t kMaxStalls = 4;
// Few rows are added and dropped again before the support is found: more steps than these improve the
// last bits alone, again and again.
constexpr size_t kStepsPerCandidate = 4;
// Relative to R^2: below it ||v||^2 is rounding only.
constexpr double kVanishing = 1e-30;

double SquaredNorm(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return sum;
}

}  // namespace

NearestPoint::NearestPoint(const SignedRows& rows, size_t max_support, AnalysisMonitor& monitor)
    : rows_(rows),
      max_support_(max_support),
      monitor_(monitor),
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
    if (!monitor_.Spend(factor_.size() * factor_.size())) return Outcome::kCancelled;
  }
  for (RowMultiplier& one : support_) one.multiplier /= total;
  return Settle();
}

NearestPoint::Outcome NearestPoint::Improve(std::span<const size_t> candidates, double tolerance) {
  double best = std::numeric_limits<double>::infinity();
  const size_t most_steps = kStepsPerCandidate * (25 + candidates.size());
  for (size_t step = 0, stalls = 0; step < most_steps && stalls < kMaxStalls; ++step) {
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
    if (!monitor_.Spend(work)) return Outcome::kCancelled;
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

double NearestPoint::Stretch(std::span<const double> change) const {
  std::vector<double> moved(rows_.columns());
  for (size_t k = 0; k < change.size(); ++k) rows_.AddScaled(support_[k].row, change[k], moved);
  const std::vector<double> point = Point();
  const double least =
      -std::inner_product(point.begin(), point.end(), moved.begin(), 0.0) / SquaredNorm(moved);
  return std::isfinite(least) ? std::max(1.0, least) : 1;
}

NearestPoint::Outcome NearestPoint::Settle() {
  while (true) {
    const std::vector<double> change = Change();
    // The length of the step, and the multiplier that becomes 0 there.
    double step = Stretch(change);
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
    if (!monitor_.Spend(4 * (support_.size() * support_.size() + rows_.columns())))
      return Outcome::kCancelled;
  }
}

}  // namespace perceptrond
