#include "core/features/feature_map_names.h"

#include <algorithm>

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

}  // namespace perceptrond
