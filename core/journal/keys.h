// The keys of the RocksDB journal: a letter for the kind, then numbers in big-endian bytes, so that
// keys sort as the numbers do and everything of one model is adjacent. docs/journal.md has the
// whole table.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace perceptrond::keys {

inline constexpr absl::string_view kFormat = "m/format";
inline constexpr absl::string_view kLastId = "m/last_id";
// See Journal::Id. Without it: the id of the database.
inline constexpr absl::string_view kId = "m/id";
// See Journal::HistoryId.
inline constexpr absl::string_view kHistory = "m/history";

// The value of kFormat. 2: snapshots may have more than one part. 3: their pieces may be in the
// other slot. Written when a snapshot first does either. 4: records may restore a state
// (UpdateRecord.restored_state) or have document_frequencies. Written with the first of them.
inline constexpr uint64_t kFirstFormat = 1;
inline constexpr uint64_t kSnapshotFormat = 3;
inline constexpr uint64_t kFormatVersion = 4;

inline void AppendNumber(std::string& key, uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift));
}
inline uint64_t ReadNumber(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i)
    number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}
inline std::string Number(uint64_t number) {
  std::string bytes;
  AppendNumber(bytes, number);
  return bytes;
}
// The smallest key after every key that begins with `prefix`.
inline std::string EndOf(std::string prefix) {
  while (!prefix.empty() && static_cast<uint8_t>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  return prefix;
}
inline std::string OfModel(char kind, uint64_t id) {
  std::string key(1, kind);
  AppendNumber(key, id);
  return key;
}

inline std::string Header(absl::string_view name) { return "h" + std::string(name); }
// Exists as long as the model, and is found by its id alone.
inline std::string Alive(uint64_t id) { return OfModel('a', id); }
// Exists while the state of a model that is to come is written.
inline std::string Unfinished(uint64_t id) { return OfModel('b', id); }
inline std::string Counters(uint64_t id) { return OfModel('n', id); }
inline std::string Position(uint64_t id, absl::string_view producer) {
  return OfModel('p', id) + std::string(producer);
}
// Records are keyed by the revision they end at.
inline std::string Record(uint64_t id, uint64_t last_revision) {
  std::string key = OfModel('r', id);
  AppendNumber(key, last_revision);
  return key;
}
inline std::string Alias(absl::string_view name) { return "l" + std::string(name); }
// The pieces of a snapshot that a user keeps.
inline std::string KeptSnapshot(uint64_t id, uint64_t number) {
  std::string key = OfModel('k', id);
  AppendNumber(key, number);
  return key;
}
inline std::string KeptPrediction(uint64_t id, uint64_t number) {
  std::string key = OfModel('w', id);
  AppendNumber(key, number);
  return key;
}
// The history of the snapshot: a storage::History.
inline std::string History(uint64_t id) { return OfModel('v', id); }
inline std::string SnapshotHead(uint64_t id) { return OfModel('s', id); }
// What the head has: the revision or slot, and the bytes of each part.
inline std::string SnapshotHeadOf(uint64_t slot, std::span<const uint64_t> part_bytes) {
  std::string head = Number(slot);
  for (const uint64_t bytes : part_bytes) AppendNumber(head, bytes);
  return head;
}
// The key of each piece is this and its number.
inline std::string SnapshotPieces(uint64_t id, uint64_t slot) {
  return OfModel('c', id) + Number(slot);
}
inline std::string SnapshotChunk(uint64_t id, uint64_t slot, uint64_t chunk) {
  return SnapshotPieces(id, slot) + Number(chunk);
}

}  // namespace perceptrond::keys
