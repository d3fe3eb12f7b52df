// The loops that every example goes through, on whatever vector unit the machine has (Highway picks
// it when the program runs). All give the same bits: core/vector/kernels.h has the order of the
// additions. Products of two float32 are exact in float64, so that fused and separate additions are
// the same. tests/core/vector/simd_test.cc holds them, for every unit there is, against plain
// loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/vector/batch.h"
#include "core/vector/kernels.h"

namespace perceptrond::simd {

// Dense arrays of `size`, and sparse rows of `size` places `at` with values x, or x null: every
// value is 1.

// sum of a_i b_i.
double DenseDot(const float* a, const float* b, size_t size);
// sum of weights[at_i] x_i. Places are below 2^31.
double SparseDot(const float* weights, const uint32_t* at, const float* x, size_t size);

// The same with what else there is to know of a row.
void ScanDense(const float* weights, const float* x, size_t size, RowScan& scan);

// And of a batch's sparse rows from `first` on, as many as there are scans. Their places may be
// anything: those that are not below `limit`, from 1 to 2^31, read the last weight.
void ScanSparseRows(const float* weights, size_t limit, const Batch& batch, size_t first,
                    std::span<RowScan> scans);

// Whether the places strictly ascend.
bool Ascends(const uint32_t* at, size_t size);

}  // namespace perceptrond::simd
