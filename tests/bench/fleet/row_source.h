// Rows drawn at random on the unit sphere, labelled by a hidden separator with a chosen margin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perceptrond::bench::fleet {

struct RowOptions {
  size_t dimension = 100;
  // Least distance of a row to the separator, before labels are made wrong.
  double margin = 0.05;
  // Probability that a label is wrong; 0: the rows are separable.
  double noise = 0;
  // Number of the row from which another separator labels; 0: never.
  uint64_t drift_at = 0;
  // Of the separators, and of the rows that they label.
  uint64_t seed = 1;
  uint64_t sequence = 1;
};

// xoshiro256+ (Blackman, Vigna 2018), seeded by splitmix64: fast, and the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed);

  uint64_t Bits();
  // In [0, 1).
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
  // Of mean 1.
  double Exponential();
  double Normal();

 private:
  uint64_t state_[4];
};

// Rows of one sequence. A row is its label times its features: without an offset, it is a mistake
// exactly if its score is not positive. Zeros fill it up to stride() floats.
class RowSource {
 public:
  explicit RowSource(const RowOptions& options);

  size_t stride() const { return stride_; }
  // Replaces `rows` by the next `count` rows.
  void Draw(size_t count, std::vector<float>* rows);
  // The least margin and the largest norm of the rows drawn, by the separator that labelled them.
  double least_margin() const { return least_margin_; }
  double largest_norm() const { return largest_norm_; }

 private:
  void DrawSeparator();
  void DrawDirection(Random& random, float* row);
  void DrawRow(float* row);

  const RowOptions options_;
  const size_t stride_;
  Random separators_;
  Random random_;
  std::vector<float> separator_;
  uint64_t drawn_ = 0;
  double least_margin_ = 1;
  double largest_norm_ = 0;
};

// The product of two vectors of `stride` floats, a multiple of 16.
float Score(const float* weights, const float* row, size_t stride);
double Norm(const float* values, size_t stride);

}  // namespace perceptrond::bench::fleet
