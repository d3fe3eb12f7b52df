// The rows of an analysis as it computes with them: augmented, labels multiplied in, columns
// numbered without holes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/cancellation_token.h"

namespace perceptrond {

// z_i = y_i (x_i, b) in float64, which holds them exactly; zeros are left out. Immutable: any
// thread may read it.
class SignedRows {
 public:
  // O(nonzeros log features). If the checkpoint ends it, the rows are not to be used.
  SignedRows(std::span<const LabelledRow> rows, double bias_input,
             CancellationToken& cancellation);

  size_t rows() const { return ends_.size(); }
  // Features that some row has, and one for the offset if there is one: always the last.
  size_t columns() const { return features_.size() + (has_offset_ ? 1 : 0); }
  bool has_offset() const { return has_offset_; }
  // The feature of each column but the offset's; ascending.
  std::span<const uint32_t> features() const { return features_; }

  // Row i: its columns, ascending, and its values there.
  std::span<const uint32_t> indices(size_t i) const {
    return std::span(indices_).subspan(begin(i), size(i));
  }
  std::span<const double> values(size_t i) const {
    return std::span(values_).subspan(begin(i), size(i));
  }
  size_t size(size_t i) const { return ends_[i] - begin(i); }

  // z_i . w, where w has columns() values. O(size(i)).
  double Dot(size_t i, std::span<const double> w) const;
  // sum += scale z_i. O(size(i)).
  void AddScaled(size_t i, double scale, std::span<double> sum) const;
  // R^2: the largest ||z_i||^2.
  double squared_radius() const { return squared_radius_; }

 private:
  size_t begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  bool CollectFeatures(std::span<const LabelledRow> rows, CancellationToken& cancellation);
  void Append(const LabelledRow& one, double bias_input);

  bool has_offset_;
  std::vector<uint32_t> features_;
  std::vector<size_t> ends_;
  std::vector<uint32_t> indices_;
  std::vector<double> values_;
  double squared_radius_ = 0;
};

}  // namespace perceptrond
