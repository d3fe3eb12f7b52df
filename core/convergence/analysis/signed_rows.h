// The rows z_i of an analysis: augmented examples with their labels multiplied in (analysis.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/convergence/analysis/analysis.h"

namespace perceptrond {

// Each example has one row with two labels, and K - 1 with several classes, one for each other
// class: row i = example (K - 1) + the number of the other class, the example's own left out. Only
// the examples are stored, in float64, which holds their values exactly; zeros are left out.
//
// A row has columns() values in K blocks of width(): a block has one column for each feature that
// some example has, ascending, and a last one for the bias if there is one. Immutable: any thread
// may read it.
class SignedRows {
 public:
  // O(nonzeros log features). If the analysis is stopped, the rows are not to be used.
  SignedRows(std::span<const LabelledRow> examples, const AnalysisOptions& options,
             AnalysisMonitor& monitor);

  size_t examples() const { return labels_.size(); }
  size_t rows() const { return examples() * rows_per_example_; }
  // 1 with two labels, else K - 1.
  size_t rows_per_example() const { return rows_per_example_; }
  // K; 1 with two labels.
  size_t blocks() const { return blocks_; }
  size_t width() const { return features_.size() + (has_bias_ ? 1 : 0); }
  size_t columns() const { return blocks_ * width(); }
  bool has_bias() const { return has_bias_; }
  // The feature of each column of a block but the bias's.
  std::span<const uint32_t> features() const { return features_; }
  // R^2: the largest ||(x, b)||^2; and the largest ||z||^2 over it: 1 with two labels, else 2.
  double squared_radius() const { return squared_radius_; }
  double squared_norm_ratio() const { return blocks_ > 1 ? 2 : 1; }

  size_t example(size_t row) const { return row / rows_per_example_; }
  // The other class r of the row; -1 with two labels.
  int32_t rival(size_t row) const;
  int32_t label(size_t example) const { return labels_[example]; }
  // An example (x, b): its columns in a block, ascending, and its values there.
  std::span<const uint32_t> indices(size_t example) const {
    return std::span(indices_).subspan(begin(example), ends_[example] - begin(example));
  }
  std::span<const double> values(size_t example) const {
    return std::span(values_).subspan(begin(example), ends_[example] - begin(example));
  }

  // Values of a row that are not 0.
  size_t size(size_t row) const { return indices(example(row)).size() * (blocks_ > 1 ? 2 : 1); }
  // Calls take(column, value) for each of them.
  template <typename Take>
  void ForEach(size_t row, const Take& take) const;
  // z . w, where w has columns() values. O(size(row)).
  double Dot(size_t row, std::span<const double> w) const;
  // sum += scale z. O(size(row)).
  void AddScaled(size_t row, double scale, std::span<double> sum) const;

 private:
  // Where a row has the example's values, and with which sign. Two labels: `minus` is not there.
  struct Blocks {
    size_t first = 0;
    double sign = 1;
    size_t minus = 0;
  };
  Blocks BlocksOf(size_t row) const;
  size_t begin(size_t example) const { return example == 0 ? 0 : ends_[example - 1]; }
  bool CollectFeatures(std::span<const LabelledRow> examples, AnalysisMonitor& monitor);
  void Append(const LabelledRow& one, double bias_input);

  const bool has_bias_;
  const size_t blocks_;
  const size_t rows_per_example_;
  std::vector<uint32_t> features_;
  std::vector<int32_t> labels_;
  std::vector<size_t> ends_;
  std::vector<uint32_t> indices_;
  std::vector<double> values_;
  double squared_radius_ = 0;
};

// A row and its factor in a combination of rows.
struct RowMultiplier {
  size_t row = 0;
  double multiplier = 0;
};

inline SignedRows::Blocks SignedRows::BlocksOf(size_t row) const {
  const int32_t label = labels_[example(row)];
  if (blocks_ == 1) return {0, label > 0 ? 1.0 : -1.0, 0};
  return {static_cast<size_t>(label) * width(), 1, static_cast<size_t>(rival(row)) * width()};
}

template <typename Take>
void SignedRows::ForEach(size_t row, const Take& take) const {
  const auto at = indices(example(row));
  const auto x = values(example(row));
  const Blocks blocks = BlocksOf(row);
  for (size_t k = 0; k < at.size(); ++k) take(blocks.first + at[k], blocks.sign * x[k]);
  if (blocks_ == 1) return;
  for (size_t k = 0; k < at.size(); ++k) take(blocks.minus + at[k], -x[k]);
}

}  // namespace perceptrond
