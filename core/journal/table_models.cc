// A journal in a table: snapshots, records, counters and predictions of models.
#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/snapshot_parts.h"
#include "core/journal/stored_message.h"
#include "core/journal/table_journal.h"
#include "core/journal/table_keys.h"

namespace perceptrond {
namespace {

using table_keys::AllOf;
using table_keys::Kind;
using table_keys::Of;
using table_keys::Only;

// A larger value would go through memory and logs in one piece.
constexpr size_t kPieceBytes = 1 << 20;
constexpr int kMostSnapshotTries = 100;

// Never one that another snapshot of the model has.
uint64_t RandomSlot() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> TableJournal::WritePieces(
    const std::string& prefix, const storage::Snapshot& snapshot,
    const TableChange::Condition& condition) {
  std::vector<uint64_t> part_bytes;
  std::string bytes;
  uint64_t piece = 0;
  const auto write = [&](const storage::Snapshot& part) {
    absl::Status status = SerializeStored(part, bytes);
    part_bytes.push_back(bytes.size());
    for (size_t at = 0; status.ok() && at < bytes.size(); at += kPieceBytes) {
      TableChange change;
      change.conditions.push_back(condition);
      change.puts.push_back({prefix + table_keys::Number(piece++), bytes.substr(at, kPieceBytes)});
      const absl::StatusOr<bool> done = Write(change, /*sync=*/false);
      status = done.status();
      // Pieces are of no use without what refers to them, so that it does not matter whether this one was written.
      if (absl::IsUnknown(status)) status = absl::UnavailableError(status.message());
      if (done.ok() && !*done) status = absl::NotFoundError("the model was deleted");
    }
    return status;
  };
  absl::Status status = ForEachPart(snapshot, options_.snapshot_part_bytes, write);
  if (!status.ok()) return status;
  return part_bytes;
}

absl::StatusOr<storage::Snapshot> TableJournal::ReadPieces(TableReader& reader,
                                                           const std::string& prefix,
                                                           std::span<const uint64_t> part_bytes) {
  storage::Snapshot snapshot;
  std::string bytes;
  size_t part = 0;
  uint64_t piece = 0;
  absl::Status failed;
  // Parts end where a piece ends.
  const auto on_piece = [&](absl::string_view key, absl::string_view value) {
    const bool follows = key.size() == prefix.size() + sizeof(uint64_t) &&
                         table_keys::ReadNumber(key.substr(prefix.size())) == piece++;
    if (part == part_bytes.size() || !follows || value.empty() ||
        value.size() > part_bytes[part] - bytes.size()) {
      failed = absl::DataLossError(
          absl::StrCat("journal: piece ", piece, " of a snapshot is missing or of another size"));
      return false;
    }
    bytes.append(value.data(), value.size());
    if (bytes.size() < part_bytes[part]) return true;
    ++part;
    storage::Snapshot next;
    failed = ParseStored(bytes, next, "a snapshot");
    bytes.clear();
    if (failed.ok()) failed = AppendPart(std::move(next), snapshot);
    return failed.ok();
  };
  absl::Status status = reader.Scan(AllOf(prefix), on_piece);
  if (status.ok()) status = failed;
  // A part without a byte has no piece.
  while (part < part_bytes.size() && part_bytes[part] == 0) ++part;
  if (status.ok() && part < part_bytes.size())
    status = absl::DataLossError("journal: pieces of a snapshot are missing");
  if (!status.ok()) return status;
  return snapshot;
}

absl::StatusOr<storage::SnapshotHead> TableJournal::ReadSnapshotHead(TableReader& reader,
                                                                     uint64_t model_id) {
  storage::SnapshotHead head;
  const absl::StatusOr<bool> found =
      table_rows::Read(reader, Of(model_id, Kind::kSnapshot), head, "a snapshot's head");
  if (!found.ok()) return found.status();
  if (!*found) return absl::NotFoundError("there is no snapshot");
  return head;
}

absl::StatusOr<std::optional<storage::Snapshot>> TableJournal::ReadSnapshot(TableReader& reader,
                                                                            uint64_t model_id) {
  const absl::StatusOr<storage::SnapshotHead> head = ReadSnapshotHead(reader, model_id);
  if (absl::IsNotFound(head.status())) return std::nullopt;
  if (!head.ok()) return head.status();
  uint64_t slot = 0;
  if (!absl::SimpleAtoi(head->pieces(), &slot))
    return absl::DataLossError("journal: a snapshot's head does not name its pieces");
  absl::StatusOr<storage::Snapshot> snapshot =
      ReadPieces(reader, table_keys::Pieces(model_id, slot),
                 {head->part_bytes().data(), static_cast<size_t>(head->part_bytes_size())});
  if (!snapshot.ok()) return snapshot.status();
  if (snapshot->revision() != head->revision())
    return absl::DataLossError("journal: a snapshot is of another revision than its head says");
  return *std::move(snapshot);
}

absl::Status TableJournal::ReadRecords(TableReader& reader, uint64_t model_id,
                                       uint64_t after_revision, const ReplayCallback& replay) {
  KeyRange range = AllOf(Of(model_id, Kind::kRecord));
  range.begin = table_keys::Record(model_id, after_revision + 1);
  storage::UpdateRecord record;
  absl::Status failed;
  absl::Status status = reader.Scan(range, [&](absl::string_view, absl::string_view value) {
    failed = ParseStored(value, record, "an update record");
    if (failed.ok()) failed = replay(record, value.size());
    return failed.ok();
  });
  return status.ok() ? failed : status;
}

absl::StatusOr<CommittedState> TableJournal::ReadCommitted(TableReader& reader,
                                                           uint64_t model_id) const {
  CommittedState state;
  state.epoch = opening_epoch_;
  const absl::StatusOr<bool> found =
      table_rows::Read(reader, Of(model_id, Kind::kCounters), state.counters, "a model's counters");
  if (!found.ok()) return found.status();
  absl::Status failed;
  absl::Status status = reader.Scan(
      AllOf(Of(model_id, Kind::kPosition)), [&](absl::string_view, absl::string_view value) {
        failed = ParseStored(value, state.positions.emplace_back(), "a producer's position");
        return failed.ok();
      });
  if (status.ok()) status = failed;
  const KeyRange epochs = AllOf(Of(model_id, Kind::kEpoch));
  const auto add_epoch = [&](absl::string_view key, absl::string_view value) {
    constexpr size_t kNumber = sizeof(uint64_t);
    if (key.size() != epochs.begin.size() + kNumber || value.size() != kNumber) {
      failed = absl::DataLossError("journal: an epoch of a model does not parse");
      return false;
    }
    const uint64_t epoch = table_keys::ReadNumber(key.substr(epochs.begin.size()));
    state.epochs.push_back({static_cast<int64_t>(epoch), table_keys::ReadNumber(value)});
    return true;
  };
  if (status.ok()) status = reader.Scan(epochs, add_epoch);
  if (status.ok()) status = failed;
  if (!status.ok()) return status;
  return state;
}

// A model's rows at one moment.
class TableJournal::Stored final : public StoredModel {
 public:
  Stored(std::unique_ptr<TableReader> reader, uint64_t model_id, CommittedState committed)
      : reader_(std::move(reader)), model_id_(model_id), committed_(std::move(committed)) {}

