// From names to weights: in a hashed space the name's hash says which weight (the hashing trick:
// Weinberger et al., Feature Hashing for Large Scale Multitask Learning, 2009), in a named space
// the model's dictionary does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/container/flat_hash_map.h"
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

// The names that a model in a named space has weights for, numbered from 1 in the order they
// came; 0 stands for every other name. Only grows. Not thread-safe: concurrent reads are fine, Add
// excludes everything.
class Dictionary {
 public:
  static constexpr uint32_t kUnknown = 0;

  // The name's number, or kUnknown. O(1) expected.
  uint32_t Find(absl::string_view name) const;
  // Gives the name the next number and returns it. The name must be new. O(1) expected.
  uint32_t Add(absl::string_view name);
  // Of a number from 1 to size().
  const std::string& Name(uint32_t number) const { return names_[number - 1]; }
  // How many names there are; the next one gets size() + 1.
  uint32_t size() const { return static_cast<uint32_t>(names_.size()); }
  // Approximate memory held.
  size_t bytes() const { return bytes_; }

 private:
  // A deque, so that the map's keys may point into it.
  std::deque<std::string> names_;
  absl::flat_hash_map<absl::string_view, uint32_t> numbers_;
  size_t bytes_ = 0;
};

}  // namespace perceptrond
