// The only loops over features. Each fixes the order of its operations, so that every machine and
// every build computes the same bits: products of two float32 are exact in float64, sums run in
// four lanes that are added as (0 + 1) + (2 + 3), and no operation may be contracted (the build
// says -ffp-contract=off).
#pragma once

#include <cstdint>
#include <span>

#include "core/vector/compensated_sum.h"
#include "core/vector/row.h"

namespace perceptrond {

// weights . row, in float64. Every index of the row must be below weights.size(). O(row.size).
double Dot(std::span<const float> weights, const Row& row);

// ||row||^2, in float64; not finite iff one of the values is not. O(row.size).
double SquaredNorm(const Row& row);

// Whether every weight stays within float32 when step * row is added. O(row.size).
bool StaysFinite(std::span<const float> weights, double step, const Row& row);

// weights += step * row, each weight rounded once from float64. Keeps squared_norm, ||weights||^2,
// up to date: the squares of the rounded weights come and go exactly. Every index must be below
// weights.size(), none twice. O(row.size).
void AddScaled(std::span<float> weights, double step, const Row& row, CompensatedSum& squared_norm);

// A finite value as float32: what lies beyond its range becomes its largest number, not infinity.
float Saturate(double value);

}  // namespace perceptrond
