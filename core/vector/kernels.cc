#include "core/vector/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/vector/simd.h"

namespace perceptrond {
namespace {

// Sums term(0) + ... + term(n - 1) in lanes: lane i % kLanes takes term(i).
constexpr size_t kLanes = 8;

template <typename Term>
inline double LaneSum(size_t n, Term term) {
  double lane[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] += term(i + j);
  }
  for (size_t j = 0; i + j < n; ++j) lane[j] += term(i + j);
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

inline double Product(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }

}  // namespace

double Dot(std::span<const float> weights, const Row& row) {
  if (row.indices != nullptr)
    return simd::Best().sparse_dot(weights.data(), row.indices, row.values, row.size);
  return simd::Best().dense_dot(weights.data(), row.values, row.size);
}

double SquaredNorm(const Row& row) {
  if (row.values == nullptr) return static_cast<double>(row.size);
  return simd::Best().dense_dot(row.values, row.values, row.size);
}

void ScanRows(std::span<const float> weights, std::span<const float> diagonal, const Batch& batch,
              size_t first, std::span<RowScan> scans) {
  const float* const second = diagonal.empty() ? nullptr : diagonal.data();
  if (batch.dense_width == 0) {
    simd::Best().scan_sparse_rows(weights.data(), second, weights.size(), batch, first, scans);
    return;
  }
  for (size_t i = 0; i < scans.size(); ++i) {
    const Row row = batch.row(first + i);
    simd::Best().scan_dense(weights.data(), second, row.values, row.size, scans[i]);
  }
}

double DotAt(std::span<const float> a, std::span<const float> b, const Row& row) {
  return LaneSum(row.size, [&](size_t i) { return Product(a[row.index(i)], b[row.index(i)]); });
}

double WeightedSquaredNorm(std::span<const float> diagonal, const Row& row) {
  return simd::Best().weighted_squared_norm(diagonal.data(), row.indices, row.values, row.size);
}

double LargestWholeStep(double step, const Row& row) {
  double largest = 0;
  for (size_t i = 0; i < row.size; ++i) {
    const double moved = std::abs(step * static_cast<double>(row.value(i)));
    if (moved != std::floor(moved)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, moved);
  }
  return largest;
}

void HalvesToFloats(const char* halves, std::span<float> values) {
  simd::Best().halves_to_floats(halves, values.data(), values.size());
}

bool AllZero(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return v == 0; });
}

bool AllFinite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

bool AllFinite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

bool StaysFinite(std::span<const float> weights, double step, const Row& row) {
  for (size_t i = 0; i < row.size; ++i) {
    const double after = weights[row.index(i)] + step * static_cast<double>(row.value(i));
    if (!(std::abs(after) <= std::numeric_limits<float>::max())) return false;
  }
  return true;
}

bool StepStaysFinite(double step, const Row& row) {
  for (size_t i = 0; i < row.size; ++i) {
    const double after = step * static_cast<double>(row.value(i));
    if (!(std::abs(after) <= std::numeric_limits<float>::max())) return false;
  }
  return true;
}

namespace {

// Starts to fetch the row's weights from other processors, as stores otherwise do one after the
// other.
void PrefetchToWrite(std::span<float> weights, const Row& row) {
  for (size_t i = 0; i < row.size; ++i) __builtin_prefetch(&weights[row.index(i)], 1);
}

}  // namespace

void AddScaled(std::span<float> weights, double step, const Row& row,
               CompensatedSum& squared_norm) {
  PrefetchToWrite(weights, row);
  for (size_t i = 0; i < row.size; ++i) {
    float& weight = weights[row.index(i)];
    squared_norm.Add(-Product(weight, weight));
    weight =
        static_cast<float>(static_cast<double>(weight) + step * static_cast<double>(row.value(i)));
    squared_norm.Add(Product(weight, weight));
  }
}

bool StaysFiniteAlong(std::span<const float> weights, double step, std::span<const float> diagonal,
                      const Row& row) {
  for (size_t i = 0; i < row.size; ++i) {
    const uint32_t at = row.index(i);
    const double after = weights[at] + step * Product(diagonal[at], row.value(i));
    if (!(std::abs(after) <= std::numeric_limits<float>::max())) return false;
  }
  return true;
}

