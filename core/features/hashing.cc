#include "core/features/hashing.h"

#include <xxhash.h>

namespace perceptrond {

uint64_t HashName(absl::string_view name) { return XXH3_64bits(name.data(), name.size()); }

uint64_t HashBytes(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

}  // namespace perceptrond
