#include "core/features/hashing.h"

#include <xxhash.h>

namespace perceptrond {

uint64_t HashName(absl::string_view name) { return XXH3_64bits(name.data(), name.size()); }

}  // namespace perceptrond
