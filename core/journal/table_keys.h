// The keys of a journal's rows (TableJournal): a letter for the kind, then numbers in big-endian bytes, so that keys sort
// as the numbers do and everything of one model is adjacent. docs/journal.md has the whole table.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/journal/table.h"

namespace perceptrond::table_keys {

inline std::string Number(uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}
inline uint64_t ReadNumber(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i)
    number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}
// The smallest key after every key that begins with `prefix`.
inline std::string EndOf(std::string prefix) {
  while (!prefix.empty() && static_cast<uint8_t>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<uint8_t>(prefix.back()) + 1);
  return prefix;
}

// A fact about the whole journal: "format", "id", "partitions", "last_id", "import".
inline std::string Meta(absl::string_view what) { return "m/" + std::string(what); }
inline std::string Header(absl::string_view name) { return "h" + std::string(name); }
inline std::string Alias(absl::string_view name) { return "l" + std::string(name); }
// The end of a partition's entries (PartitionHead), and its entries.
inline std::string Head(uint32_t partition) { return "p" + Number(partition); }
inline std::string Entry(uint32_t partition, uint64_t sequence) {
  return "e" + Number(partition) + Number(sequence);
}
// Exists while the state of a model that is to come is written: when that began, in nanoseconds since 1970.
inline std::string Unfinished(uint64_t id) { return "b" + Number(id); }

// A model's rows, by their kind.
enum class Kind : char {
  // Exists as long as the model.
  kAlive = 'a',
  kPieces = 'c',
  kEpoch = 'e',
  kKeptPieces = 'k',
  kCounters = 'n',
  kPosition = 'p',
  // Keyed by the revision that the record ends at.
  kRecord = 'r',
  kSnapshot = 's',
  kPrediction = 'w',
};
inline std::string Model(uint64_t id) { return "r" + Number(id); }
inline std::string Of(uint64_t id, Kind kind) {
  std::string key = Model(id);
  key.push_back(static_cast<char>(kind));
  return key;
}
inline std::string Record(uint64_t id, uint64_t last_revision) {
  return Of(id, Kind::kRecord) + Number(last_revision);
}
inline std::string Epoch(uint64_t id, int64_t epoch) {
  return Of(id, Kind::kEpoch) + Number(static_cast<uint64_t>(epoch));
}
inline std::string Position(uint64_t id, absl::string_view producer) {
  return Of(id, Kind::kPosition) + std::string(producer);
}
inline std::string Prediction(uint64_t id, uint64_t number) {
  return Of(id, Kind::kPrediction) + Number(number);
}
// The key of each piece is this and its number. `slot` tells snapshots of one model apart.
inline std::string Pieces(uint64_t id, uint64_t slot) {
  return Of(id, Kind::kPieces) + Number(slot);
}
inline std::string KeptPieces(uint64_t id, uint64_t number, int64_t epoch) {
  return Of(id, Kind::kKeptPieces) + Number(number) + Number(static_cast<uint64_t>(epoch));
}

inline KeyRange AllOf(std::string prefix) {
  std::string end = EndOf(prefix);
  return {std::move(prefix), std::move(end)};
}
inline KeyRange Only(std::string key) {
  std::string end = key + '\0';
  return {std::move(key), std::move(end)};
}

}  // namespace perceptrond::table_keys
