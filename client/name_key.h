// NameKey: what a name is compared and hashed by.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/hash/hash.h"
#include "absl/numeric/int128.h"
#include "absl/strings/string_view.h"

namespace perceptrond::client {

// The first 16 bytes of a name, and 0 after its end. With the size they determine a name of at most
// 16 bytes. Most names are so short that calls of memcmp() and of a hash of many bytes do not pay.
struct NameKey {
  uint64_t first = 0;
  uint64_t second = 0;

  static constexpr size_t kBytes = 16;

  bool operator==(const NameKey& other) const {
    return ((first ^ other.first) | (second ^ other.second)) == 0;
  }
};

// The key of a name whose first 16 bytes can be read, whatever its size is.
inline NameKey KeyOfPadded(const char* name, size_t size) {
  static constexpr std::array<unsigned char, 2 * NameKey::kBytes> kKept = [] {
    std::array<unsigned char, 2 * NameKey::kBytes> kept{};
    std::fill_n(kept.begin(), NameKey::kBytes, static_cast<unsigned char>(0xff));
    return kept;
  }();
  const auto load = [](const void* from, size_t begin) {
    uint64_t eight = 0;
    std::memcpy(&eight, static_cast<const char*>(from) + begin, sizeof eight);
    return eight;
  };
  const unsigned char* const kept =
      kKept.data() + NameKey::kBytes - std::min(size, NameKey::kBytes);
  return {load(name, 0) & load(kept, 0), load(name, 8) & load(kept, 8)};
}

// A hash of the name with this key, which differs between processes as far as the system places
// them at random, so that names that collide are hard to choose.
inline uint32_t HashName(std::string_view name, NameKey key) {
  static const char kSeed = 0;
  constexpr uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  const uint64_t seed = reinterpret_cast<uintptr_t>(&kSeed) * kOdd;
  const absl::uint128 product = absl::uint128(key.first ^ seed) * absl::uint128(key.second ^ kOdd);
  uint64_t hash = absl::Uint128High64(product) ^ absl::Uint128Low64(product);
  if (name.size() > NameKey::kBytes)
    hash ^= absl::HashOf(absl::string_view(name.data(), name.size()));
  return static_cast<uint32_t>(hash >> 32);
}

}  // namespace perceptrond::client
