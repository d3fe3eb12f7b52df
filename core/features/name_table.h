// The names that the indices of a batch stand for, and where the weights of these names are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/features/names.h"
#include "core/vector/check.h"

namespace perceptrond {

// Which serial number has a key: an open hash table that is emptied in O(1), by using higher serial
// numbers from then on. Not thread-safe.
class SerialSet {
 public:
  // Empties it, with room for `count` serials.
  void Reset(size_t count);
  // How many serials may be added between two times that it is emptied.
  size_t room() const { return slots_.size() / 2; }
  // Fetches what FindOrAdd will read.
  void Prefetch(uint32_t key) const { __builtin_prefetch(&slots_[First(key)], 1); }
  // Whether a key has a serial for which same(serial) is true, from `first` on: returns that, or 0
  // and adds the new one. With kReplace the key has the new one from then on in any case. O(1)
  // expected.
  template <bool kReplace, typename Same>
  uint32_t FindOrAdd(uint32_t key, uint32_t serial, uint32_t first, const Same& same);
  // The same, but adds nothing.
  template <typename Same>
  uint32_t Find(uint32_t key, uint32_t first, const Same& same) const;

 private:
  struct Slot {
    uint32_t key = 0;
    // Below `first`: the slot is empty.
    uint32_t serial = 0;
  };
  // Where the search for a key begins. Keys may be slots, whose neighbours are keys too.
  size_t First(uint32_t key) const { return (key * 0x9e3779b1U) & (slots_.size() - 1); }

  std::vector<Slot> slots_;
};

// Names by number, from 0 on in the order in which they were appended. A table of one message
// begins anew with each message (Clear). A table of a stream keeps the latest names: as many as its
// capacity. A name that is appended again has its new number alone.
//
// The table resolves each of its names once, for the space that it is bound to: to a slot of a
// hashed space, or to a number of a dictionary.
//
// Not thread-safe. Names of a message's table are views of what was appended.
class NameTable {
 public:
  // The most names of a stream's table.
  static constexpr uint32_t kMaxCapacity = 1U << 18;

  // capacity: a power of two up to kMaxCapacity for a stream's table; 0 for a message's.
  explicit NameTable(uint32_t capacity = 0) : capacity_(capacity) {}
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  // ---- Names ----

  // Removes all names, of a message's table. O(1).
  void Clear();
  // Appends the names that `text` holds one after the other. A message's table keeps a view of it,
  // a stream's takes a copy. An error (kBadName, kMalformedColumns), whose field is "", ".text" or
  // ".lengths[i]", changes nothing: lengths that do not add up to the text, names of 0 or more than
  // kMaxNameBytes bytes, names that begin within a character, more names than a stream's table
  // holds. O(names).
  ValidationError Append(absl::string_view text, std::span<const uint32_t> lengths);
  // Writes the numbers of names of a message's table, which appends those that are new. It keeps
  // views of them. A table of a message has names of this or of Append, not both. O(the names).
  void Intern(std::span<const absl::string_view> names, uint32_t* numbers);

  // The names that the table has: numbers from begin() to end() - 1.
  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }
  absl::string_view name(uint32_t number) const { return entry(number).name; }
  uint64_t hash(uint32_t number) const { return entry(number).hash; }
  // Approximate; of a stream's table with the text of its names. O(1).
  size_t memory_bytes() const {
    return entries_.size() * (sizeof(Entry) + 5 * sizeof(uint32_t)) + text_bytes_;
  }

  // ---- Weights ----

  // A row's names, resolved.
  enum class Mapping : uint8_t {
    kDistinct,
    // Two of them have the same slot.
    kShared,
    // One of the numbers is of a name that was appended again: its index means nothing.
    kOutdated,
  };

  // Binds the table to a hashed space of this many slots. O(names appended since), or O(names) if
  // the table was bound to another space.
  void BindToSlots(uint32_t slots);
  // Binds it to a dictionary. Returns whether names may resolve otherwise than before. Costs as
  // BindToSlots.
  bool BindTo(const Dictionary& dictionary);
  // Notes that the dictionary it is bound to has given the name this number.
  void SetNumber(uint32_t number, uint32_t dictionary_number);

  // Writes where the weights of a row's names, which the table has, are: slots, or numbers of the
  // dictionary and Dictionary::kUnknown, as of the latest binding. O(numbers).
  Mapping Map(std::span<const uint32_t> numbers, uint32_t* indices);
  // Where the weight of one name is.
  uint32_t Index(uint32_t number) const { return indices_[at(number)] & kIndexMask; }

 private:
  struct Entry {
    absl::string_view name;
    uint64_t hash = 0;
  };
  // Names appended together to a stream's table.
  struct Block {
    std::string text;
    uint32_t end = 0;
  };
  enum class Space : uint8_t { kNone, kSlots, kDictionary };

  // In indices_, besides the index: the name was appended again, and its entry has it no more; and
  // another name of the table has the same slot.
  static constexpr uint32_t kOutdatedFlag = 1U << 31;
  static constexpr uint32_t kSharedFlag = 1U << 30;
  static constexpr uint32_t kIndexMask = kSharedFlag - 1;

  size_t at(uint32_t number) const { return number & mask_; }
  const Entry& entry(uint32_t number) const { return entries_[at(number)]; }
  // Whether the name was appended again.
  bool IsOutdated(uint32_t number) const { return entry(number).name.empty(); }
  ValidationError CheckNames(absl::string_view text, std::span<const uint32_t> lengths) const;
  void Reserve(size_t names);
  void AppendOne(absl::string_view name, uint64_t hash);
  void RemoveOldest(uint32_t count);
  // Makes room in keys_ for names that are resolved next.
  void PrepareKeys();
  // Whether it is bound to this space already. If not, nothing is resolved any more.
  bool Rebind(Space space, uint64_t id);
  uint32_t SlotOf(uint32_t number) const {
    return static_cast<uint32_t>(hash(number)) & slot_mask_;
  }
  // What keys_ knows the name by: its slot, or other bits of its hash.
  uint32_t KeyOf(uint32_t number) const;
  // Enters the name in keys_, and flags names that have its key and itself, or the same name before
  // it.
  void AddKey(uint32_t number);
  void MarkOutdated(uint32_t number);
  void MarkShared(uint32_t number);
  // Resolves names that the dictionary has since it had `size`.
  void ResolveNew(const Dictionary& dictionary, uint32_t size);

  const uint32_t capacity_;
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
  // Rings by number.
  std::vector<Entry> entries_;
  std::vector<uint32_t> indices_;
  uint32_t mask_ = 0;
  std::deque<Block> blocks_;
  // Of blocks_.
  size_t text_bytes_ = 0;
  // The serial of number 0 in the sets.
  uint32_t first_serial_ = 1;
  // By hash: the names of Intern.
  SerialSet interned_;
  std::vector<uint64_t> interned_hashes_;
  bool interns_ = false;

  Space space_ = Space::kNone;
  // Of the slots or the dictionary.
  uint64_t space_id_ = 0;
  uint32_t slot_mask_ = 0;
  uint32_t dictionary_size_ = 0;
  // Names below it are resolved.
  uint32_t resolved_ = 0;
  // Resolved names by slot, or by hash.
  SerialSet keys_;
  // When keys_ was emptied last: names from here on were added since.
  uint32_t keys_begin_ = 0;
  // The newest number of each name that shares its slot, by its hash.
  absl::flat_hash_map<uint64_t, uint32_t> shared_names_;
  // The slots of a row's names that share theirs with others.
  std::vector<uint32_t> shared_slots_;
};

}  // namespace perceptrond
