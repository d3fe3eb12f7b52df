// NameStore: the names that a BatchBuilder has seen, each with a number of its own, and whether
// each is in the message that is built. It outlives messages, so that frequent names are found
// again without being checked or stored again.
//
// An open-addressed table with linear probing: a name takes 55 to 107 bytes besides its text and,
// where the table is in no cache, one miss.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/name_key.h"

namespace perceptrond::client {

class NameStore {
 public:
  // A name of at most 16 bytes is found by its record alone. 32 bytes, all in one line of a cache.
  struct alignas(32) Record {
    NameKey key;
    // 0: the record is empty.
    uint32_t size = 0;
    uint32_t number = 0;
    // The row that had it last, and the message, as its owner counts them.
    uint32_t row = 0;
    uint32_t message = 0;
  };

  // How many names there are; their numbers are below.
  size_t size() const { return begins_.size(); }

  // Whether it is so large that names which are no longer used should be forgotten.
  bool IsLarge() const { return size() > kMostNames || text_.size() > kMostBytes; }
  // Forgets all names.
  void Clear() {
    records_.assign(kLeastRecords, Record{});
    begins_.clear();
    text_.clear();
  }

  // Starts to load what Find() will need.
  void Prefetch(uint32_t hash) const { __builtin_prefetch(&records_[Home(hash)], 1); }

  // The record of the name with this key and hash, valid until the next Add(); null if there is
  // none.
  Record* Find(std::string_view name, NameKey key, uint32_t hash) {
    for (size_t i = Home(hash);; i = Next(i)) {
      Record& record = records_[i];
      if (record.key == key && record.size == name.size() && record.size != 0 &&
          (name.size() <= NameKey::kBytes || TextOf(record) == name)) {
        return &record;
      }
      if (record.size == 0) return nullptr;
    }
  }

  // Adds a name that Find() did not find, which is not empty.
  Record* Add(std::string_view name, NameKey key, uint32_t hash) {
    if (8 * (size() + 1) > 5 * records_.size()) Grow();
    Record* const record = FirstEmpty(hash);
    record->key = key;
    record->size = static_cast<uint32_t>(name.size());
    record->number = static_cast<uint32_t>(size());
    begins_.push_back(static_cast<uint32_t>(text_.size()));
    text_.append(name);
    return record;
  }

 private:
  static constexpr size_t kMostNames = 1 << 18;
  static constexpr size_t kMostBytes = 16 << 20;
  static constexpr size_t kLeastRecords = 64;

  size_t Home(uint32_t hash) const { return hash & (records_.size() - 1); }
  size_t Next(size_t i) const { return (i + 1) & (records_.size() - 1); }
  std::string_view TextOf(const Record& record) const {
    return std::string_view(text_.data() + begins_[record.number], record.size);
  }

  Record* FirstEmpty(uint32_t hash) {
    size_t i = Home(hash);
    while (records_[i].size != 0) i = Next(i);
    return &records_[i];
  }

  void Grow() {
    std::vector<Record> before(2 * records_.size());
    before.swap(records_);
    for (const Record& record : before) {
      if (record.size != 0) *FirstEmpty(HashName(TextOf(record), record.key)) = record;
    }
  }

  // A power of two.
  std::vector<Record> records_ = std::vector<Record>(kLeastRecords);
  // Where each name is in text_.
  std::vector<uint32_t> begins_;
  std::string text_;
};

}  // namespace perceptrond::client
