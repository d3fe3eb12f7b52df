// Any rows as those of a journal, whatever its home: each call answers, or says what is wrong. An input changes the rows
// of a journal that has models, records, snapshots, kept ones, predictions, aliases and entries: it drops, cuts, replaces
// and swaps them, and may then make the hashes of the entries right again.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/journal/memory_table.h"
#include "core/journal/table_journal.h"
#include "core/journal/table_keys.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

namespace storage = ::perceptron::storage::v1;
using perceptrond::JournalEntry;
using perceptrond::MemoryTable;
using perceptrond::TableChange;
using perceptrond::TableJournal;
using perceptrond::testing::Check;
using perceptrond::testing::FuzzInput;
namespace table_keys = perceptrond::table_keys;
namespace table_rows = perceptrond::table_rows;

using Rows = std::map<std::string, std::string>;

constexpr uint32_t kPartitions = 2;
constexpr size_t kMostChanges = 8;

TableJournal::Options Shared() {
  TableJournal::Options options;
  options.partitions = kPartitions;
  options.held_bytes = 1 << 20;
  options.keeps_predictions = true;
  options.snapshot_part_bytes = 60;
  return options;
}

storage::Snapshot State(uint64_t revision) {
  storage::Snapshot snapshot;
  snapshot.set_revision(revision);
  storage::StateArray& array = *snapshot.add_arrays();
  array.set_size(40);
  for (int i = 0; i < 40; ++i) array.add_values(static_cast<float>(i));
  return snapshot;
}

JournalEntry Entry(uint64_t model_id, uint64_t revision) {
  JournalEntry entry;
  entry.model_id = model_id;
  storage::UpdateRecord& record = entry.records.emplace_back();
  record.set_first_revision(revision);
  record.add_labels(1);
  entry.counters.mutable_report()->set_updates(revision);
  entry.positions.emplace_back().set_id("p");
  return entry;
}

Rows RowsOf(MemoryTable& table) {
  Rows rows;
  const auto add = [&](absl::string_view key, absl::string_view value) {
    rows.emplace(key, value);
    return true;
  };
  Check(table.Scan({"", "\xff"}, add).ok());
  return rows;
}

// Of a journal with something of everything.
const Rows& Whole() {
  static const Rows rows = [] {
    MemoryTable table;
    auto journal = TableJournal::Open(table.OpenAgain(), Shared());
    Check(journal.ok());
    for (const char* const name : {"models/a", "models/b", "models/c"}) {
      storage::ModelHeader header;
      header.mutable_model()->set_name(name);
      Check((*journal)->Create(header).ok());
      const storage::ModelHeader before = header;
      storage::KeptSnapshot kept;
      kept.set_number(1);
      Check((*journal)->SaveKept(header.id(), State(0), kept).ok());
      *header.add_kept_snapshots() = kept;
      Check((*journal)->Replace(header, before).ok());
      for (uint64_t revision = 1; revision <= 4; ++revision) {
        const JournalEntry entry = Entry(header.id(), revision);
        Check((*journal)->Commit({&entry, 1}, {}).ok());
      }
      Check((*journal)->SaveSnapshot(header.id(), State(2)).ok());
      const perceptrond::KeptPrediction prediction{1, 2, "row"};
      Check((*journal)->SavePredictions(header.id(), {&prediction, 1}).ok());
    }
    perceptrond::Alias alias;
    alias.set_name("aliases/x");
    alias.set_model("models/b");
    Check((*journal)->PutAlias(alias, "").ok());
    Check((*journal)->TakeOver(0, "server", (*journal)->LastSequence(0).value()).ok());
    Check((*journal)->Verify().ok());
    return RowsOf(table);
  }();
  return rows;
}

void Change(FuzzInput& input, Rows& rows) {
  if (rows.empty()) return;
  const auto row = [&] {
    return std::next(rows.begin(), static_cast<int>(input.Byte() % rows.size()));
  };
  const auto one = row();
  std::string& value = one->second;
  const size_t at = value.empty() ? 0 : input.Byte() % value.size();
  switch (input.Below(7)) {
    case 0:
      rows.erase(one);
      return;
    case 1:
      value = input.Bytes(input.Byte());
      return;
    case 2:
      if (!value.empty()) value[at] = static_cast<char>(input.Byte());
      return;
    case 3:
      value.resize(at);
      return;
    case 4:
      value = row()->second;
      return;
    case 5:
      value.insert(at, input.Bytes(input.Below(16)));
      return;
    default:
      std::string key = one->first;
      key[input.Byte() % key.size()] = static_cast<char>(input.Byte());
      rows[key] = value;
  }
}

