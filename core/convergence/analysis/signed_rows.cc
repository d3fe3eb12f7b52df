#include "core/convergence/analysis/signed_rows.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace perceptrond {

SignedRows::SignedRows(std::span<const LabelledRow> examples, const AnalysisOptions& options,
                       AnalysisMonitor& monitor)
    : has_bias_(options.bias_input != 0),
      blocks_(std::max<size_t>(options.classes, 1)),
      rows_per_example_(std::max<size_t>(blocks_ - 1, 1)) {
  if (!CollectFeatures(examples, monitor)) return;
  labels_.reserve(examples.size());
  ends_.reserve(examples.size());
  for (const LabelledRow& one : examples) {
    Append(one, options.bias_input);
    if (!monitor.Spend(10 * one.row.size)) return;
  }
}

bool SignedRows::CollectFeatures(std::span<const LabelledRow> examples, AnalysisMonitor& monitor) {
  absl::flat_hash_set<uint32_t> seen;
  for (const LabelledRow& one : examples) {
    for (size_t i = 0; i < one.row.size; ++i)
      if (one.row.value(i) != 0) seen.insert(one.row.index(i));
    if (!monitor.Spend(10 * one.row.size)) return false;
  }
  features_.assign(seen.begin(), seen.end());
  std::sort(features_.begin(), features_.end());
  return true;
}

void SignedRows::Append(const LabelledRow& one, double bias_input) {
  double squared = 0;
  const auto add = [&](size_t column, double value) {
    indices_.push_back(static_cast<uint32_t>(column));
    values_.push_back(value);
    squared += value * value;
  };
  // Indices ascend, so that each search begins after the one before.
  auto at = features_.begin();
  for (size_t i = 0; i < one.row.size; ++i) {
    const double value = one.row.value(i);
    if (value == 0) continue;
    at = std::lower_bound(at, features_.end(), one.row.index(i));
    add(at - features_.begin(), value);
  }
  if (has_bias_) add(features_.size(), bias_input);
  ends_.push_back(indices_.size());
  labels_.push_back(one.label);
  squared_radius_ = std::max(squared_radius_, squared);
}

int32_t SignedRows::rival(size_t row) const {
  if (blocks_ == 1) return -1;
  const auto number = static_cast<int32_t>(row % rows_per_example_);
  return number < labels_[example(row)] ? number : number + 1;
}

double SignedRows::Dot(size_t row, std::span<const double> w) const {
  const auto at = indices(example(row));
  const auto x = values(example(row));
  const Blocks blocks = BlocksOf(row);
  double sum = 0;
  for (size_t k = 0; k < at.size(); ++k) sum += x[k] * w[blocks.first + at[k]];
  if (blocks_ == 1) return blocks.sign * sum;
  double other = 0;
  for (size_t k = 0; k < at.size(); ++k) other += x[k] * w[blocks.minus + at[k]];
  return sum - other;
}

void SignedRows::AddScaled(size_t row, double scale, std::span<double> sum) const {
  ForEach(row, [&](size_t column, double value) { sum[column] += scale * value; });
}

}  // namespace perceptrond
