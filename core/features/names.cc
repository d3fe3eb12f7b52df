#include "core/features/names.h"

// Compiled in place: names are short.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/features/byte_hash.h"

namespace perceptrond {
namespace {

constexpr size_t kFirstBlockBytes = 1 << 8;
constexpr size_t kLargestBlockBytes = 1 << 16;

uint64_t NextId() {
  static std::atomic<uint64_t> next = 1;
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

uint64_t HashName(absl::string_view name) { return XXH3_64bits(name.data(), name.size()); }

uint64_t HashBytes(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

struct ByteHash::State {
  // Zeroed, since a reset reads the seed.
  XXH3_state_t hash = {};
};

ByteHash::ByteHash(uint64_t seed) : state_(std::make_unique<State>()) {
  XXH3_64bits_reset_withSeed(&state_->hash, seed);
}
ByteHash::~ByteHash() = default;

void ByteHash::Add(absl::string_view bytes) {
  XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
}

uint64_t ByteHash::Value() const { return XXH3_64bits_digest(&state_->hash); }

Dictionary::Dictionary() : id_(NextId()) {}

uint32_t Dictionary::Find(const HashedName& name) const {
  const auto found = records_.find(name);
  if (found == records_.end()) return kUnknown;
  uint32_t number = 0;
  std::memcpy(&number, *found, sizeof(number));
  return number;
}

uint32_t Dictionary::Add(absl::string_view name) {
  const uint32_t number = size() + 1;
  const auto length = static_cast<uint16_t>(name.size());
  char* const record = Allocate(kHeaderBytes + name.size());
  std::memcpy(record, &number, sizeof(number));
  std::memcpy(record + kNumberBytes, &length, sizeof(length));
  std::copy(name.begin(), name.end(), record + kHeaderBytes);
  by_number_.push_back(record);
  records_.insert(record);
  return number;
}

char* Dictionary::Allocate(size_t bytes) {
  if (block_used_ + bytes > block_bytes_) {
    const size_t twice = std::clamp(2 * block_bytes_, kFirstBlockBytes, kLargestBlockBytes);
    block_bytes_ = std::max(twice, bytes);
    block_used_ = 0;
    all_blocks_bytes_ += block_bytes_;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_bytes_));
  }
  char* const room = blocks_.back().get() + block_used_;
  block_used_ += bytes;
  return room;
}

size_t Dictionary::bytes() const {
  // The set has a byte of its own for each place.
  return all_blocks_bytes_ + by_number_.capacity() * sizeof(Record) +
         records_.capacity() * (sizeof(Record) + 1);
}

}  // namespace perceptrond
