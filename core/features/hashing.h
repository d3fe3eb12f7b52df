// From names to slots: the hashing trick (Weinberger et al., Feature Hashing for Large Scale
// Multitask Learning, 2009).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace perceptrond {

// XXH3-64 of the name's bytes with seed 0: a published hash, the same on every machine and in every
// client.
uint64_t HashName(absl::string_view name);

// XXH3-64 of any bytes with that seed.
uint64_t HashBytes(const void* bytes, size_t size, uint64_t seed);

// The slot of a name among `slots`, a power of two: the hash's low bits.
inline uint32_t NameSlot(absl::string_view name, uint32_t slots) {
  return static_cast<uint32_t>(HashName(name) & (slots - 1));
}

}  // namespace perceptrond
