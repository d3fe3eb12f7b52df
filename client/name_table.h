// NameTable: the client's copy of a stream's table of names (ExampleColumns.stream_names). Each name
// appended has the number of names appended before it; the table holds the latest ones.
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

class NameTable {
 public:
  // `size`: how many names the server's table holds, a power of two of at least 4; or 0: none.
  explicit NameTable(uint32_t size = 0) : size_(size) {}

  uint32_t size() const { return size_; }
  // How many names a message may append at most, so that no name that it uses leaves the table
  // before its end: a quarter of the size.
  uint32_t most_appended() const { return size_ / 4; }
  // Whether a message with this many names can use the table. False also once the numbers, of 32
  // bits, are used up.
  bool HasRoomFor(size_t names) const {
    return names <= most_appended() && next_ < NameIndex::kNone - most_appended();
  }

  // Call before the first name of each message.
  void StartMessage() {
    const uint32_t kept = size_ - most_appended();
    oldest_ = next_ < kept ? 0 : next_ - kept;
  }

  struct Numbered {
    uint32_t number;
    // The name was not in the table, or would have left it before the end of the message: the
    // message appends it.
    bool appended;
  };
  // The number of a name. At most most_appended() calls a message may append. O(name).
  Numbered Number(std::string_view name) {
    const uint32_t hash = NameIndex::Hash(name);
    const uint32_t known = index_.Find(hash, oldest_, next_, [&](uint32_t candidate) {
      return names_[candidate % size_] == name;
    });
    if (known != NameIndex::kNone) return {known, false};
    index_.Insert(hash, next_, oldest_);
    if (names_.size() < size_) {
      names_.emplace_back(name);
    } else {
      names_[next_ % size_] = name;
    }
    return {next_++, true};
  }

 private:
  uint32_t size_;
  // The name with number n is at n modulo size_.
  std::vector<std::string> names_;
  NameIndex index_;
  // The next number, and the oldest one that this message may use.
  uint32_t next_ = 0;
  uint32_t oldest_ = 0;
};

}  // namespace perceptrond::client
