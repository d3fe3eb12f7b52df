// NameStore: the names that a BatchBuilder has seen, each with a number of its own, and whether each
// is in the message that is built. It outlives messages, so that frequent names are found again
// without being checked or stored again.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/name_index.h"

namespace perceptrond::client {

class NameStore {
 public:
  static constexpr uint32_t kNone = NameIndex::kNone;

  // A name of at most 16 bytes is found by its record alone. 32 bytes.
  struct alignas(32) Record {
    NameKey key;
    uint32_t begin = 0;
    uint32_t size = 0;
    // The row that had it last, and the message, as its owner counts them.
    uint32_t row = 0;
    uint32_t message = 0;
  };

  // How many names there are; their numbers are below.
  size_t size() const { return records_.size(); }
  Record& record(uint32_t number) { return records_[number]; }
  std::string_view name(uint32_t number) const {
    const Record& record = records_[number];
    return std::string_view(text_.data() + record.begin, record.size);
  }

  // Whether it is so large that names which are no longer used should be forgotten.
  bool IsLarge() const { return size() > kMostNames || text_.size() > kMostBytes; }
  // Forgets all names.
  void Clear() {
    index_.Clear();
    records_.clear();
    text_.clear();
  }

  // Prefetch() and then Guess() start to load what Find() needs, each before the other names of a
  // row; Find() takes the result of Guess().
  void Prefetch(uint32_t hash) const { index_.Prefetch(hash); }
  uint32_t Guess(uint32_t hash) const {
    const uint32_t number = index_.Guess(hash);
    if (number != kNone) __builtin_prefetch(&records_[number]);
    return number;
  }
  // The number of the name with this key and hash; kNone if there is none. O(name).
  uint32_t Find(std::string_view name, NameKey key, uint32_t hash, uint32_t guess) const {
    // What no other hash precedes is not there at all.
    if (guess == kNone) return kNone;
    const auto is_name = [&](uint32_t number) {
      const Record& record = records_[number];
      return record.key == key && record.size == name.size() &&
             (name.size() <= NameKey::kBytes || this->name(number) == name);
    };
    return is_name(guess) ? guess : index_.Find(hash, 0, static_cast<uint32_t>(size()), is_name);
  }
  // Adds a name that Find() did not find, and returns its number.
  uint32_t Add(std::string_view name, NameKey key, uint32_t hash) {
    const auto number = static_cast<uint32_t>(size());
    index_.Insert(hash, number, 0);
    Record& record = records_.emplace_back();
    record.key = key;
    record.begin = static_cast<uint32_t>(text_.size());
    record.size = static_cast<uint32_t>(name.size());
    text_.append(name);
    return number;
  }

 private:
  static constexpr size_t kMostNames = 1 << 18;
  static constexpr size_t kMostBytes = 16 << 20;

  NameIndex index_;
  std::vector<Record> records_;
  std::string text_;
};

}  // namespace perceptrond::client