// Makes the chain of each partition's entries whole, and its head the end of it.
void Mend(Rows& rows) {
  constexpr size_t kHashBytes = 16;
  for (uint32_t number = 0; number <= kPartitions; ++number) {
    const auto end = rows.find(table_keys::Head(number));
    storage::PartitionHead head;
    if (end == rows.end() || !head.ParseFromString(end->second)) continue;
    std::string hash = head.hash_before_held();
    const std::string first = table_keys::Entry(number, 0);
    for (auto it = rows.lower_bound(first);
         it != rows.end() && it->first < table_keys::Entry(number, UINT64_MAX); ++it) {
      if (it->second.size() < kHashBytes) continue;
      const std::string bytes = it->second.substr(kHashBytes);
      hash = table_rows::EntryHash(hash, bytes);
      it->second = hash + bytes;
      head.set_sequence(
          table_keys::ReadNumber(absl::string_view(it->first).substr(first.size() - 8)));
    }
    head.set_hash(hash);
    end->second = head.SerializeAsString();
  }
}

// Returns whether it is. Nothing else is an answer to damaged rows.
bool IsOk(const absl::Status& status) {
  constexpr absl::StatusCode kAnswers[] = {absl::StatusCode::kOk,
                                           absl::StatusCode::kDataLoss,
                                           absl::StatusCode::kNotFound,
                                           absl::StatusCode::kAlreadyExists,
                                           absl::StatusCode::kAborted,
                                           absl::StatusCode::kFailedPrecondition,
                                           absl::StatusCode::kOutOfRange,
                                           absl::StatusCode::kUnavailable,
                                           absl::StatusCode::kResourceExhausted};
  Check(std::find(std::begin(kAnswers), std::end(kAnswers), status.code()) != std::end(kAnswers));
  Check(status.ok() || !status.message().empty());
  return status.ok();
}

// What it says, and whether all is well.
bool Read(TableJournal& journal) {
  bool all = IsOk(journal.Verify());
  all &= IsOk(journal.Refresh());
  all &= IsOk(journal.Count().status());
  const auto replay = [](const storage::UpdateRecord&, size_t) { return absl::OkStatus(); };
  const auto headers = journal.List("", 100);
  if (!IsOk(headers.status())) return false;
  for (const storage::ModelHeader& header : *headers) {
    all &= IsOk(journal.Find(header.model().name()).status());
    all &= IsOk(journal.LoadCounters(header.id()).status());
    all &= IsOk(journal.LoadHistory(header.id()).status());
    all &= IsOk(journal.LoadPredictions(header.id()).status());
    for (const storage::KeptSnapshot& kept : header.kept_snapshots())
      all &= IsOk(journal.LoadKept(header.id(), kept).status());
    const auto stored = journal.Load(header.id());
    if (all &= IsOk(stored.status()); !stored.ok()) continue;
    all &= IsOk((*stored)->TakeSnapshot().status());
    all &= IsOk((*stored)->Replay(0, replay));
  }
  for (uint32_t number = 0; number < journal.partitions() && number < kPartitions; ++number) {
    const auto tail = journal.Tail(number, 0);
    if (all &= IsOk(tail.status()); !tail.ok()) continue;
    for (auto entries = (*tail)->Next(absl::ZeroDuration());;
         entries = (*tail)->Next(absl::ZeroDuration()))
      if (all &= IsOk(entries.status()); !entries.ok() || entries->empty()) break;
  }
  return all;
}

void Write(TableJournal& journal) {
  IsOk(journal.Sweep());
  for (uint32_t number = 0; number < journal.partitions() && number < kPartitions; ++number) {
    const auto last = journal.LastSequence(number);
    if (IsOk(last.status())) IsOk(journal.TakeOver(number, "server", *last).status());
  }
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/new");
  IsOk(journal.Create(header));
  for (uint64_t id = 1; id <= 3; ++id) {
    const JournalEntry entry = Entry(id, 5);
    IsOk(journal.Commit({&entry, 1}, {}).status());
    IsOk(journal.SaveSnapshot(id, State(5)));
    IsOk(journal.DropAfter(id, 3));
  }
  IsOk(journal.DeleteAlias("aliases/x", ""));
  for (const char* const name : {"models/a", "models/b"}) IsOk(journal.Delete(name));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  TableJournal::Options options = Shared();
  options.read_only = input.Flag();
  if (input.Flag()) options.held_bytes = 0;
  const bool mends = input.Flag();
  Rows rows = Whole();
  for (size_t i = 0; i < kMostChanges && !input.empty(); ++i) Change(input, rows);
  if (mends) Mend(rows);
  TableChange given;
  for (const auto& [key, value] : rows) given.puts.push_back({key, value});
  MemoryTable table;
  Check(table.Commit(given, false).value());
  const auto journal = TableJournal::Open(table.OpenAgain(), options);
  if (!IsOk(journal.status())) return 0;
  const bool all = options.held_bytes > 0 ? Read(**journal) : (Read(**journal), true);
  Check(all || rows != Whole());
  Write(**journal);
  return 0;
}