void AddScaledAlong(std::span<float> weights, double step, std::span<const float> diagonal,
                    const Row& row, CompensatedSum& squared_norm) {
  for (size_t i = 0; i < row.size; ++i) {
    const uint32_t at = row.index(i);
    float& weight = weights[at];
    squared_norm.Add(-Product(weight, weight));
    weight = static_cast<float>(weight + step * Product(diagonal[at], row.value(i)));
    squared_norm.Add(Product(weight, weight));
  }
}

bool StayWithin(std::span<const float> weights, double most, const Row& row) {
  for (size_t i = 0; i < row.size; ++i) {
    if (!(std::abs(static_cast<double>(weights[row.index(i)])) <= most)) return false;
  }
  return true;
}

void AddAdaptive(std::span<float> weights, double eta, double step, std::span<float> squares,
                 const Row& row, CompensatedSum& squared_norm) {
  for (size_t i = 0; i < row.size; ++i) {
    const uint32_t at = row.index(i);
    const double gradient = step * static_cast<double>(row.value(i));
    squares[at] = AddSquare(squares[at], gradient);
    float& weight = weights[at];
    squared_norm.Add(-Product(weight, weight));
    weight = static_cast<float>(weight + AdaptiveStep(eta, gradient, squares[at]));
    squared_norm.Add(Product(weight, weight));
  }
}

void ApplySum(std::span<float> weights, double factor, std::span<float> sum,
              std::span<const uint32_t> indices, CompensatedSum& squared_norm) {
  for (const uint32_t at : indices) {
    if (sum[at] == 0) continue;
    float& weight = weights[at];
    squared_norm.Add(-Product(weight, weight));
    weight =
        static_cast<float>(static_cast<double>(weight) + factor * static_cast<double>(sum[at]));
    squared_norm.Add(Product(weight, weight));
    sum[at] = 0;
  }
}

bool StaysFiniteBy(std::span<const float> weights, double factor, std::span<const float> sum,
                   double step, const Row& row) {
  constexpr double kMax = std::numeric_limits<float>::max();
  for (size_t i = 0; i < row.size; ++i) {
    const uint32_t at = row.index(i);
    const double after = sum[at] + step * static_cast<double>(row.value(i));
    if (!(std::abs(after) <= kMax)) return false;
    // The sum is stored as float32.
    const double added = factor * static_cast<double>(static_cast<float>(after));
    if (!(std::abs(weights[at] + added) <= kMax)) return false;
  }
  return true;
}

void ShrinkVariances(std::span<float> variances, double confidence, const Row& row) {
  for (size_t i = 0; i < row.size; ++i) {
    float& variance = variances[row.index(i)];
    const double moved = Product(variance, row.value(i));
    variance = static_cast<float>(std::max(0.0, variance - confidence * moved * moved));
  }
}

void Scale(std::span<float> weights, double factor, CompensatedSum& squared_norm) {
  for (float& weight : weights) {
    weight = static_cast<float>(weight * factor);
    squared_norm.Add(Product(weight, weight));
  }
}

namespace {

bool Ascends(const Row& row) {
  return row.indices == nullptr || std::is_sorted(row.indices, row.indices + row.size);
}

double DotDense(const Row& x, const Row& z) {
  double sum = 0;
  for (size_t i = 0; i < z.size; ++i) sum += Product(x.values[z.indices[i]], z.value(i));
  return sum;
}

}  // namespace

SortedRow::SortedRow(const Row& row) : row_(row) {
  if (Ascends(row)) return;
  std::vector<uint32_t> order(row.size);
  std::iota(order.begin(), order.end(), 0U);
  // Unknown names share index 0: they keep their order.
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return row.indices[a] < row.indices[b]; });
  for (const uint32_t position : order) {
    indices_.push_back(row.indices[position]);
    values_.push_back(row.value(position));
  }
  row_ = {indices_.data(), values_.data(), row.size};
}

double Dot(const SortedRow& x, const Row& z) {
  const Row& row = x.row();
  if (row.indices == nullptr) return DotDense(row, z);
  double sum = 0;
  for (size_t i = 0, j = 0; i < row.size && j < z.size;) {
    if (row.indices[i] == z.indices[j]) {
      sum += Product(row.value(i++), z.value(j++));
    } else if (row.indices[i] < z.indices[j]) {
      ++i;
    } else {
      ++j;
    }
  }
  return sum;
}

}  // namespace perceptrond