  const CommittedState& committed() const override { return committed_; }
  absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() override {
    return ReadSnapshot(*reader_, model_id_);
  }
  absl::Status Replay(uint64_t after_revision, const ReplayCallback& replay) override {
    return ReadRecords(*reader_, model_id_, after_revision, replay);
  }

 private:
  const std::unique_ptr<TableReader> reader_;
  const uint64_t model_id_;
  const CommittedState committed_;
};

absl::StatusOr<std::unique_ptr<StoredModel>> TableJournal::Load(uint64_t model_id) {
  const uint32_t number = PartitionOf(model_id);
  const KeyRange ranges[] = {AllOf(table_keys::Model(model_id)), Only(table_keys::Head(number))};
  absl::StatusOr<std::unique_ptr<TableReader>> reader = table_->Freeze(ranges);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<CommittedState> committed = ReadCommitted(**reader, model_id);
  if (!committed.ok()) return committed.status();
  const absl::StatusOr<storage::PartitionHead> head = ReadHead(**reader, number);
  if (!head.ok()) return head.status();
  committed->sequence = head->sequence();
  committed->epoch = std::max(committed->epoch, head->epoch());
  return std::make_unique<Stored>(*std::move(reader), model_id, *std::move(committed));
}

absl::StatusOr<CommittedState> TableJournal::LoadCommittedState(uint64_t model_id) {
  return ReadCommitted(*table_, model_id);
}

absl::StatusOr<storage::Counters> TableJournal::LoadCounters(uint64_t model_id) {
  storage::Counters counters;
  const absl::StatusOr<bool> found =
      table_rows::Read(*table_, Of(model_id, Kind::kCounters), counters, "a model's counters");
  if (!found.ok()) return found.status();
  return counters;
}

absl::Status TableJournal::Replay(uint64_t model_id, uint64_t after_revision,
                                  const ReplayCallback& replay) {
  return ReadRecords(*table_, model_id, after_revision, replay);
}

absl::StatusOr<std::optional<storage::Snapshot>> TableJournal::LoadSnapshot(uint64_t model_id) {
  const KeyRange range = AllOf(table_keys::Model(model_id));
  const absl::StatusOr<std::unique_ptr<TableReader>> reader = table_->Freeze({&range, 1});
  if (!reader.ok()) return reader.status();
  return ReadSnapshot(**reader, model_id);
}

absl::StatusOr<storage::History> TableJournal::LoadHistory(uint64_t model_id) {
  const absl::StatusOr<storage::SnapshotHead> head = ReadSnapshotHead(*table_, model_id);
  if (absl::IsNotFound(head.status())) return storage::History();
  if (!head.ok()) return head.status();
  storage::History history = head->history();
  history.set_revision(head->revision());
  if (!head->has_history()) history.set_begin(head->revision());
  return history;
}

absl::Status TableJournal::SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) {
  const TableChange::Condition alive = table_rows::IsAlive(model_id);
  const std::string head_key = Of(model_id, Kind::kSnapshot);
  // A snapshot that replaces another one deletes the pieces of all others.
  const absl::StatusOr<std::optional<std::string>> before = table_->Get(head_key);
  if (!before.ok()) return before.status();
  const uint64_t slot = RandomSlot();
  const absl::StatusOr<std::vector<uint64_t>> part_bytes =
      WritePieces(table_keys::Pieces(model_id, slot), snapshot, alive);
  // Nothing is to be saved of a model that was deleted.
  if (absl::IsNotFound(part_bytes.status())) return absl::OkStatus();
  if (!part_bytes.ok()) return part_bytes.status();
  storage::SnapshotHead head;
  head.set_revision(snapshot.revision());
  head.set_pieces(absl::StrCat(slot));
  head.mutable_part_bytes()->Assign(part_bytes->begin(), part_bytes->end());
  if (snapshot.has_history()) *head.mutable_history() = snapshot.history();
  const uint64_t dropped =
      snapshot.has_history() ? snapshot.history().begin() : snapshot.revision();
  const uint32_t number = PartitionOf(model_id);
  Partition& partition = *partitions_[number];
  MutexLock lock(&partition.mutex);
  for (int i = 0; i < kMostSnapshotTries; ++i) {
    if (absl::Status status = KnowHead(number, partition); !status.ok()) return status;
    if (!IsWriter(partition)) return WrittenByAnother();
    TableChange change;
    // Whoever took the partition over may have loaded what this deletes.
    change.conditions = {{table_keys::Head(number), partition.bytes}, alive, {head_key, *before}};
    absl::Status status = table_rows::Put(head_key, head, change);
    if (!status.ok()) return status;
    change.deletions.push_back(
        {table_keys::Record(model_id, 0), table_keys::Record(model_id, dropped + 1)});
    // Other snapshots, those that were never finished, too.
    const KeyRange pieces = AllOf(Of(model_id, Kind::kPieces));
    const KeyRange own = AllOf(table_keys::Pieces(model_id, slot));
    change.deletions.push_back({pieces.begin, own.begin});
    change.deletions.push_back({own.end, pieces.end});
    const absl::StatusOr<bool> done = Write(change, /*sync=*/true);
    if (!done.ok())
      return absl::IsUnknown(done.status()) ? absl::UnavailableError(done.status().message())
                                            : done.status();
    if (*done) return absl::OkStatus();
    partition.head.reset();
    const absl::StatusOr<std::optional<std::string>> exists = table_->Get(alive.key);
    if (!exists.ok()) return exists.status();
    if (*exists != alive.value) return absl::OkStatus();
    const absl::StatusOr<std::optional<std::string>> now = table_->Get(head_key);
    if (!now.ok()) return now.status();
    if (*now != *before)
      return absl::UnavailableError("another snapshot of the model was saved meanwhile");
  }
  return absl::UnavailableError("journal: others change the partition all the time");
}

absl::Status TableJournal::DropAfter(uint64_t model_id, uint64_t revision) {
  const uint32_t number = PartitionOf(model_id);
  Partition& partition = *partitions_[number];
  MutexLock lock(&partition.mutex);
  if (absl::Status status = KnowHead(number, partition); !status.ok()) return status;
  if (!IsWriter(partition)) return absl::OkStatus();
  const KeyRange after{table_keys::Record(model_id, revision + 1),
                       AllOf(Of(model_id, Kind::kRecord)).end};
  // A model must load also while nothing can be written.
  bool is_empty = true;
  absl::Status status = table_->Scan(after, [&](auto, auto) { return is_empty = false; });
  if (!status.ok() || is_empty) return status;
  TableChange change;
  change.conditions.push_back({table_keys::Head(number), partition.bytes});
  change.deletions.push_back(after);
  const absl::StatusOr<bool> done = Write(change, /*sync=*/true);
  if (!done.ok() || !*done) partition.head.reset();
  return done.status();
}

absl::Status TableJournal::SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                                    storage::KeptSnapshot& kept) {
  const uint32_t number = PartitionOf(model_id);
  Partition& partition = *partitions_[number];
  {
    MutexLock lock(&partition.mutex);
    if (options_.held_bytes > 0) partition.head.reset();
    if (absl::Status status = KnowHead(number, partition); !status.ok()) return status;
    if (!IsWriter(partition)) return WrittenByAnother();
    // The only opener replaces what an earlier opening did not finish.
    kept.set_epoch(options_.held_bytes > 0 ? partition.own_epoch : 0);
  }
  // What a snapshot that was never finished left.
  TableChange unfinished;
  unfinished.deletions.push_back(table_rows::KeptPieces(model_id, kept));
  if (absl::Status status = Write(unfinished, /*sync=*/false).status(); !status.ok()) return status;
  const absl::StatusOr<std::vector<uint64_t>> part_bytes =
      WritePieces(table_keys::KeptPieces(model_id, kept.number(), kept.epoch()), snapshot,
                  table_rows::IsAlive(model_id));
  if (!part_bytes.ok()) return part_bytes.status();
  kept.mutable_part_bytes()->Assign(part_bytes->begin(), part_bytes->end());
  return Sync();
}

