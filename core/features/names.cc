#include "core/features/names.h"

#include <xxhash.h>

namespace perceptrond {

uint64_t HashName(absl::string_view name) { return XXH3_64bits(name.data(), name.size()); }

uint64_t HashBytes(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

uint32_t Dictionary::Find(absl::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? kUnknown : found->second;
}

uint32_t Dictionary::Add(absl::string_view name) {
  names_.emplace_back(name);
  const uint32_t number = size();
  numbers_.emplace(names_.back(), number);
  // The string's own storage, its object, and the map's slot at its usual load.
  bytes_ += name.size() + sizeof(std::string) + 2 * (sizeof(absl::string_view) + sizeof(uint32_t));
  return number;
}

}  // namespace perceptrond
