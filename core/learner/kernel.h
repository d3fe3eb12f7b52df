// Kernels: inner products in a space that nobody writes down.
#pragma once

#include "core/learner/settings.h"
#include "core/vector/row.h"
#include "core/vector/sorted_row.h"

namespace perceptrond {

// K(x, z) = k(x, z) + b^2: Phi(x) gets the constant coordinate b. Values are finite, whatever the
// rows: beyond 1e150 they stay there. The same bits on every machine. Any thread may use it.
class Kernel {
 public:
  // An example to be multiplied with many.
  struct Example {
    explicit Example(const Row& row);
    SortedRow row;
    double squared_norm;
  };

  explicit Kernel(const LearnerSettings& settings);

  // z is sparse and strictly ascends; squared_norm is ||z||^2. O(x.size + z.size).
  double operator()(const Example& x, const Row& z, double squared_norm) const;
  // K(x, x), of an x or of its ||x||^2, with which it never falls. O(1).
  double OfItself(const Example& x) const { return OfItself(x.squared_norm); }
  double OfItself(double squared_norm) const;
  // b: each Phi(x) has it.
  double offset_value() const { return offset_value_; }

 private:
  double Of(double dot, double squared_distance) const;

  const KernelSettings settings_;
  const double offset_value_;
};

}  // namespace perceptrond