KeyRange table_rows::KeptPieces(uint64_t model_id, const storage::KeptSnapshot& kept) {
  return AllOf(table_keys::KeptPieces(model_id, kept.number(), kept.epoch()));
}

absl::StatusOr<storage::Snapshot> TableJournal::LoadKept(uint64_t model_id,
                                                         const storage::KeptSnapshot& kept) {
  return ReadPieces(*table_, table_keys::KeptPieces(model_id, kept.number(), kept.epoch()),
                    {kept.part_bytes().data(), static_cast<size_t>(kept.part_bytes_size())});
}

absl::Status TableJournal::SavePredictions(uint64_t model_id,
                                           std::span<const KeptPrediction> predictions) {
  if (predictions.empty()) return absl::OkStatus();
  TableChange change;
  change.conditions.push_back(table_rows::IsAlive(model_id));
  for (const KeptPrediction& prediction : predictions)
    change.puts.push_back({table_keys::Prediction(model_id, prediction.number),
                           table_keys::Number(prediction.nonce) + prediction.example});
  // Those of a model that was deleted are of no use.
  return Write(change, /*sync=*/false).status();
}

absl::Status TableJournal::DropPredictions(uint64_t model_id, std::span<const uint64_t> numbers) {
  if (numbers.empty()) return absl::OkStatus();
  TableChange change;
  for (const uint64_t number : numbers)
    change.deletions.push_back(Only(table_keys::Prediction(model_id, number)));
  return Write(change, /*sync=*/false).status();
}

