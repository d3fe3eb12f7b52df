#include "core/learner/row_store.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

template <typename T>
void EraseFront(std::vector<T>& column, size_t count) {
  column.erase(column.begin(), column.begin() + static_cast<ptrdiff_t>(count));
}

}  // namespace

Row RowStore::row(size_t i) const {
  const size_t begin = Begin(first_ + i);
  const size_t size = ends_[first_ + i] - begin;
  if (size == 0) return {kNoIndices, nullptr, 0};
  return {indices_.data() + begin, values_.data() + begin, size};
}

void RowStore::Push(const Row& row, double coefficient) {
  const SortedRow sorted(row);
  for (size_t i = 0; i < row.size; ++i) {
    const float value = sorted.row().value(i);
    if (value == 0) continue;
    indices_.push_back(sorted.row().index(i));
    values_.push_back(value);
  }
  ends_.push_back(indices_.size());
  coefficients_.push_back(coefficient);
}

void RowStore::Pop() {
  ++first_;
  if (2 * first_ < coefficients_.size()) return;
  const size_t removed = ends_[first_ - 1];
  EraseFront(indices_, removed);
  EraseFront(values_, removed);
  EraseFront(coefficients_, first_);
  EraseFront(ends_, first_);
  for (size_t& end : ends_) end -= removed;
  first_ = 0;
}

void RowStore::Scale(double factor) {
  for (size_t i = first_; i < coefficients_.size(); ++i) coefficients_[i] *= factor;
}

size_t RowStore::memory_bytes() const {
  return indices_.size() * (sizeof(uint32_t) + sizeof(float)) +
         coefficients_.size() * (sizeof(double) + sizeof(size_t));
}

bool RowStore::IsSound(size_t dimension) const {
  return AllFinite(values_) && AllFinite(coefficients_) &&
         std::all_of(indices_.begin(), indices_.end(),
                     [=](uint32_t index) { return index < dimension; });
}

}  // namespace perceptrond
