#include "core/features/expansion.h"

#include <algorithm>
#include <array>

#include "core/features/feature_space.h"
#include "core/features/fourier.h"
#include "core/features/names.h"
#include "core/features/polynomial.h"
#include "core/features/products.h"
#include "core/vector/simd.h"

namespace perceptrond {
namespace {

bool NeedsEscape(char c) { return c == kTimes || c == kEscape; }

}  // namespace

size_t FactorBytes(absl::string_view name) {
  return name.size() + static_cast<size_t>(std::count_if(name.begin(), name.end(), NeedsEscape));
}

void ProductNames::Clear() {
  bytes_.clear();
  ends_.clear();
}

void ProductNames::Reserve(size_t products, size_t bytes) {
  bytes_.reserve(bytes);
  ends_.reserve(products);
}

void ProductNames::Add(std::span<const uint32_t> factors,
                       std::span<const absl::string_view> names) {
  for (size_t i = 0; i < factors.size(); ++i) {
    if (i > 0) bytes_.push_back(kTimes);
    AppendFactor(names[factors[i]]);
  }
  ends_.push_back(bytes_.size());
}

absl::string_view ProductNames::operator[](size_t i) const {
  const size_t begin = i == 0 ? 0 : ends_[i - 1];
  return absl::string_view(bytes_).substr(begin, ends_[i] - begin);
}

void ProductNames::AppendFactor(absl::string_view name) {
  for (const char c : name) {
    if (NeedsEscape(c)) bytes_.push_back(kEscape);
    bytes_.push_back(c);
  }
}

uint32_t ProductSlot(std::span<const uint32_t> factors, uint32_t slots) {
  std::array<char, 4 * FeatureMap::kMaxDegree> bytes;
  size_t size = 0;
  for (const uint32_t factor : factors) {
    for (int shift = 0; shift < 32; shift += 8) bytes[size++] = static_cast<char>(factor >> shift);
  }
  return NameSlot({bytes.data(), size}, slots);
}

Row SlotSum::Sum() {
  // Ranking compares each with each, many at once.
  constexpr size_t kFew = 256;
  indices_.clear();
  values_.clear();
  slots_.size() <= kFew ? SortFew() : SortMany();
  return Row{indices_.empty() ? kNoIndices : indices_.data(), values_.data(), indices_.size()};
}

void SlotSum::Append(uint32_t slot, float value) {
  if (!indices_.empty() && indices_.back() == slot) {
    values_.back() += value;
  } else {
    indices_.push_back(slot);
    values_.push_back(value);
  }
}

void SlotSum::SortFew() {
  constexpr uint32_t kNone = UINT32_MAX;
  const size_t size = slots_.size();
  slots_.resize(size + simd::kMostLanes);
  ranks_.resize(size + simd::kMostLanes);
  simd::Best().rank(slots_.data(), size, ranks_.data());
  slots_.resize(size);
  first_.assign(size, kNone);
  next_.resize(size);
  // From the last to the first, so that those of a slot are linked in the order they were added.
  for (size_t i = size; i-- > 0;) {
    next_[i] = first_[ranks_[i]];
    first_[ranks_[i]] = static_cast<uint32_t>(i);
  }
  for (const uint32_t first : first_) {
    for (uint32_t i = first; i != kNone; i = next_[i]) Append(slots_[i], added_[i]);
  }
}

void SlotSum::SortMany() {
  keys_.clear();
  for (size_t i = 0; i < slots_.size(); ++i) keys_.push_back(uint64_t{slots_[i]} << 32 | i);
  std::sort(keys_.begin(), keys_.end());
  for (const uint64_t key : keys_) {
    const auto i = static_cast<uint32_t>(key);
    Append(slots_[i], added_[i]);
  }
}

ValidationCode CheckExtent(const Extent& extent, size_t max_features) {
  return extent.features > max_features || extent.name_bytes > kMaxRowNameBytes
             ? ValidationCode::kTooManyFeatures
             : ValidationCode::kNone;
}

uint64_t ProductWork(FeatureSpace::Kind kind) {
  switch (kind) {
    case FeatureSpace::Kind::kDense:
      return 16;
    case FeatureSpace::Kind::kHashed:
      return 150;
    case FeatureSpace::Kind::kNamed:
      return 200;
  }
  return 1;
}

std::shared_ptr<const Expansion> MakeExpansion(const FeatureSpace& space) {
  switch (space.map.kind) {
    case FeatureMap::Kind::kIdentity:
      break;
    case FeatureMap::Kind::kPolynomial:
      return std::make_shared<Polynomial>(space);
    case FeatureMap::Kind::kProducts:
      return std::make_shared<Products>(space);
    case FeatureMap::Kind::kFourier:
      return std::make_shared<Fourier>(space);
  }
  return nullptr;
}

}  // namespace perceptrond
