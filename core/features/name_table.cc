#include "core/features/name_table.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "core/vector/name.h"

namespace perceptrond {
namespace {

// Names are looked up so many ahead of the one that is read.
constexpr uint32_t kAhead = 8;
constexpr size_t kMinNames = 64;

ValidationError Malformed(std::string field, std::string description) {
  return {ValidationCode::kMalformedColumns, std::move(field), std::move(description)};
}

// The bits of a hash that keys_ and interned_ use; slots are its low bits.
uint32_t Key(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

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
  interns_ = false;
}

void NameTable::Reserve(size_t names) {
  if (capacity_ > 0 ? !entries_.empty() : names <= entries_.size()) return;
  const size_t room = capacity_ > 0 ? capacity_ : std::bit_ceil(std::max(names, kMinNames));
  entries_.resize(room);
  indices_.resize(room);
  looked_up_.resize(room);
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
  indices_[at(end_)] = kUnknownFlag;
  ++end_;
}

void NameTable::RemoveOldest(uint32_t count) {
  begin_ += count;
  // Names that were never read.
  resolved_ = std::max(resolved_, std::min(begin_, end_));
  while (blocks_.front().end <= begin_) blocks_.pop_front();
}

uint32_t NameTable::Intern(absl::string_view name) {
  const uint64_t hash = HashName(name);
  interns_ = true;
  Reserve(end_ + 1);
  const auto same = [&](uint32_t serial) {
    const Entry& other = entry(serial - first_serial_);
    return other.hash == hash && other.name == name;
  };
  const auto never = [](uint32_t /*serial*/) { return false; };
  if (end_ >= interned_.room()) {
    interned_.Reset(2 * size_t{end_});
    for (uint32_t i = 0; i < end_; ++i)
      interned_.FindOrAdd<false>(Key(entry(i).hash), first_serial_ + i, 1, never);
  }
  const uint32_t found =
      interned_.FindOrAdd<false>(Key(hash), first_serial_ + end_, first_serial_, same);
  if (found != 0) return found - first_serial_;
  AppendOne(name, hash);
  return end_ - 1;
}

bool NameTable::Rebind(Space space, uint64_t id) {
  if (space == space_ && id == space_id_) return true;
  space_ = space;
  space_id_ = id;
  resolved_ = begin_;
  for (uint32_t i = begin_; i != end_; ++i)
    indices_[at(i)] = IsOutdated(i) ? kSharedFlag : kUnknownFlag;
  if (!entries_.empty()) keys_.Reset(entries_.size());
  keys_begin_ = begin_;
  return false;
}

void NameTable::PrepareKeys() {
  if (end_ - keys_begin_ <= keys_.room()) return;
  // Of a stream's table, names that it has no more make room.
  keys_.Reset(2 * entries_.size());
  keys_begin_ = begin_;
  for (uint32_t i = begin_; i != resolved_; ++i) {
    if (!IsOutdated(i)) FlagShared(i);
  }
}

uint32_t NameTable::KeyOf(uint32_t number) const {
  return space_ == Space::kSlots ? SlotOf(number) : Key(hash(number));
}

void NameTable::FlagShared(uint32_t number) {
  if (end_ - number > kAhead) keys_.Prefetch(KeyOf(number + kAhead));
  const auto same = [&](uint32_t serial) { return serial - first_serial_ >= begin_; };
  const uint32_t found = keys_.FindOrAdd<true>(KeyOf(number), first_serial_ + number,
                                               first_serial_ + keys_begin_, same);
  if (found == 0) return;
  const uint32_t other = found - first_serial_;
  if (capacity_ > 0 && name(other) == name(number)) {
    entries_[at(other)].name = {};
    // Names that share its key share that of the new number.
    indices_[at(number)] |= indices_[at(other)] & kSharedFlag;
  } else {
    indices_[at(number)] |= kSharedFlag;
  }
  indices_[at(other)] |= kSharedFlag;
}

void NameTable::BindToSlots(uint32_t slots) {
  slot_mask_ = slots - 1;
  Rebind(Space::kSlots, slots);
  if (resolved_ == end_) return;
  PrepareKeys();
  for (uint32_t i = resolved_; i != end_; ++i) {
    if (IsOutdated(i)) continue;
    indices_[at(i)] = SlotOf(i);
    FlagShared(i);
  }
  resolved_ = end_;
}

bool NameTable::BindTo(const Dictionary& dictionary) {
  const bool same = Rebind(Space::kDictionary, dictionary.id());
  const bool grown = !same || dictionary_size_ != dictionary.size();
  // Names that were unknown may have numbers now.
  if (grown) ++epoch_;
  dictionary_size_ = dictionary.size();
  if (resolved_ == end_) return grown;
  const auto hashed = [&](uint32_t i) { return HashedName{entry(i).name, entry(i).hash}; };
  if (!interns_) PrepareKeys();
  for (uint32_t i = resolved_; i < end_ && i - resolved_ < kAhead; ++i)
    dictionary.Prefetch(hashed(i));
  for (uint32_t i = resolved_; i != end_; ++i) {
    if (end_ - i > kAhead) dictionary.Prefetch(hashed(i + kAhead));
    if (IsOutdated(i)) continue;
    const uint32_t number = dictionary.Find(hashed(i));
    indices_[at(i)] = number == Dictionary::kUnknown ? kUnknownFlag : number;
    looked_up_[at(i)] = epoch_;
    if (!interns_) FlagShared(i);
  }
  resolved_ = end_;
  return true;
}

void NameTable::SetNumber(uint32_t number, uint32_t dictionary_number) {
  uint32_t& index = indices_[at(number)];
  // The table may have the name under another number too.
  if ((index & kSharedFlag) != 0) ++epoch_;
  index = (index & kSharedFlag) | dictionary_number;
  dictionary_size_ = std::max(dictionary_size_, dictionary_number);
}

uint32_t NameTable::LookUp(uint32_t number, const Dictionary& dictionary) {
  uint32_t& index = indices_[at(number)];
  if ((index & kUnknownFlag) == 0) return index & kIndexMask;
  if (looked_up_[at(number)] == epoch_) return Dictionary::kUnknown;
  looked_up_[at(number)] = epoch_;
  const uint32_t found = dictionary.Find({entry(number).name, entry(number).hash});
  if (found != Dictionary::kUnknown) index = (index & kSharedFlag) | found;
  return found;
}

uint32_t NameTable::Index(uint32_t number, const Dictionary* dictionary) {
  return dictionary == nullptr ? indices_[at(number)] & kIndexMask : LookUp(number, *dictionary);
}

NameTable::Mapping NameTable::Map(std::span<const uint32_t> numbers, const Dictionary* dictionary,
                                  uint32_t* indices) {
  uint32_t flags = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint32_t index = indices_[at(numbers[i])];
    flags |= index;
    indices[i] = index & kIndexMask;
  }
  if ((flags & kUnknownFlag) != 0 && dictionary != nullptr) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (indices[i] == Dictionary::kUnknown) indices[i] = LookUp(numbers[i], *dictionary);
    }
  }
  return (flags & kSharedFlag) == 0 ? Mapping() : FindShared(numbers);
}

NameTable::Mapping NameTable::FindShared(std::span<const uint32_t> numbers) {
  shared_.clear();
  for (const uint32_t number : numbers) {
    if ((indices_[at(number)] & kSharedFlag) == 0) continue;
    shared_.emplace_back(KeyOf(number), number);
  }
  std::sort(shared_.begin(), shared_.end());
  Mapping mapping;
  for (const auto& [key, number] : shared_) mapping.outdated |= IsOutdated(number);
  // Names of one key, which are few, each with each.
  for (size_t i = 0; i < shared_.size(); ++i) {
    for (size_t j = i + 1; j < shared_.size() && shared_[j].first == shared_[i].first; ++j) {
      mapping.shares = true;
      mapping.repeats |= name(shared_[i].second) == name(shared_[j].second);
    }
  }
  return mapping;
}

}  // namespace perceptrond
