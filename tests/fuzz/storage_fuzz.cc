// Any bytes as what lies beside the journal's records. As a snapshot: cut into parts of any size and
// put together it is the same. As its parts: they make a snapshot, or DATA_LOSS. As the marker of a
// data directory: an id, or FAILED_PRECONDITION with words. The first byte chooses which; the second
// is the size of a part, or each part follows a byte that says how long it is.
//
// Or the rest of the input changes the files WATERMARK and LOG of a journal, which is then opened with all it has, or
// is DATA_LOSS; or the metadata of two backups, which are then listed, checked and restored: what is restored is whole.
// The changed files have the right checksums and counts again, if the input says so.
#include <rocksdb/env.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/journal/rocksdb/backups.h"
#include "core/journal/rocksdb/data_directory.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/journal/rocksdb/watermark.h"
#include "core/journal/snapshot_parts.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/temp_dir.h"

namespace {

namespace storage = ::perceptron::storage::v1;
namespace fs = std::filesystem;
using perceptrond::AppendPart;
using perceptrond::Backup;
using perceptrond::Backups;
using perceptrond::RocksDbJournal;
using perceptrond::Watermark;
using perceptrond::WatermarkFile;
using perceptrond::testing::Check;
using perceptrond::testing::CheckEqual;
using perceptrond::testing::FuzzInput;
using perceptrond::testing::TempDir;

bool Parse(std::string_view bytes, storage::Snapshot& snapshot) {
  return snapshot.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Arrays whose indices and values do not match, or that go on before they began, come from no
// learner.
bool CanBeCut(const storage::Snapshot& snapshot) {
  for (const storage::StateArray& array : snapshot.arrays()) {
    if (array.continued()) return false;
    if (!array.indices().empty() && array.indices_size() != array.values_size()) return false;
  }
  return true;
}

void CheckCut(std::string_view bytes, size_t part_bytes) {
  storage::Snapshot snapshot;
  if (!Parse(bytes, snapshot) || !CanBeCut(snapshot)) return;
  snapshot.DiscardUnknownFields();
  // Present without rows or absent is the same.
  if (snapshot.stored_rows().ByteSizeLong() == 0) snapshot.clear_stored_rows();
  storage::Snapshot whole;
  const absl::Status status =
      perceptrond::ForEachPart(snapshot, part_bytes, [&](const storage::Snapshot& part) {
        storage::Snapshot copy;
        Check(copy.ParseFromString(part.SerializeAsString()));
        return AppendPart(std::move(copy), whole);
      });
  Check(status.ok());
  Check(whole.SerializeAsString() == snapshot.SerializeAsString());
}

void CheckParts(std::string_view bytes) {
  storage::Snapshot whole;
  while (!bytes.empty()) {
    const size_t length = static_cast<uint8_t>(bytes[0]);
    const std::string_view part = bytes.substr(1, length);
    bytes.remove_prefix(1 + part.size());
    storage::Snapshot snapshot;
    if (!Parse(part, snapshot)) return;
    const absl::Status status = AppendPart(std::move(snapshot), whole);
    Check(status.ok() || absl::IsDataLoss(status));
    if (!status.ok()) return;
  }
}

void CheckMarker(std::string_view bytes) {
  static const TempDir directory;
  std::ofstream(directory.path() + "/JOURNAL", std::ios::binary) << bytes;
  const auto id = perceptrond::ReadMarker(directory.path());
  if (id.ok()) {
    Check(id->has_value() && !(*id)->empty());
  } else {
    Check(absl::IsFailedPrecondition(id.status()) && !id.status().message().empty());
  }
}

// ---- A directory of a journal, and backups of it ----

constexpr size_t kMostChanges = 6;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(const std::string& directory, bool read_only) {
  RocksDbJournal::Options options;
  options.directory = directory;
  options.read_only = read_only;
  return RocksDbJournal::Open(options);
}

// Every model with its records.
std::string ContentOf(RocksDbJournal& journal) {
  const auto headers = journal.List("", 100);
  Check(headers.ok());
  std::string content;
  for (const storage::ModelHeader& header : *headers) {
    absl::StrAppend(&content, header.ShortDebugString(), "\n");
    Check(journal
              .Replay(header.id(), 0,
                      [&](const storage::UpdateRecord& record, size_t) {
                        absl::StrAppend(&content, record.ShortDebugString(), "\n");
                        return absl::OkStatus();
                      })
              .ok());
  }
  return content;
}

// Two backups of a journal, the second with more records, and with a table.
class Whole {
 public:
  Whole() {
    for (uint32_t number = 1; number <= kBackups; ++number) {
      const auto journal = Open(this->journal(), /*read_only=*/false);
      Check(journal.ok());
      storage::ModelHeader header;
      if (number == 1) {
        header.mutable_model()->set_name("models/a");
        Check((*journal)->Create(header).ok());
      } else {
        header = (*journal)->Find("models/a").value();
      }
      for (uint64_t i = 0; i < kRecords; ++i) {
        perceptrond::JournalEntry entry;
        entry.model_id = header.id();
        storage::UpdateRecord& record = entry.records.emplace_back();
        record.set_first_revision((number - 1) * kRecords + i + 1);
        record.add_labels(1);
        Check((*journal)->Commit({&entry, 1}, {}).ok());
      }
      const auto backup = (*journal)->BackUp(Backups(backups()), /*keep=*/0);
      Check(backup.ok() && backup->number == number);
      sequences_[number] = backup->sequence;
      contents_[number] = ContentOf(**journal);
      metadata_[number] = ReadFile(Meta(number));
    }
    watermark_ = ReadFile(journal() + "/WATERMARK");
  }

  static constexpr uint32_t kBackups = 2;

  std::string journal() const { return directory_.path() + "/journal"; }
  std::string backups() const { return directory_.path() + "/backups"; }
  std::string restored() const { return directory_.path() + "/restored"; }
  std::string Meta(uint32_t number) const { return absl::StrCat(backups(), "/meta/", number); }

  const std::string& watermark() const { return watermark_; }
  const std::map<uint32_t, std::string>& metadata() const { return metadata_; }
  uint64_t sequence(uint32_t number) const { return sequences_.at(number); }
  const std::string& content(uint32_t number) const { return contents_.at(number); }

 private:
  static constexpr uint64_t kRecords = 3;

  const TempDir directory_;
  std::string watermark_;
  std::map<uint32_t, std::string> metadata_;
  std::map<uint32_t, uint64_t> sequences_;
  std::map<uint32_t, std::string> contents_;
};

const Whole& TheWhole() {
  static const Whole whole;
  return whole;
}

std::string Number(FuzzInput& input) {
  constexpr const char* kNumbers[] = {"0",  "1",  "2", "4294967295", "18446744073709551615",
                                      "-1", "99", "x", "",           "99999999999999999999"};
  return input.OneOf(kNumbers);
}

// Changes one of the words or lines of a text, or their order. The ids, times and checksums of a run differ from those of
// another: what an input changes is counted in words.
void ChangePart(FuzzInput& input, std::vector<std::string>& parts) {
  if (parts.empty()) return;
  const auto any = [&] { return input.Byte() % parts.size(); };
  const size_t at = any();
  std::string& part = parts[at];
  switch (input.Below(6)) {
    case 0:
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(at));
      return;
    case 1:
      parts.insert(parts.begin() + static_cast<ptrdiff_t>(any()), std::string(part));
      return;
    case 2:
      std::swap(part, parts[any()]);
      return;
    case 3:
      part = Number(input);
      return;
    case 4:
      part = input.Bytes(input.Byte());
      return;
    default:
      part.insert(input.Byte() % (part.size() + 1), input.Bytes(1 + input.Below(4)));
  }
}

// ---- WATERMARK and LOG ----

// Gives each slot the checksum of its text.
void MendWatermark(std::vector<std::string>& slots) {
  constexpr size_t kSlotBytes = 512;
  for (std::string& slot : slots) {
    slot.resize(std::min(slot.size(), slot.rfind(" crc ")));
    const auto sum = crc32(0, reinterpret_cast<const unsigned char*>(slot.data()),
                           static_cast<unsigned>(slot.size()));
    absl::StrAppend(&slot, " crc ", sum);
    slot.resize(kSlotBytes - 1, ' ');
    slot += '\n';
  }
}

auto Fields(const Watermark& mark) {
  return std::tie(mark.id, mark.written, mark.synced, mark.boot_id, mark.unsynced_updates,
                  mark.closed, mark.log_bytes, mark.index.number, mark.index.bytes);
}

void CheckWatermark(FuzzInput& input) {
  const Whole& whole = TheWhole();
  std::vector<std::string> slots = {whole.watermark().substr(0, 512),
                                    whole.watermark().substr(512)};
  const bool mends = input.Flag();
  for (size_t changes = input.Below(kMostChanges); changes > 0; --changes) {
    std::string& slot = slots[input.Below(slots.size())];
    std::vector<std::string> words = absl::StrSplit(slot, ' ', absl::SkipEmpty());
    ChangePart(input, words);
    slot = absl::StrJoin(words, " ");
  }
  if (mends) MendWatermark(slots);
  const std::string directory = whole.journal();
  WriteFile(directory + "/WATERMARK", absl::StrJoin(slots, ""));
  std::string notes = input.Bytes(input.Byte());
  if (input.Flag()) absl::StrAppend(&notes, "000012.log: dropping ", input.Bytes(16));
  WriteFile(directory + "/LOG", notes);

  const auto mark = WatermarkFile::Read(rocksdb::Env::Default(), directory);
  Check(mark.ok());
  // RocksDB's ids have 36 characters.
  if (mark->has_value() && (*mark)->id.size() + (*mark)->boot_id.size() <= 128) {
    static const TempDir other;
    Check(WatermarkFile::Create(rocksdb::Env::Default(), other.path(), **mark).ok());
    const auto again = WatermarkFile::Read(rocksdb::Env::Default(), other.path());
    Check(again.ok() && again->has_value() && Fields(**mark) == Fields(**again));
  }
  const auto journal = Open(directory, /*read_only=*/true);
  if (journal.ok()) {
    Check(mark->has_value());
    return CheckEqual("journals", ContentOf(**journal), whole.content(Whole::kBackups));
  }
  const absl::string_view message = journal.status().message();
  Check(absl::IsDataLoss(journal.status()) && absl::StrContains(message, directory));
  Check(message.size() < 1000 && std::all_of(message.begin(), message.end(), absl::ascii_isprint));
}

// ---- Backups ----

constexpr char kAppMetadata[] = "metadata ";

std::string Lines(const std::vector<std::string>& lines) { return absl::StrJoin(lines, "\n"); }

// Changes what Backups::Create gives RocksDB to keep.
void ChangeAppMetadata(FuzzInput& input, std::vector<std::string>& lines) {
  for (std::string& line : lines) {
    if (!absl::StartsWith(line, kAppMetadata)) continue;
    const std::string bytes = absl::HexStringToBytes(line.substr(sizeof(kAppMetadata) - 1));
    std::vector<std::string> words = absl::StrSplit(bytes, ' ');
    ChangePart(input, words);
    line = kAppMetadata + absl::AsciiStrToUpper(absl::BytesToHexString(absl::StrJoin(words, " ")));
    return;
  }
}

// The lines of files that the backups have, by the first word.
std::map<std::string, std::string> FileLines() {
  std::map<std::string, std::string> lines;
  for (const auto& [number, text] : TheWhole().metadata()) {
    for (const absl::string_view line : absl::StrSplit(text, '\n'))
      if (absl::StrContains(line, " crc32 ")) lines.emplace(line.substr(0, line.find(' ')), line);
  }
  return lines;
}

// Makes the checksum of each file and the number of files right again.
void MendMetadata(std::vector<std::string>& lines) {
  static const std::map<std::string, std::string> known = FileLines();
  size_t files = 0;
  for (size_t i = lines.size(); i > 0; --i) {
    std::string& line = lines[i - 1];
    const auto file = known.find(line.substr(0, line.find(' ')));
    if (file != known.end()) {
      line = file->second;
      ++files;
    } else if (files > 0) {
      line = absl::StrCat(files);
      return;
    }
  }
}

bool IsOk(const absl::Status& status) {
  constexpr absl::StatusCode kAnswers[] = {absl::StatusCode::kOk, absl::StatusCode::kDataLoss,
                                           absl::StatusCode::kNotFound,
                                           absl::StatusCode::kUnavailable};
  Check(std::find(std::begin(kAnswers), std::end(kAnswers), status.code()) != std::end(kAnswers));
  Check(status.ok() || !status.message().empty());
  return status.ok();
}

// A journal that was restored from this backup opens, and has all that the metadata says.
void CheckRestored(const Backup& backup) {
  const Whole& whole = TheWhole();
  const auto journal = Open(whole.restored(), /*read_only=*/true);
  Check(journal.ok() && !backup.damaged && (*journal)->sequence() >= backup.sequence);
  const std::string content = ContentOf(**journal);
  if (backup.number <= Whole::kBackups && backup.sequence == whole.sequence(backup.number))
    CheckEqual("journals", content, whole.content(backup.number));
}

void CheckBackups(FuzzInput& input) {
  const Whole& whole = TheWhole();
  std::map<uint32_t, std::string> metadata = whole.metadata();
  const bool mends = input.Flag();
  for (size_t changes = input.Below(kMostChanges); changes > 0; --changes) {
    const uint32_t number = 1 + static_cast<uint32_t>(input.Below(Whole::kBackups));
    std::string& text = metadata[number];
    std::vector<std::string> lines = absl::StrSplit(text, '\n');
    switch (input.Below(4)) {
      case 0:
        ChangeAppMetadata(input, lines);
        break;
      case 1: {
        std::string& line = lines[input.Byte() % lines.size()];
        std::vector<std::string> words = absl::StrSplit(line, ' ');
        ChangePart(input, words);
        line = absl::StrJoin(words, " ");
        break;
      }
      case 2:
        ChangePart(input, lines);
        break;
      default: {
        const std::vector<std::string> other =
            absl::StrSplit(whole.metadata().at(Whole::kBackups + 1 - number), '\n');
        lines[input.Byte() % lines.size()] = other[input.Byte() % other.size()];
      }
    }
    if (mends) MendMetadata(lines);
    text = Lines(lines);
  }
  for (const auto& [number, text] : metadata) WriteFile(whole.Meta(number), text);

  const Backups backups(whole.backups());
  const auto list = backups.List();
  if (!IsOk(list.status())) return;
  const uint32_t chosen = 1 + static_cast<uint32_t>(input.Below(Whole::kBackups));
  for (const Backup& backup : *list) {
    const bool verified = IsOk(backups.Verify(backup.number));
    Check(!backup.damaged || !verified);
    Check(backup.damaged || !backup.journal_id.empty());
    Check(verified || metadata != whole.metadata());
    if (backup.number != chosen) continue;
    fs::remove_all(whole.restored());
    const bool restored = IsOk(backups.Restore(backup.number, whole.restored()));
    Check(restored || (metadata != whole.metadata() && !fs::exists(whole.restored() + "/CURRENT")));
    if (restored) CheckRestored(backup);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 8) {
    case 0:
      CheckMarker(rest);
      break;
    case 1:
      CheckParts(rest);
      break;
    case 3: {
      FuzzInput input(data + 1, size - 1);
      CheckWatermark(input);
      break;
    }
    case 4: {
      FuzzInput input(data + 1, size - 1);
      CheckBackups(input);
      break;
    }
    default:
      CheckCut(rest.substr(1), static_cast<uint8_t>(rest[0]));
  }
  return 0;
}
