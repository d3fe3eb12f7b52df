// Kernels: inner products in a space whose vectors are never written out.
#pragma once

#include "core/learner/settings.h"
#include "core/vector/kernels.h"
#include "core/vector/row.h"

namespace perceptrond {

// K(x, z) = k(x, z) + b^2: Phi(x) includes the constant input b. Values are finite for all rows:
// they are limited to 1e150. The same bits on every machine. Any thread may use it.
class Kernel {
 public:
  // An example prepared for many products.
  struct Example {
    explicit Example(const Row& row);
    SortedRow row;
    double squared_norm;
  };

  explicit Kernel(const LearnerSettings& settings);

  // z is sparse and strictly ascends; squared_norm is ||z||^2. O(x.size + z.size).
  double operator()(const Example& x, const Row& z, double squared_norm) const;
  // K(x, x), from x or from its ||x||^2; it never decreases with ||x||^2. O(1).
  double OfItself(const Example& x) const { return OfItself(x.squared_norm); }
  double OfItself(double squared_norm) const;
  // b.
  double bias_input() const { return bias_input_; }

 private:
  double Of(double dot, double squared_distance) const;

  const KernelSettings settings_;
  const double bias_input_;
};

}  // namespace perceptrond
