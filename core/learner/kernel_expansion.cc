#include "core/learner/kernel_expansion.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/vector/kernels.h"

namespace perceptrond {

KernelExpansion::KernelExpansion(const LearnerSettings& settings, size_t size)
    : decision_{false, settings.tie_rule}, kernel_(settings), size_(size) {}

double KernelExpansion::Score(const Kernel::Example& example) const {
  double score = 0;
  for (size_t i = 0; i < rows_.size(); ++i)
    score += rows_.coefficient(i) * kernel_(example, rows_.row(i), squared_norms_[i]);
  return score;
}

void KernelExpansion::Score(const Row& row, uint64_t /*age*/, std::span<double> scores) const {
  scores[0] = Score(Kernel::Example(row));
}

double KernelExpansion::squared_norm(uint64_t /*age*/) const {
  double coefficients = 0;
  for (size_t i = 0; i < rows_.size(); ++i) coefficients += rows_.coefficient(i);
  const double bias_weight = kernel_.bias_input() * coefficients;
  return std::max(0.0, augmented_squared_norm() - bias_weight * bias_weight);
}

// Every update adds one row, and the oldest are removed first.
std::vector<SupportExample> KernelExpansion::SupportExamples(const Row& row) const {
  const Kernel::Example example(row);
  std::vector<SupportExample> support;
  support.reserve(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double coefficient = rows_.coefficient(i);
    // Coefficients that shrank to 0 keep their sign.
    support.push_back({rows_.size() - 1 - i, std::signbit(coefficient) ? -1 : 1,
                       kernel_(example, rows_.row(i), squared_norms_[i]), coefficient});
  }
  return support;
}

void KernelExpansion::Add(const Row& row, const Kernel::Example& example, int32_t label,
                          double score) {
  squared_norm_ = augmented_squared_norm() + (2 * label * score + kernel_.OfItself(example));
  rows_.Push(row, label);
  squared_norms_.push_back(SquaredNorm(rows_.row(rows_.size() - 1)));
}

void KernelExpansion::ShrinkAndRemoveOldest(double phi, double score) {
  const Kernel::Example oldest(rows_.row(0));
  const double coefficient = rows_.coefficient(0);
  squared_norm_ = phi * phi *
                  (squared_norm_ - 2 * coefficient * score +
                   coefficient * coefficient * kernel_.OfItself(oldest));
  rows_.Scale(phi);
  rows_.Pop();
  squared_norms_.erase(squared_norms_.begin());
}

void KernelExpansion::Grow(size_t size) { size_ = std::max(size_, size); }

void KernelExpansion::Restore(size_t size, double squared_norm, RowStore rows) {
  size_ = size;
  squared_norm_ = squared_norm;
  rows_ = std::move(rows);
  squared_norms_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) squared_norms_.push_back(SquaredNorm(rows_.row(i)));
}

}  // namespace perceptrond
