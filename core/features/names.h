// From names to weights: in a hashed space the name's hash says which weight (the hashing trick:
// Weinberger et al., Feature Hashing for Large Scale Multitask Learning, 2009), in a named space
// the model's dictionary does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"
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

// Whether two names are equal. They are so short that a call of memcmp takes longer.
inline bool IsSameName(absl::string_view a, absl::string_view b) {
  const size_t size = a.size();
  if (size != b.size()) return false;
  if (size < 4 || size > 16) return a == b;
  // Two words, which may overlap.
  const auto are_same = [&](auto x, auto y) {
    bool differ = false;
    for (const size_t at : {size_t{0}, size - sizeof(x)}) {
      std::memcpy(&x, a.data() + at, sizeof(x));
      std::memcpy(&y, b.data() + at, sizeof(y));
      differ |= x != y;
    }
    return !differ;
  };
  return size < 8 ? are_same(uint32_t{0}, uint32_t{0}) : are_same(uint64_t{0}, uint64_t{0});
}

// A name and its HashName, so that it is hashed once however often it is looked up.
struct HashedName {
  absl::string_view name;
  uint64_t hash = 0;
};

// The names that a model in a named space has weights for, numbered from 1 in the order they
// came; 0 stands for every other name. Only grows. Not thread-safe: concurrent reads are fine, Add
// excludes everything.
//
// A name takes its bytes, 6 for its number and length, 8 to be found by its number, and 10 to 21 to
// be found by its bytes.
class Dictionary {
 public:
  static constexpr uint32_t kUnknown = 0;

  Dictionary();
  Dictionary(Dictionary&&) = default;
  Dictionary& operator=(Dictionary&&) = default;

  // The name's number, or kUnknown. O(1) expected.
  uint32_t Find(absl::string_view name) const { return Find({name, HashName(name)}); }
  uint32_t Find(const HashedName& name) const;
  // Fetches what Find will read first, and what it will read then. A caller with many names does
  // both some names ahead, the second when the first has arrived.
  void Prefetch(const HashedName& name) const { records_.prefetch(name); }
  void PrefetchRecord(const HashedName& name) const { records_.find(Candidate{name.hash}); }
  // Gives the name, of at most kMaxNameBytes, the next number and returns it. The name must be new.
  // O(1) expected.
  uint32_t Add(absl::string_view name);
  // Of a number from 1 to size(). Valid as long as the dictionary.
  absl::string_view Name(uint32_t number) const { return NameOf(by_number_[number - 1]); }
  // How many names there are; the next one gets size() + 1.
  uint32_t size() const { return static_cast<uint32_t>(by_number_.size()); }
  // Memory held. O(1).
  size_t bytes() const;
  // Differs between any two dictionaries that were ever made.
  uint64_t id() const { return id_; }

 private:
  // A record is the name's number, the length of the name, and the name.
  using Record = const char*;
  static constexpr size_t kNumberBytes = sizeof(uint32_t);
  static constexpr size_t kHeaderBytes = kNumberBytes + sizeof(uint16_t);

  // Equals the first record whose hash is similar, which is then fetched but not read.
  struct Candidate {
    uint64_t hash = 0;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(Candidate candidate) const { return candidate.hash; }
    size_t operator()(Record record) const { return HashName(NameOf(record)); }
    size_t operator()(const HashedName& name) const { return name.hash; }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(Record a, Record b) const { return a == b; }
    bool operator()(Record a, const HashedName& b) const { return IsSameName(NameOf(a), b.name); }
    bool operator()(const HashedName& a, Record b) const { return IsSameName(a.name, NameOf(b)); }
    bool operator()(Record a, Candidate /*b*/) const {
      __builtin_prefetch(a);
      return true;
    }
    bool operator()(Candidate a, Record b) const { return (*this)(b, a); }
  };

  static absl::string_view NameOf(Record record) {
    uint16_t size = 0;
    std::memcpy(&size, record + kNumberBytes, sizeof(size));
    return {record + kHeaderBytes, size};
  }
  // Room for a record.
  char* Allocate(size_t bytes);

  uint64_t id_;
  // Blocks of records, each twice as large as the one before it up to a limit.
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_bytes_ = 0;
  size_t block_used_ = 0;
  size_t all_blocks_bytes_ = 0;
  std::vector<Record> by_number_;
  absl::flat_hash_set<Record, Hash, Equal> records_;
};

}  // namespace perceptrond
