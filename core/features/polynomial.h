// Polynomial features.
//
//   Phi(x)    every monomial x_i1 x_i2 ... x_ik with i1 <= i2 <= ... <= ik, k = 1 ... p,
//   coefficient
//             1; with interactions_only, i1 < i2 < ... < ik
//   kernel    Phi(x) . Phi(z) = h_1(u) + ... + h_p(u), u_i = x_i z_i, where h_k is the complete
//             homogeneous symmetric polynomial of degree k; with interactions_only the elementary
//             one, e_k. (The binomial kernel (1 + x . z)^p weighs the same monomials by
//             multinomial coefficients.)
//   dimension over d features C(d + p, p) - 1; with interactions_only C(d, 1) + ... + C(d, p)
//   source    Cover, Geometrical and Statistical Properties of Systems of Linear Inequalities,
//             1965 (polynomial surfaces, and their count); kernels: Shawe-Taylor and Cristianini,
//             Kernel Methods for Pattern Analysis, 2004, chapter 9
//
// Where a monomial goes:
//   dense     degrees one after the other, each in colexicographic order, so the features keep
//             their own indices: see MonomialIndex
//   hashed    a feature keeps its slot; a product goes to ProductSlot of its factors' slots, after
//             what shares a slot was summed
//   named     by name: core/features/expansion.h
//
// A product is computed in float64, from its last factor to its first, and rounded once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/features/expansion.h"

namespace perceptrond {

// How many monomials `features` features have; map is a polynomial. Saturates above
// FeatureSpace::kMaxFeatures. O(degree).
uint64_t MonomialCount(uint64_t features, const FeatureMap& map);

// The index of a monomial in a dense space of `dimension`. Factors ascend, and with
// interactions_only strictly. With k factors i1, ..., ik:
//   MonomialCount of degree k - 1, plus C(i1, 1) + C(i2 + 1, 2) + ... + C(ik + k - 1, k)
//   (interactions_only: plus C(i1, 1) + C(i2, 2) + ... + C(ik, k)).
// O(k).
uint32_t MonomialIndex(std::span<const uint32_t> factors, uint32_t dimension,
                       const FeatureMap& map);

// The factors of the monomial at an index, ascending: the inverse of MonomialIndex. The index must
// be below MonomialCount(dimension, map). O(degree^2 log dimension).
std::vector<uint32_t> MonomialFactors(uint32_t index, uint32_t dimension, const FeatureMap& map);

// O(features mapped to), in a hashed space times their logarithm.
class Polynomial final : public Expansion {
 public:
  explicit Polynomial(const FeatureSpace& space);

  ValidationCode Expand(const Source& source, size_t max_features, Mapped& target) const override;
  MapCost CostOf(uint64_t features, size_t max_features) const override;

 private:
  Extent Measure(const Source& source) const;
  void ExpandDense(const Row& row, Mapped& target) const;
  void ExpandHashed(const Row& row, Mapped& target) const;
  void ExpandNamed(const Source& source, Mapped& target) const;

  const FeatureSpace space_;
};

}  // namespace perceptrond
