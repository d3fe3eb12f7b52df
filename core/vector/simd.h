// The loops that every example goes through, compiled with Highway for each vector unit there is;
// which one the machine has is found out when the program runs. All give the same bits:
// core/vector/kernels.h has the order of the additions. Products of two float32 are exact in
// float64, so that fused and separate additions are the same; those of three are rounded before
// they are added. tests/core/vector/simd_test.cc holds
// them, for every unit that the machine has, against plain loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/vector/kernels.h"
#include "core/vector/row.h"

namespace perceptrond::simd {

// More than any vector has of uint32_t.
inline constexpr size_t kMostLanes = 64;

// Rows that block_dots multiplies together.
inline constexpr size_t kRowsInBlock = 32;

// A table of flagged numbers.
struct Lookup {
  const uint32_t* entries = nullptr;
  uint32_t mask = 0;
  uint32_t keep = 0;
  // One bit.
  uint32_t flag = 0;
};

struct LookedUp {
  // The bits that some entry has.
  uint32_t bits = 0;
  // How many have the flag.
  size_t flagged = 0;
};

// The loops of one unit. Dense arrays of `size`, and sparse rows of `size` indices `at` with values
// x, or x null: every value is 1.
struct Loops {
  // "AVX3": as Highway calls the unit.
  const char* unit;

  // sum of a_i b_i.
  double (*dense_dot)(const float* a, const float* b, size_t size);
  // sum of weights[at_i] x_i. Indices are below 2^31.
  double (*sparse_dot)(const float* weights, const uint32_t* at, const float* x, size_t size);

  // The dot products of x, which has a value for each index, with sparse rows of these sizes, whose
  // indices and values follow each other. Each is summed one term after the other.
  void (*row_dots)(const float* x, const uint32_t* at, const float* values,
                   std::span<const uint32_t> sizes, double* dots);
  // The dot products of x with kRowsInBlock dense rows, both `width` wide, summed like row_dots':
  // the same bits, for zeros written or left out. Value j of row r is columns[j kRowsInBlock + r].
  void (*block_dots)(const float* x, const float* columns, size_t width, double* dots);

  // Replaces each value by (offset + value)^exponent + addend, multiplied one factor after the
  // other; the products and the sum are limited to [-most, most]. The exponent is at least 1; all
  // numbers must be finite.
  void (*powers)(double offset, uint32_t exponent, double addend, double most, double* values,
                 size_t size);
  // Replaces each value, the product of a row with another one, by exp(-gamma times their squared
  // distance) + addend. squared_norms: of the other rows. The exponential is within 1e-15,
  // relatively; 0 below e^-708.
  void (*gaussians)(double gamma, double squared_norm, const double* squared_norms, double addend,
                    double* values, size_t size);
  // Adds a_i b_i, rounded, to sums[i % 8].
  void (*add_products)(const double* a, const double* b, size_t size, double* sums);

  // sum of diagonal_i x_i^2, sparse or, with `at` null, dense: diagonal_i (x_i x_i), rounded once.
  double (*weighted_squared_norm)(const float* diagonal, const uint32_t* at, const float* x,
                                  size_t size);

  // Fills in the dot product of a dense row and the other figures of RowScan. diagonal null: it is
  // not scanned.
  void (*scan_dense)(const float* weights, const float* diagonal, const float* x, size_t size,
                     RowScan& scan);
  // Does the same for a batch's sparse rows from `first` on, one for each scan. Their indices may
  // be anything: those that are not below `limit`, from 1 to 2^31, read the last weight.
  void (*scan_sparse_rows)(const float* weights, const float* diagonal, size_t limit,
                           const Batch& batch, size_t first, std::span<RowScan> scans);

  // Converts `size` numbers of IEEE binary16, two bytes each with the lower first.
  void (*halves_to_floats)(const char* halves, float* floats, size_t size);

  // Whether the indices strictly ascend.
  bool (*ascends)(const uint32_t* at, size_t size);

  // Writes to `ranks` how many keys are less than each. Both have room for kMostLanes more.
  // O(size^2).
  void (*rank)(const uint32_t* keys, size_t size, uint32_t* ranks);

  // Looks up table[at_i & mask], below 2^31: writes the bits `keep` of each entry to `values`, and
  // those of entries with the `flag` also to `flagged`, which has room for kMostLanes more.
  LookedUp (*look_up)(const Lookup& table, const uint32_t* at, size_t size, uint32_t* values,
                      uint32_t* flagged);
};

// The loops of the units that this machine has, the best first; at least one. Any thread.
const std::vector<const Loops*>& Units();
inline const Loops& Best() { return *Units().front(); }

// For tests: makes the unit of this name the first one, for the whole process. Returns false, and
// changes nothing, if this machine does not have it. Before any other thread uses a unit.
bool PreferUnit(std::string_view unit);

}  // namespace perceptrond::simd
