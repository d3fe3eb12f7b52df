#include "core/vector/sorted_row.h"

#include <algorithm>
#include <numeric>

namespace perceptrond {
namespace {

bool Ascends(const Row& row) {
  return row.indices == nullptr || std::is_sorted(row.indices, row.indices + row.size);
}

double Product(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }

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