absl::StatusOr<std::vector<KeptPrediction>> TableJournal::LoadPredictions(uint64_t model_id) {
  std::vector<KeptPrediction> predictions;
  const KeyRange range = AllOf(Of(model_id, Kind::kPrediction));
  absl::Status failed;
  absl::Status status = table_->Scan(range, [&](absl::string_view key, absl::string_view value) {
    constexpr size_t kNumber = sizeof(uint64_t);
    if (key.size() != range.begin.size() + kNumber || value.size() < kNumber) {
      failed = absl::DataLossError("journal: a kept prediction does not parse");
      return false;
    }
    predictions.push_back({table_keys::ReadNumber(key.substr(range.begin.size())),
                           table_keys::ReadNumber(value), std::string(value.substr(kNumber))});
    return true;
  });
  if (status.ok()) status = failed;
  if (!status.ok()) return status;
  return predictions;
}

absl::Status TableJournal::CreateLearned(storage::ModelHeader& header,
                                         const storage::Snapshot& snapshot,
                                         const CommittedState& committed, const ModelGuard& guard) {
  const std::string& name = header.model().name();
  const auto check = [&]() -> absl::Status {
    const absl::StatusOr<bool> exists = Exists(name);
    if (!exists.ok()) return exists.status();
    return *exists ? absl::AlreadyExistsError(absl::StrCat(name, " exists")) : Ask(guard);
  };
  const std::string begun = table_keys::Number(static_cast<uint64_t>(absl::GetCurrentTimeNanos()));
  absl::Status status = ChangeNames([&](NamesChange& names) -> absl::Status {
    if (absl::Status refused = check(); !refused.ok()) return refused;
    const absl::StatusOr<uint64_t> id = NextId(names.change);
    if (!id.ok()) return id.status();
    header.set_id(*id);
    names.change.puts.push_back({table_keys::Unfinished(*id), begun});
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  const TableChange::Condition unfinished{table_keys::Unfinished(header.id()), begun};
  const uint64_t slot = RandomSlot();
  const absl::StatusOr<std::vector<uint64_t>> part_bytes =
      WritePieces(table_keys::Pieces(header.id(), slot), snapshot, unfinished);
  status = part_bytes.status();
  if (status.ok()) {
    storage::SnapshotHead head;
    head.set_revision(snapshot.revision());
    head.set_pieces(absl::StrCat(slot));
    head.mutable_part_bytes()->Assign(part_bytes->begin(), part_bytes->end());
    status = ChangeNames([&](NamesChange& names) -> absl::Status {
      TableChange& change = names.change;
      absl::Status made = check();
      change.conditions.push_back(unfinished);
      change.deletions.push_back(Only(unfinished.key));
      change.puts.push_back({table_rows::IsAlive(header.id()).key, ""});
      *names.entry.mutable_model() = header;
      names.entry.set_created(true);
      if (made.ok()) made = table_rows::Put(table_keys::Header(name), header, change);
      if (made.ok()) made = table_rows::Put(Of(header.id(), Kind::kSnapshot), head, change);
      if (made.ok())
        made = table_rows::Put(Of(header.id(), Kind::kCounters), committed.counters, change);
      for (const storage::ProducerPosition& position : committed.positions)
        if (made.ok())
          made =
              table_rows::Put(table_keys::Position(header.id(), position.id()), position, change);
      return made;
    });
  }
  if (status.ok()) return status;
  TableChange leftovers;
  leftovers.conditions.push_back(unfinished);
  leftovers.deletions = {Only(unfinished.key), AllOf(table_keys::Model(header.id()))};
  Write(leftovers, /*sync=*/false).IgnoreError();
  return status;
}

}  // namespace perceptrond
