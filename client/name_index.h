// NameIndex: finds the numbers of names by their hash. The names themselves are its owner's, which
// numbers them as they come and forgets the oldest: numbers below a bound are as good as absent.
//
//   const uint32_t hash = NameIndex::Hash(name, KeyOfPadded(name.data(), name.size()));
//   const auto is_name = [&](uint32_t number) { return text_of(number) == name; };
//   uint32_t number = index.Find(hash, oldest, next, is_name);
//   if (number == NameIndex::kNone) index.Insert(hash, number = next++, oldest);
//
// A number whose name has changed since Insert() does no harm, because Find() asks for the text. So
// an owner may take numbers back and give them to other names.
//
// An open-addressed table with linear probing: a name takes 16 to 48 bytes and, where the table is
// in no cache, one miss.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

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

class NameIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Never 0, which marks an empty bucket. `key` is the name's.
  static uint32_t Hash(std::string_view name, NameKey key) {
    uint64_t hash = Fold(key.first ^ Seed(), key.second ^ kOdd);
    if (name.size() > NameKey::kBytes)
      hash ^= absl::HashOf(absl::string_view(name.data(), name.size()));
    return static_cast<uint32_t>(hash >> 32) | 1;
  }

  // Starts to load what Find() will need.
  void Prefetch(uint32_t hash) const { __builtin_prefetch(&buckets_[Home(hash)]); }

  // The first number inserted with this hash or, rarely, another one; kNone if there is none. To
  // start to load its name before Find().
  uint32_t Guess(uint32_t hash) const {
    size_t i = Home(hash);
    while (buckets_[i].hash != 0 && buckets_[i].hash != hash) i = (i + 1) & mask();
    return buckets_[i].hash == 0 ? kNone : buckets_[i].number;
  }

  // The number in [oldest, next) for which equal(number), among those inserted with this hash;
  // kNone if there is none.
  template <typename Equal>
  uint32_t Find(uint32_t hash, uint32_t oldest, uint32_t next, Equal&& equal) const {
    for (size_t i = Home(hash);; i = (i + 1) & mask()) {
      const Bucket& bucket = buckets_[i];
      if (bucket.hash == 0) return kNone;
      if (bucket.hash == hash && bucket.number >= oldest && bucket.number < next &&
          equal(bucket.number)) {
        return bucket.number;
      }
    }
  }

  // Adds a number, below kNone. Forgets numbers below `oldest` when the table is rebuilt. Amortized
  // O(1) if a constant share of the numbers inserted becomes older than `oldest`, or none.
  void Insert(uint32_t hash, uint32_t number, uint32_t oldest) {
    if (2 * ++used_ > buckets_.size()) Rebuild(oldest);
    Put({hash, number});
  }

  // Forgets all.
  void Clear() {
    std::fill(buckets_.begin(), buckets_.end(), Bucket{});
    used_ = 0;
  }

 private:
  struct Bucket {
    uint32_t hash = 0;
    uint32_t number = 0;
  };

  size_t mask() const { return buckets_.size() - 1; }
  // The lowest bit is no bit of the hash.
  size_t Home(uint32_t hash) const { return (hash >> 1) & mask(); }

  void Put(Bucket bucket) {
    size_t i = Home(bucket.hash);
    while (buckets_[i].hash != 0) i = (i + 1) & mask();
    buckets_[i] = bucket;
  }

  // Leaves at least two thirds of the buckets empty.
  void Rebuild(uint32_t oldest) {
    // Without a branch for each condition: which buckets are empty is not predictable.
    const auto is_kept = [oldest](const Bucket& bucket) {
      return (bucket.hash != 0) & (bucket.number >= oldest);
    };
    size_t kept = 0;
    for (const Bucket& bucket : buckets_) kept += static_cast<size_t>(is_kept(bucket));
    std::vector<Bucket> before(std::max(kLeastBuckets, std::bit_ceil(3 * (kept + 1))));
    before.swap(buckets_);
    used_ = kept + 1;
    for (const Bucket& bucket : before) {
      if (is_kept(bucket)) Put(bucket);
    }
  }

  static constexpr size_t kFirstBuckets = 64;
  // Once rebuilt: rebuilding for each few names that come and go would take long.
  static constexpr size_t kLeastBuckets = 2048;

  static constexpr uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;

  // Differs between processes, as far as the system places them at random, so that nobody can choose
  // names which collide.
  static uint64_t Seed() {
    static const char seed = 0;
    return reinterpret_cast<uintptr_t>(&seed) * kOdd;
  }
  // Both halves of the product.
  static uint64_t Fold(uint64_t a, uint64_t b) {
    const absl::uint128 product = absl::uint128(a) * absl::uint128(b);
    return absl::Uint128High64(product) ^ absl::Uint128Low64(product);
  }

  // A power of two.
  std::vector<Bucket> buckets_ = std::vector<Bucket>(kFirstBuckets);
  // Buckets with a number, forgotten ones included.
  size_t used_ = 0;
};

}  // namespace perceptrond::client
