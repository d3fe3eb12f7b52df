#include "core/convergence/analysis/scaled_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/convergence/analysis/bounds.h"

namespace perceptrond {

ScaledRows::ScaledRows(const SignedRows& rows)
    : rows_(rows), largest_(rows.width()), lengths_(rows.examples()) {
  for (size_t i = 0; i < rows.examples(); ++i) {
    for (size_t k = 0; k < rows.indices(i).size(); ++k) {
      double& largest = largest_[rows.indices(i)[k]];
      largest = std::max(largest, std::abs(rows.values(i)[k]));
    }
  }
  for (size_t i = 0; i < rows.examples(); ++i) {
    double squared = 0;
    for (size_t k = 0; k < rows.indices(i).size(); ++k) {
      const double value = rows.values(i)[k] / largest_[rows.indices(i)[k]];
      squared += value * value;
    }
    lengths_[i] = std::sqrt(squared);
  }
}

FoundSeparator FindSeparator(const SignedRows& rows, size_t max_passes, AnalysisMonitor& monitor) {
  const ScaledRows scaled(rows);
  std::vector<double> w(rows.columns());
  for (size_t pass = 0; pass < max_passes; ++pass) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t row = 0; row < rows.rows(); ++row) {
      // Nothing separates a row of zeros.
      if (rows.size(row) == 0) return {};
      const double score = scaled.Dot(row, w);
      least = std::min(least, score);
      if (score < 1) scaled.AddScaled(row, (1 - score) / rows.squared_norm_ratio(), w);
      if (!monitor.Spend(4 * rows.size(row))) return {};
    }
    if (!(least > 0.5)) continue;
    const double floor = MeasureMargins(rows, w, monitor).floor;
    if (monitor.stopped()) return {};
    if (floor > 0) return {std::move(w), floor};
  }
  return {};
}

}  // namespace perceptrond
