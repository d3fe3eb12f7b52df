#include "core/convergence/analysis/signed_rows.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace perceptrond {

SignedRows::SignedRows(std::span<const LabelledRow> rows, double bias_input,
                       CancellationToken& cancellation)
    : has_offset_(bias_input != 0) {
  if (!CollectFeatures(rows, cancellation)) return;
  ends_.reserve(rows.size());
  for (const LabelledRow& one : rows) {
    Append(one, bias_input);
    if (!cancellation.Spend(10 * one.row.size)) return;
  }
}

bool SignedRows::CollectFeatures(std::span<const LabelledRow> rows,
                                 CancellationToken& cancellation) {
  absl::flat_hash_set<uint32_t> seen;
  for (const LabelledRow& one : rows) {
    for (size_t i = 0; i < one.row.size; ++i)
      if (one.row.value(i) != 0) seen.insert(one.row.index(i));
    if (!cancellation.Spend(10 * one.row.size)) return false;
  }
  features_.assign(seen.begin(), seen.end());
  std::sort(features_.begin(), features_.end());
  return true;
}

void SignedRows::Append(const LabelledRow& one, double bias_input) {
  double squared = 0;
  const auto add = [&](size_t column, double value) {
    indices_.push_back(static_cast<uint32_t>(column));
    values_.push_back(one.label > 0 ? value : -value);
    squared += value * value;
  };
  // Indices ascend, so that each is looked for behind the one before.
  auto at = features_.begin();
  for (size_t i = 0; i < one.row.size; ++i) {
    const double value = one.row.value(i);
    if (value == 0) continue;
    at = std::lower_bound(at, features_.end(), one.row.index(i));
    add(at - features_.begin(), value);
  }
  if (has_offset_) add(features_.size(), bias_input);
  ends_.push_back(indices_.size());
  squared_radius_ = std::max(squared_radius_, squared);
}

double SignedRows::Dot(size_t i, std::span<const double> w) const {
  const auto at = indices(i);
  const auto x = values(i);
  double sum = 0;
  for (size_t k = 0; k < at.size(); ++k) sum += x[k] * w[at[k]];
  return sum;
}

void SignedRows::AddScaled(size_t i, double scale, std::span<double> sum) const {
  const auto at = indices(i);
  const auto x = values(i);
  for (size_t k = 0; k < at.size(); ++k) sum[at[k]] += scale * x[k];
}

}  // namespace perceptrond
