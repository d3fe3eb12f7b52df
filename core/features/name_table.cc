#include "core/features/name_table.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/vector/name.h"
#include "core/vector/simd.h"

namespace perceptrond {
namespace {

// How many names ahead of the one that is read are fetched.
constexpr uint32_t kAhead = 8;
constexpr size_t kMinNames = 64;

ValidationError Malformed(std::string field, std::string description) {
  return {ValidationCode::kMalformedColumns, std::move(field), std::move(description)};
}

// The bits of a hash that keys_ and interned_ use; slots are its low bits.
uint32_t Key(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

// Whether two are the same. May sort them.
bool HasTwins(std::span<uint32_t> slots) {
  // So few that to compare each with each is fastest.
  constexpr size_t kFew = 12;
  if (slots.size() <= kFew) {
    for (size_t i = 1; i < slots.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (slots[i] == slots[j]) return true;
      }
    }
    return false;
  }
  std::sort(slots.begin(), slots.end());
  return std::adjacent_find(slots.begin(), slots.end()) != slots.end();
}

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

void SerialSet::Reset(size_t count) {
  slots_.assign(2 * std::bit_ceil(std::max(count, kMinNames)), {});
}

template <bool kReplace, typename Same>
uint32_t SerialSet::FindOrAdd(uint32_t key, uint32_t serial, uint32_t first, const Same& same) {
  const size_t mask = slots_.size() - 1;
  for (size_t i = First(key);; i = (i + 1) & mask) {
    Slot& slot = slots_[i];
    if (slot.serial < first) {
      slot = {key, serial};
      return 0;
    }
    if (slot.key != key || !same(slot.serial)) continue;
    const uint32_t found = slot.serial;
    if (kReplace) slot.serial = serial;
    return found;
  }
}

template <typename Same>
uint32_t SerialSet::Find(uint32_t key, uint32_t first, const Same& same) const {
  if (slots_.empty()) return 0;
  for (size_t i = First(key);; i = (i + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[i];
    if (slot.serial < first) return 0;
    if (slot.key == key && same(slot.serial)) return slot.serial;
  }
}

void NameTable::Clear() {
  // Far from the end of serial numbers.
  if (first_serial_ > (1U << 30)) {
    first_serial_ = 1;
    interned_.Reset(interned_.room());
    keys_.Reset(keys_.room());
  } else {
    first_serial_ += end_;
  }
  begin_ = end_ = resolved_ = keys_begin_ = 0;
  shared_names_.clear();
  interns_ = false;
}

void NameTable::Reserve(size_t names) {
  // A stream's table grows up to its capacity, before any of its names is removed.
  if (names <= entries_.size() || (capacity_ > 0 && entries_.size() == capacity_)) return;
  size_t room = std::bit_ceil(std::max(names, kMinNames));
  if (capacity_ > 0) room = std::min<size_t>(room, capacity_);
  entries_.resize(room);
  indices_.resize(room);
  mask_ = static_cast<uint32_t>(room - 1);
}

ValidationError NameTable::CheckNames(absl::string_view text,
                                      std::span<const uint32_t> lengths) const {
  if (capacity_ > 0 && lengths.size() > capacity_) {
    return Malformed("", absl::StrCat(lengths.size(), " names; the table holds ", capacity_));
  }
  if (lengths.size() >= uint64_t{UINT32_MAX} - end_)
    return Malformed("", "the table has given every number there is; open another stream");
  size_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0 || lengths[i] > kMaxNameBytes) {
      return {ValidationCode::kBadName, absl::StrCat(".lengths[", i, "]"),
              absl::StrCat("is ", lengths[i], "; a name has 1 to ", kMaxNameBytes, " bytes")};
    }
    if (begin >= text.size()) break;
    if (ContinuesCharacter(text[begin])) {
      return {ValidationCode::kBadName, absl::StrCat(".lengths[", i, "]"),
              "the name begins within a character of UTF-8"};
    }
    begin += lengths[i];
  }
  uint64_t total = 0;
  for (const uint32_t length : lengths) total += length;
  if (total == text.size()) return {};
  return Malformed(".lengths", absl::StrCat("the lengths add up to ", total, ", the text has ",
                                            text.size(), " bytes"));
}

ValidationError NameTable::Append(absl::string_view text, std::span<const uint32_t> lengths) {
  if (ValidationError error = CheckNames(text, lengths)) return error;
  if (lengths.empty()) return {};
  Reserve(end_ + lengths.size());
  if (capacity_ > 0) {
    blocks_.push_back({std::string(text), end_ + static_cast<uint32_t>(lengths.size())});
    text = blocks_.back().text;
    text_bytes_ += sizeof(Block) + text.size();
    const uint32_t after = blocks_.back().end;
    if (after - begin_ > capacity_) RemoveOldest(after - begin_ - capacity_);
  }
  for (const uint32_t length : lengths) {
    const absl::string_view name = text.substr(0, length);
    AppendOne(name, HashName(name));
    text.remove_prefix(length);
  }
  return {};
}

void NameTable::AppendOne(absl::string_view name, uint64_t hash) {
  entries_[at(end_)] = {name, hash};
  indices_[at(end_)] = Dictionary::kUnknown;
  ++end_;
}

void NameTable::RemoveOldest(uint32_t count) {
  begin_ += count;
  // Names that were never read.
  resolved_ = std::max(resolved_, std::min(begin_, end_));
  for (; blocks_.front().end <= begin_; blocks_.pop_front())
    text_bytes_ -= sizeof(Block) + blocks_.front().text.size();
}

void NameTable::Intern(std::span<const absl::string_view> names, uint32_t* numbers) {
  interns_ = true;
  Reserve(end_ + names.size());
  const auto never = [](uint32_t /*serial*/) { return false; };
  if (end_ + names.size() > interned_.room()) {
    interned_.Reset(2 * (end_ + names.size()));
    for (uint32_t i = 0; i < end_; ++i)
      interned_.FindOrAdd<false>(Key(entry(i).hash), first_serial_ + i, 1, never);
  }
  if (interned_hashes_.size() < names.size()) interned_hashes_.resize(2 * names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    interned_hashes_[i] = HashName(names[i]);
    interned_.Prefetch(Key(interned_hashes_[i]));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const uint64_t hash = interned_hashes_[i];
    const auto same = [&](uint32_t serial) {
      const Entry& other = entry(serial - first_serial_);
      return other.hash == hash && IsSameName(other.name, names[i]);
    };
    const uint32_t found =
        interned_.FindOrAdd<false>(Key(hash), first_serial_ + end_, first_serial_, same);
    numbers[i] = found != 0 ? found - first_serial_ : end_;
    if (found == 0) AppendOne(names[i], hash);
  }
}

bool NameTable::Rebind(Space space, uint64_t id) {
  if (space == space_ && id == space_id_) return true;
  space_ = space;
  space_id_ = id;
  resolved_ = begin_;
  for (uint32_t i = begin_; i != end_; ++i)
    indices_[at(i)] = IsOutdated(i) ? kOutdatedFlag : Dictionary::kUnknown;
  if (!entries_.empty()) keys_.Reset(entries_.size());
  keys_begin_ = begin_;
  shared_names_.clear();
  return false;
}

void NameTable::PrepareKeys() {
  if (end_ - keys_begin_ <= keys_.room()) return;
  // Of a stream's table, names that it has no more make room.
  keys_.Reset(2 * entries_.size());
  keys_begin_ = begin_;
  shared_names_.clear();
  for (uint32_t i = begin_; i != resolved_; ++i) {
    if (!IsOutdated(i)) AddKey(i);
  }
}

uint32_t NameTable::KeyOf(uint32_t number) const {
  return space_ == Space::kSlots ? SlotOf(number) : Key(hash(number));
}

void NameTable::AddKey(uint32_t number) {
  if (end_ - number > kAhead) keys_.Prefetch(KeyOf(number + kAhead));
  const auto same = [&](uint32_t serial) {
    const uint32_t other = serial - first_serial_;
    return other >= begin_ && (space_ == Space::kSlots || name(other) == name(number));
  };
  const uint32_t found = keys_.FindOrAdd<true>(KeyOf(number), first_serial_ + number,
                                               first_serial_ + keys_begin_, same);
  if (found == 0) return;
  const uint32_t other = found - first_serial_;
  if (name(other) == name(number)) {
    // Names that share its slot share that of the new number.
    const bool shares = (indices_[at(other)] & kSharedFlag) != 0;
    MarkOutdated(other);
    if (shares) MarkShared(number);
  } else {
    MarkShared(other);
    MarkShared(number);
  }
}

void NameTable::MarkOutdated(uint32_t number) {
  indices_[at(number)] = kOutdatedFlag;
  entries_[at(number)].name = {};
}

// keys_ has only the latest of the names that share a slot.
void NameTable::MarkShared(uint32_t number) {
  indices_[at(number)] |= kSharedFlag;
  const auto [shared, is_new] = shared_names_.emplace(hash(number), number);
  if (is_new || shared->second == number) return;
  const uint32_t other = std::exchange(shared->second, number);
  if (other >= begin_ && name(other) == name(number)) MarkOutdated(other);
}

void NameTable::BindToSlots(uint32_t slots) {
  slot_mask_ = slots - 1;
  Rebind(Space::kSlots, slots);
  if (resolved_ == end_) return;
  PrepareKeys();
  for (uint32_t i = resolved_; i != end_; ++i) {
    if (IsOutdated(i)) continue;
    indices_[at(i)] = SlotOf(i);
    AddKey(i);
  }
  resolved_ = end_;
}

bool NameTable::BindTo(const Dictionary& dictionary) {
  const bool same = Rebind(Space::kDictionary, dictionary.id());
  const uint32_t size = std::exchange(dictionary_size_, dictionary.size());
  const bool grown = !same || size != dictionary.size();
  if (same && grown) ResolveNew(dictionary, size);
  if (resolved_ == end_) return grown;
  const auto hashed = [&](uint32_t i) { return HashedName{entry(i).name, entry(i).hash}; };
  if (!interns_) PrepareKeys();
  for (uint32_t i = resolved_; i < end_ && i - resolved_ < 2 * kAhead; ++i)
    dictionary.Prefetch(hashed(i));
  for (uint32_t i = resolved_; i < end_ && i - resolved_ < kAhead; ++i)
    dictionary.PrefetchRecord(hashed(i));
  for (uint32_t i = resolved_; i != end_; ++i) {
    if (end_ - i > 2 * kAhead) dictionary.Prefetch(hashed(i + 2 * kAhead));
    if (end_ - i > kAhead) dictionary.PrefetchRecord(hashed(i + kAhead));
    if (IsOutdated(i)) continue;
    indices_[at(i)] = dictionary.Find(hashed(i));
    if (!interns_) AddKey(i);
  }
  resolved_ = end_;
  return true;
}

void NameTable::ResolveNew(const Dictionary& dictionary, uint32_t size) {
  const SerialSet& set = interns_ ? interned_ : keys_;
  for (uint32_t number = size + 1; number <= dictionary.size(); ++number) {
    const absl::string_view added = dictionary.Name(number);
    const auto same = [&](uint32_t serial) {
      const uint32_t other = serial - first_serial_;
      return other >= begin_ && name(other) == added;
    };
    const uint32_t found = set.Find(Key(HashName(added)), first_serial_ + keys_begin_, same);
    // Names that are not resolved yet are looked up later.
    if (found != 0 && found - first_serial_ < resolved_)
      indices_[at(found - first_serial_)] |= number;
  }
}

void NameTable::SetNumber(uint32_t number, uint32_t dictionary_number) {
  indices_[at(number)] = dictionary_number;
  dictionary_size_ = std::max(dictionary_size_, dictionary_number);
}

NameTable::Mapping NameTable::Map(std::span<const uint32_t> numbers, uint32_t* indices) {
  // Without names there are no numbers to look up.
  if (numbers.empty()) return Mapping::kDistinct;
  const size_t room = numbers.size() + simd::kMostLanes;
  if (shared_slots_.size() < room) shared_slots_.resize(2 * room);
  const simd::LookedUp found =
      simd::Best().look_up({indices_.data(), mask_, kIndexMask, kSharedFlag}, numbers.data(),
                           numbers.size(), indices, shared_slots_.data());
  if ((found.bits & kOutdatedFlag) != 0) return Mapping::kOutdated;
  return HasTwins(std::span(shared_slots_).first(found.flagged)) ? Mapping::kShared
                                                                 : Mapping::kDistinct;
}

}  // namespace perceptrond
