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
  if (keeps_blocks_) AddToBlock(size() - 1);
}

void RowStore::KeepBlocks() {
  keeps_blocks_ = true;
  removed_ = 0;
  blocks_.clear();
  block_bytes_ = 0;
  for (size_t i = 0; i < size(); ++i) AddToBlock(i);
}

void RowStore::AddToBlock(size_t i) {
  const size_t position = (removed_ + i) % simd::kRowsInBlock;
  if (position == 0) {
    blocks_.emplace_back();
    last_width_ = 0;
  }
  const Row last = row(i);
  if (last.size > 0)
    last_width_ = std::max<size_t>(last_width_, last.indices[last.size - 1] + size_t{1});
  // The rows of the block that are still there.
  const size_t rows = std::min(position, i) + 1;
  const size_t begin = i + 1 - rows;
  const size_t room = last_width_ <= kNarrowBlock ? rows : simd::kRowsInBlock;
  std::vector<float>& columns = blocks_.back();
  block_bytes_ -= columns.capacity() * sizeof(float);
  if (last_width_ > kWidestBlock || 2 * features(begin, rows) < last_width_ * room) {
    columns = std::vector<float>();
    return;
  }
  size_t next = columns.empty() ? begin : i;
  const size_t size = last_width_ * simd::kRowsInBlock;
  if (columns.size() < size) {
    columns.reserve(size);
    columns.resize(size);
  }
  block_bytes_ += columns.capacity() * sizeof(float);
  for (; next <= i; ++next) {
    const Row stored = row(next);
    for (size_t j = 0; j < stored.size; ++j)
      columns[stored.indices[j] * simd::kRowsInBlock + (removed_ + next) % simd::kRowsInBlock] =
          stored.values[j];
  }
}

RowStore::Block RowStore::block(size_t i) const {
  if (!keeps_blocks_) return {1};
  const size_t at = (removed_ + i) / simd::kRowsInBlock;
  const size_t first = (removed_ + i) % simd::kRowsInBlock;
  const size_t rows = std::min(simd::kRowsInBlock - first, size() - i);
  if (blocks_[at].empty()) return {rows};
  return {rows, blocks_[at].data(), blocks_[at].size() / simd::kRowsInBlock, first};
}

void RowStore::Pop() {
  if (keeps_blocks_ && ++removed_ == simd::kRowsInBlock) {
    removed_ = 0;
    block_bytes_ -= blocks_.front().capacity() * sizeof(float);
    blocks_.erase(blocks_.begin());
  }
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
         coefficients_.size() * (sizeof(double) + sizeof(size_t)) + block_bytes_;
}

bool RowStore::IsSound(size_t dimension) const {
  return AllFinite(values_) && AllFinite(coefficients_) &&
         std::all_of(indices_.begin(), indices_.end(),
                     [=](uint32_t index) { return index < dimension; });
}

}  // namespace perceptrond
