// Random Fourier features.
//
//   Phi(x)    sqrt(2 / D) (cos(omega_1 . x + b_1), ..., cos(omega_D . x + b_D)), each component of
//             omega_i normal with mean 0 and variance 2 gamma, b_i uniform in [0, 2 pi)
//   kernel    Phi(x) . Phi(z) has mean exp(-gamma ||x - z||^2) over the seeds, and a standard
//             deviation of at most 1 / sqrt(D)
//   norm      ||Phi(x)||^2 <= 2, so R^2 <= 2 + b^2 in every bound
//   source    Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007
//
// Random numbers have no state, so that features may be counted by any 64-bit key: in a dense space
// the index, in a hashed one the slot, in a named one HashName of the name. With XXH3-64 and
// integers as eight bytes, the least first:
//   u         XXH3-64 of (seed, i / 2, key); (u_1, u_2) its upper and lower 32 bits, plus 1/2, over
//             2^32
//   omega     sqrt(-2 ln u_1) times cos(2 pi u_2) for even i, sin(2 pi u_2) for odd i (Box and
//             Muller, A Note on the Generation of Random Normal Deviates, 1958), times
//             sqrt(2 gamma), rounded to float32
//   b_i       2 pi times the upper 53 bits of XXH3-64 of (seed, i), over 2^53
//
// ln and cos may differ in their last bits from one C library to the next, and Phi(x) with them.
// The journal holds Phi(x), so replay does not depend on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/features/expansion.h"

namespace perceptrond {

// O(features D): a product and a sum each where the frequency is at hand, in the table or from a
// row before; else half a hash, a logarithm and a cosine or sine besides, some fifty times as long.
class Fourier final : public Expansion {
 public:
  // The frequencies of a space of fixed size are computed once if they are no more than this many:
  // 16 MiB, in some tenths of a second.
  static constexpr uint64_t kTableLimit = uint64_t{1} << 22;
  // Without a table, how many a Mapped remembers: 4 MiB, for the features that rows share.
  static constexpr uint64_t kRememberedLimit = uint64_t{1} << 20;

  // A table of more than `table_limit` numbers is not made; it changes no value.
  explicit Fourier(const FeatureSpace& space, uint64_t table_limit = kTableLimit);

  ValidationCode Expand(const Source& source, size_t max_features, Mapped& target) const override;
  MapCost CostOf(uint64_t features, size_t max_features) const override;
  uint64_t CostOfDistinct(uint64_t features, uint64_t distinct) const override;

 private:
  // The key's component of every omega. Asks KeepGoing. O(D).
  void MakeFrequencies(uint64_t key, std::span<float> frequencies) const;
  // Returns them from the table or from memory, or makes them. Valid until the next call.
  std::span<const float> Frequencies(uint64_t key, Mapped& memory) const;

  const bool named_;
  const uint32_t dimension_;
  const uint64_t seed_;
  // sqrt(2 gamma).
  const double scale_;
  std::vector<double> phases_;
  // Of key 0, then of key 1, ...; or empty.
  std::vector<float> table_;
};

}  // namespace perceptrond
