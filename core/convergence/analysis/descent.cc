#include "core/convergence/analysis/descent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "absl/container/flat_hash_map.h"

namespace perceptrond {
namespace {

// Passes between two looks at all scores, and those within which the missing part has to halve: first while nothing
// separates the rows, which nothing may ever.
constexpr size_t kPassesPerLook = 8;
constexpr size_t kFirstPatience = 100;
constexpr size_t kPatience = 1000;

class Descent {
 public:
  Descent(const SignedRows& rows, std::span<const size_t> working, AnalysisMonitor& monitor)
      : rows_(rows),
        working_(working),
        monitor_(monitor),
        alpha_(working.size()),
        squared_(working.size()),
        order_(working.size()),
        w_(rows.columns()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    for (size_t k = 0; k < working.size(); ++k)
      rows.ForEach(working[k], [&](size_t, double value) { squared_[k] += value * value; });
  }

  void StartFrom(std::span<const RowMultiplier> combination) {
    absl::flat_hash_map<size_t, double> multipliers;
    std::vector<double> point(rows_.columns());
    for (const RowMultiplier& one : combination) {
      multipliers.emplace(one.row, one.multiplier);
      rows_.AddScaled(one.row, one.multiplier, point);
    }
    const double squared = std::inner_product(point.begin(), point.end(), point.begin(), 0.0);
    if (!(squared > 0)) return;
    for (size_t k = 0; k < working_.size(); ++k) {
      const auto known = multipliers.find(working_[k]);
      if (known != multipliers.end()) alpha_[k] = known->second / squared;
    }
    SumUp();
  }

  // False: stopped.
  bool Pass() {
    std::shuffle(order_.begin(), order_.end(), random_);
    for (const size_t k : order_) {
      const size_t row = working_[k];
      const double next = std::max(0.0, alpha_[k] + (1 - rows_.Dot(row, w_)) / squared_[k]);
      if (next != alpha_[k]) rows_.AddScaled(row, next - alpha_[k], w_);
      alpha_[k] = next;
      if (!monitor_.Spend(4 * rows_.size(row))) return false;
    }
    return true;
  }

  std::optional<size_t> FindZero() const {
    const auto zero = std::find(squared_.begin(), squared_.end(), 0.0);
    if (zero == squared_.end()) return std::nullopt;
    return working_[static_cast<size_t>(zero - squared_.begin())];
  }

  // Of the combination.
  double Length() const {
    return std::sqrt(std::inner_product(w_.begin(), w_.end(), w_.begin(), 0.0)) /
           std::accumulate(alpha_.begin(), alpha_.end(), 0.0);
  }

  // The part of ||w||^2 that the lowest score lacks: 0 at the optimum.
  double Missing() {
    // Also what rounding has left in it.
    SumUp();
    double least = std::numeric_limits<double>::infinity();
    for (const size_t row : working_) {
      least = std::min(least, rows_.Dot(row, w_));
      monitor_.Spend(2 * rows_.size(row));
    }
    const double squared = std::inner_product(w_.begin(), w_.end(), w_.begin(), 0.0);
    return 1 - least * std::accumulate(alpha_.begin(), alpha_.end(), 0.0) / squared;
  }

  std::vector<RowMultiplier> Combination() const {
    const double total = std::accumulate(alpha_.begin(), alpha_.end(), 0.0);
    std::vector<RowMultiplier> combination;
    for (size_t k = 0; k < working_.size(); ++k)
      if (alpha_[k] > 0) combination.push_back({working_[k], alpha_[k] / total});
    return combination;
  }

 private:
  void SumUp() {
    std::fill(w_.begin(), w_.end(), 0.0);
    for (size_t k = 0; k < working_.size(); ++k) {
      if (alpha_[k] > 0) rows_.AddScaled(working_[k], alpha_[k], w_);
      monitor_.Spend(2 * rows_.size(working_[k]));
    }
  }

  const SignedRows& rows_;
  const std::span<const size_t> working_;
  AnalysisMonitor& monitor_;
  std::vector<double> alpha_;
  std::vector<double> squared_;
  std::vector<size_t> order_;
  std::vector<double> w_;
  std::mt19937 random_;
};

}  // namespace

std::vector<RowMultiplier> ShortenByDescent(const SignedRows& rows, std::span<const size_t> working,
                                            std::span<const RowMultiplier> start, double tolerance,
                                            double least_length, AnalysisMonitor& monitor) {
  Descent descent(rows, working, monitor);
  if (const std::optional<size_t> zero = descent.FindZero()) return {{*zero, 1}};
  descent.StartFrom(start);
  double least = std::numeric_limits<double>::infinity();
  size_t halved = 0;
  for (size_t pass = 1; pass - halved <= (least < 1 ? kPatience : kFirstPatience); ++pass) {
    if (!descent.Pass()) return {};
    if (pass % kPassesPerLook != 0) continue;
    const double missing = descent.Missing();
    if (monitor.stopped()) return {};
    if (missing <= tolerance || descent.Length() <= least_length) break;
    if (!(missing <= least / 2)) continue;
    least = missing;
    halved = pass;
  }
  return descent.Combination();
}

}  // namespace perceptrond
