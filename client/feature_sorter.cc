#include "client/feature_sorter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "client/simd.h"

namespace perceptrond::client {
namespace {

uint64_t Pack(uint32_t index, float value) {
  return static_cast<uint64_t>(index) << 32 | std::bit_cast<uint32_t>(value);
}

bool Ascends(const uint32_t* indices, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    if (indices[i - 1] > indices[i]) return false;
  }
  return true;
}

void InsertionSort(uint32_t* indices, float* values, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    const uint32_t index = indices[i];
    const float value = values == nullptr ? 1 : values[i];
    size_t j = i;
    for (; j > 0 && indices[j - 1] > index; --j) {
      indices[j] = indices[j - 1];
      if (values != nullptr) values[j] = values[j - 1];
    }
    indices[j] = index;
    if (values != nullptr) values[j] = value;
  }
}

// Distributes by the digit of kBits bits at `shift`; the order of equal digits stays (D. E. Knuth,
// "The Art of Computer Programming", volume 3, algorithm 5.2.5 R).
template <int kBits>
void DistributeByDigit(const std::vector<uint64_t>& from, int shift, std::vector<uint64_t>* to) {
  constexpr uint64_t kMask = (1u << kBits) - 1;
  std::array<uint32_t, 1u << kBits> begins{};
  for (const uint64_t feature : from) ++begins[feature >> shift & kMask];
  uint32_t begin = 0;
  for (uint32_t& count : begins) {
    const uint32_t next = begin + count;
    count = begin;
    begin = next;
  }
  for (const uint64_t feature : from) (*to)[begins[feature >> shift & kMask]++] = feature;
}

}  // namespace

void FeatureSorter::SortRows(perceptron::v1::ExampleColumns* columns) {
  uint32_t* const indices = columns->mutable_indices()->mutable_data();
  float* const values =
      columns->values_size() > 0 ? columns->mutable_values()->mutable_data() : nullptr;
  size_t begin = 0;
  for (const uint32_t end : columns->row_ends()) {
    SortDistinct(indices + begin, values == nullptr ? nullptr : values + begin, end - begin);
    begin = end;
  }
}

void FeatureSorter::SortDistinct(uint32_t* indices, float* values, size_t count) {
  if (count > simd::kMostRanked) return Sort(indices, values, count);
  ranks_.resize(simd::kMostRanked + simd::kRankSlack);
  indices_.resize(simd::kMostRanked + simd::kRankSlack);
  std::copy_n(indices, count, indices_.begin());
  simd::Best().rank(indices_.data(), count, ranks_.data());
  for (size_t i = 0; i < count; ++i) indices[ranks_[i]] = indices_[i];
  if (values == nullptr) return;
  values_.assign(values, values + count);
  for (size_t i = 0; i < count; ++i) values[ranks_[i]] = values_[i];
}

void FeatureSorter::Sort(uint32_t* indices, float* values, size_t count) {
  if (Ascends(indices, count)) return;
  if (count < kRadixCount) return InsertionSort(indices, values, count);
  // Differences from the smallest index have fewer digits.
  const auto [least, most] = std::minmax_element(indices, indices + count);
  const uint32_t base = *least;
  const int bits = std::bit_width(*most - base);
  features_.resize(count);
  sorted_.resize(count);
  for (size_t i = 0; i < count; ++i)
    features_[i] = Pack(indices[i] - base, values == nullptr ? 1 : values[i]);
  // Small digits suit short rows: the counts of a digit's values are visited too.
  constexpr size_t kShort = 256;
  for (int done = 0; done < bits; features_.swap(sorted_)) {
    if (count < kShort) {
      DistributeByDigit<6>(features_, 32 + done, &sorted_);
      done += 6;
    } else {
      DistributeByDigit<11>(features_, 32 + done, &sorted_);
      done += 11;
    }
  }
  for (size_t i = 0; i < count; ++i) indices[i] = base + static_cast<uint32_t>(features_[i] >> 32);
  if (values == nullptr) return;
  for (size_t i = 0; i < count; ++i)
    values[i] = std::bit_cast<float>(static_cast<uint32_t>(features_[i]));
}

}  // namespace perceptrond::client
