#include "core/journal/jetstream/jetstream_journal.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/snapshot_parts.h"

namespace perceptrond {
namespace {

using jetstream::NewMessage;
using jetstream::StoredEntries;
using jetstream::Stream;
using jetstream::StreamMessage;

constexpr absl::Duration kTimeout = absl::Seconds(5);
// A model that gets a new snapshot while its old one is read is read again.
constexpr int kAttempts = 10;
// NATS notices within five seconds that a reader ended without a word.
constexpr absl::Duration kOthersTimeout = absl::Seconds(10);
constexpr absl::Duration kPoll = absl::Milliseconds(200);

std::string NewHistoryId() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

class FleetModel final : public StoredModel {
 public:
  FleetModel(StoredEntries entries, std::optional<storage::Snapshot> snapshot)
      : entries_(std::move(entries)),
        snapshot_(std::move(snapshot)),
        committed_(entries_.StateAt(entries_.last_sequence())) {}

  const CommittedState& committed() const override { return committed_; }
  absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() override {
    return std::exchange(snapshot_, std::nullopt);
  }
  absl::Status Replay(uint64_t after_revision, const ReplayCallback& replay) override {
    // An entry that a snapshot covers in part has records that it covers whole.
    if (entries_.head.has_value())
      after_revision = std::max<uint64_t>(after_revision, entries_.head->revision());
    return entries_.Replay(after_revision, replay);
  }

 private:
  const StoredEntries entries_;
  std::optional<storage::Snapshot> snapshot_;
  const CommittedState committed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<JetStreamJournal>> JetStreamJournal::Open(const Options& options) {
  std::unique_ptr<JetStreamJournal> journal(new JetStreamJournal(options));
  if (absl::Status status = journal->OpenStreams(); !status.ok()) return status;
  return journal;
}

absl::Status JetStreamJournal::OpenStreams() {
  jetstream::ConnectionOptions to = options_.connection;
  // No other user of the cluster need be able to read them.
  to.inbox_prefix = absl::StrCat(options_.fleet, ".inbox");
  const absl::Time begin = absl::Now();
  absl::StatusOr<std::shared_ptr<jetstream::Connection>> connection =
      jetstream::Connection::Open(to);
  if (!connection.ok()) return connection.status();
  const absl::Status status = OpenStreams(*connection);
  if (status.ok()) return status;
  // Whatever failed for it: it stays so until somebody allows it.
  const std::string denied = (*connection)->DeniedSince(begin);
  if (denied.empty()) return status;
  return absl::PermissionDeniedError(absl::StrCat(
      "NATS: ", denied, ": allow it to this server's user, as deploy/nats/nats.conf does"));
}

absl::Status JetStreamJournal::OpenStreams(
    const std::shared_ptr<jetstream::Connection>& connection) {
  const auto open = [&](const std::string& name, std::unique_ptr<Stream>& stream) {
    absl::StatusOr<std::unique_ptr<Stream>> opened =
        Stream::Open(connection, {.name = absl::StrCat(options_.fleet, "-", name),
                                  .subject = absl::StrCat(options_.fleet, ".", name),
                                  .replicas = options_.replicas,
                                  .must_exist = options_.read_only,
                                  .in_memory = options_.in_memory});
    if (opened.ok()) stream = *std::move(opened);
    if (!absl::IsNotFound(opened.status())) return opened.status();
    return absl::NotFoundError(absl::StrCat("NATS has no fleet ", options_.fleet,
                                            ": there is no stream ", options_.fleet, "-", name));
  };
  absl::Status status = open("catalogue", catalogue_stream_);
  if (status.ok()) status = open("snapshots", snapshots_);
  storage::FleetSettings settings;
  settings.set_partitions(options_.partitions);
  settings.set_history_id(NewHistoryId());
  // Those of the fleet there is: if others are asked for, the catalogue refuses them, and no stream is
  // created for them.
  uint32_t partitions = settings.partitions();
  if (status.ok()) {
    absl::StatusOr<storage::FleetSettings> found =
        jetstream::Catalogue::ReadSettings(*catalogue_stream_);
    const bool is_new = !options_.read_only && absl::IsNotFound(found.status());
    if (!found.ok() && !is_new) return found.status();
    if (!is_new) partitions = found->partitions();
    if (options_.read_only) settings = *std::move(found);
  }
  for (uint32_t i = 0; status.ok() && i < partitions; ++i) {
    std::unique_ptr<Stream> stream;
    status = open(absl::StrCat("p", i), stream);
    partitions_.push_back(std::make_unique<jetstream::Partition>(std::move(stream)));
  }
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<jetstream::Announcements>> announcements =
      jetstream::Announcements::Open(connection, absl::StrCat(options_.fleet, ".announcements"));
  if (!announcements.ok()) return announcements.status();
  announcements_ = *std::move(announcements);
  absl::StatusOr<std::unique_ptr<jetstream::Catalogue>> catalogue =
      jetstream::Catalogue::Open(*catalogue_stream_, settings, options_.import.has_value());
  if (catalogue.ok()) catalogue_ = *std::move(catalogue);
  return catalogue.status();
}

absl::Status JetStreamJournal::CheckWritable() const {
  if (!options_.read_only) return absl::OkStatus();
  return absl::FailedPreconditionError("the fleet's journal was opened for reading alone");
}

absl::Status JetStreamJournal::AwaitOthersEnd() const {
  for (const absl::Time deadline = absl::Now() + kOthersTimeout;;) {
    const absl::StatusOr<int64_t> readers = catalogue_stream_->Readers();
    if (!readers.ok()) return readers.status();
    // The catalogue here is one.
    if (*readers <= 1) return absl::OkStatus();
    if (absl::Now() > deadline) {
      return absl::FailedPreconditionError(absl::StrCat(
          *readers - 1, " servers or commands use the fleet ", options_.fleet,
          " (consumers of the stream ", catalogue_stream_->options().name, "): stop them first"));
    }
    absl::SleepFor(kPoll);
  }
}

absl::Status JetStreamJournal::ExcludeOthers() {
  if (absl::Status status = AwaitOthersEnd(); !status.ok()) return status;
  for (uint32_t i = 0; i < partitions(); ++i) {
    for (bool done = false; !done;) {
      const absl::StatusOr<uint64_t> last = LastSequence(i);
      if (!last.ok()) return last.status();
      const absl::StatusOr<CommitOutcome> outcome = TakeOver(i, "", *last);
      if (!outcome.ok()) return outcome.status();
      // A writer that was seen by nobody has written just now.
      done = !outcome->stale;
    }
  }
  return absl::OkStatus();
}

absl::Status JetStreamJournal::BeginImport() {
  if (!options_.import.has_value()) return Journal::BeginImport();
  if (absl::Status status = AwaitOthersEnd(); !status.ok()) return status;
  const std::optional<storage::Import> begun = catalogue_->import();
  if (!begun.has_value() || begun->finished()) {
    if (const uint64_t models = catalogue_->Count(); models > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the fleet ", options_.fleet, " has ", models,
                       " models: delete them, or name another fleet with --fleet"));
    }
    if (absl::Status status = catalogue_->SetImport(storage::Import()); !status.ok()) return status;
  }
  // A server that was started meanwhile notices the import and ends, or is noticed here.
  return ExcludeOthers();
}

absl::Status JetStreamJournal::FinishImport() {
  if (!options_.import.has_value()) return Journal::FinishImport();
  storage::Import import;
  import.set_finished(true);
  import.set_id(options_.import->id);
  import.set_history_id(options_.import->history_id.empty() ? NewHistoryId()
                                                            : options_.import->history_id);
  return catalogue_->SetImport(import);
}

absl::Status JetStreamJournal::CreateModel(storage::ModelHeader& header, const ModelGuard& guard) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return catalogue_->Create(header, guard);
}

absl::StatusOr<storage::ModelHeader> JetStreamJournal::Find(absl::string_view name) {
  return catalogue_->Find(name);
}

absl::Status JetStreamJournal::Replace(const storage::ModelHeader& header,
                                       const storage::ModelHeader& before) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return catalogue_->Replace(header, before);
}

absl::Status JetStreamJournal::DeleteModel(absl::string_view name, const ModelGuard& guard) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  const absl::StatusOr<storage::ModelHeader> deleted = catalogue_->Delete(name, guard);
  if (!deleted.ok()) return deleted.status();
  // The model is gone; what it leaves takes space alone.
  PartitionFor(deleted->id()).Delete(deleted->id()).IgnoreError();
  snapshots_->DeleteAll(PiecesOf(deleted->id()) + ".>").IgnoreError();
  if (!deleted->kept_snapshots().empty())
    snapshots_->DeleteAll(KeptPiecesOf(deleted->id()) + ".>").IgnoreError();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<storage::ModelHeader>> JetStreamJournal::List(absl::string_view after,
                                                                         size_t limit) {
  return catalogue_->List(after, limit);
}

absl::StatusOr<uint64_t> JetStreamJournal::Count() { return catalogue_->Count(); }

absl::StatusOr<CommitOutcome> JetStreamJournal::Commit(std::span<const JournalEntry> entries,
                                                       const CommitOptions& options) {
  if (entries.empty()) return absl::InvalidArgumentError("a commit has an entry");
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return PartitionFor(entries.front().model_id).Commit(entries, options.expected);
}

absl::StatusOr<CommitOutcome> JetStreamJournal::TakeOver(uint32_t partition,
                                                         const std::string& address,
                                                         uint64_t expected) {
  return partitions_[partition]->TakeOver(address, expected);
}

absl::StatusOr<uint64_t> JetStreamJournal::LastSequence(uint32_t partition) {
  return partitions_[partition]->LastSequence();
}

absl::StatusOr<std::unique_ptr<JournalTail>> JetStreamJournal::Tail(uint32_t partition,
                                                                    uint64_t after) {
  return partitions_[partition]->Tail(after);
}

std::string JetStreamJournal::PiecesOf(uint64_t model_id) const {
  return absl::StrCat(snapshots_->options().subject, ".", model_id);
}

absl::StatusOr<storage::Snapshot> JetStreamJournal::ReadPieces(
    const std::string& subject, std::span<const uint64_t> part_bytes) {
  const absl::StatusOr<std::unique_ptr<jetstream::StreamReader>> reader =
      snapshots_->Read(subject, 0);
  if (!reader.ok()) return reader.status();
  storage::Snapshot snapshot;
  uint64_t read = 0;
  for (const uint64_t size : part_bytes) {
    std::string bytes;
    while (bytes.size() < size) {
      const absl::StatusOr<std::optional<StreamMessage>> piece = (*reader)->Next(kTimeout);
      if (!piece.ok()) return piece.status();
      if (!piece->has_value()) {
        const absl::StatusOr<std::optional<StreamMessage>> last = snapshots_->Last(subject);
        if (!last.ok()) return last.status();
        if (last->has_value() && (*last)->sequence > read)
          return absl::UnavailableError("NATS: a snapshot cannot be read to its end now");
        return absl::DataLossError("journal: pieces of a snapshot are missing");
      }
      read = (*piece)->sequence;
      bytes += (*piece)->data;
    }
    storage::Snapshot part;
    if (bytes.size() != size || !part.ParseFromString(bytes))
      return absl::DataLossError("journal: a snapshot does not parse");
    if (absl::Status status = AppendPart(std::move(part), snapshot); !status.ok()) return status;
  }
  return snapshot;
}

absl::StatusOr<JetStreamJournal::WrittenPieces> JetStreamJournal::WritePieces(
    const std::string& subject, const storage::Snapshot& snapshot) {
  WrittenPieces written;
  const auto write = [&](const storage::Snapshot& part) {
    const std::string bytes = part.SerializeAsString();
    written.part_bytes.push_back(bytes.size());
    std::vector<NewMessage> pieces;
    for (size_t at = 0; at < bytes.size() || pieces.empty(); at += snapshots_->max_data())
      pieces.push_back({subject, bytes.substr(at, snapshots_->max_data()), ""});
    const absl::StatusOr<jetstream::AppendOutcome> outcome =
        snapshots_->Append(pieces, std::nullopt, kTimeout);
    if (!outcome.ok()) return outcome.status();
    if (outcome->written < pieces.size()) return outcome->refused;
    if (written.first == 0) written.first = outcome->first;
    return absl::OkStatus();
  };
  const absl::Status status = ForEachPart(snapshot, options_.snapshot_part_bytes, write);
  if (status.ok()) return written;
  snapshots_->DeleteAll(subject).IgnoreError();
  return status;
}

absl::StatusOr<std::unique_ptr<StoredModel>> JetStreamJournal::Load(uint64_t model_id) {
  absl::Status missing;
  std::string pieces;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    absl::StatusOr<StoredEntries> entries = PartitionFor(model_id).Read(model_id);
    if (!entries.ok()) return entries.status();
    if (!entries->head.has_value())
      return std::make_unique<FleetModel>(*std::move(entries), std::nullopt);
    // The same snapshot as before: its pieces are lost, and not replaced.
    if (attempt > 0 && entries->head->pieces() == pieces) return missing;
    const storage::SnapshotHead& head = *entries->head;
    absl::StatusOr<storage::Snapshot> snapshot =
        ReadPieces(absl::StrCat(PiecesOf(model_id), ".", head.pieces()),
                   {head.part_bytes().data(), static_cast<size_t>(head.part_bytes_size())});
    if (snapshot.ok() && snapshot->revision() != head.revision())
      return absl::DataLossError("journal: a snapshot is of another revision than its head says");
    if (snapshot.ok())
      return std::make_unique<FleetModel>(*std::move(entries), *std::move(snapshot));
    if (!absl::IsDataLoss(snapshot.status())) return snapshot.status();
    missing = snapshot.status();
    pieces = entries->head->pieces();
  }
  return missing;
}

absl::StatusOr<CommittedState> JetStreamJournal::LoadCommittedState(uint64_t model_id) {
  const absl::StatusOr<StoredEntries> entries = PartitionFor(model_id).Read(model_id);
  if (!entries.ok()) return entries.status();
  return entries->StateAt(entries->last_sequence());
}

absl::StatusOr<storage::Counters> JetStreamJournal::LoadCounters(uint64_t model_id) {
  absl::StatusOr<std::optional<storage::Counters>> last =
      PartitionFor(model_id).LastCounters(model_id);
  if (!last.ok()) return last.status();
  if (last->has_value()) return **std::move(last);
  absl::StatusOr<CommittedState> state = LoadCommittedState(model_id);
  if (!state.ok()) return state.status();
  return std::move(state->counters);
}

absl::StatusOr<std::optional<storage::Snapshot>> JetStreamJournal::LoadSnapshot(uint64_t model_id) {
  const absl::StatusOr<std::unique_ptr<StoredModel>> stored = Load(model_id);
  if (!stored.ok()) return stored.status();
  return (*stored)->TakeSnapshot();
}

absl::Status JetStreamJournal::SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  const absl::StatusOr<StoredEntries> entries = PartitionFor(model_id).Read(model_id);
  if (!entries.ok()) return entries.status();
  // The last entry that the snapshot covers whole.
  uint64_t sequence = entries->head.has_value() ? entries->head->sequence() : 0;
  for (const auto& [own, entry] : entries->entries) {
    if (entry.counters().report().updates() <= snapshot.revision()) sequence = own;
  }
  const CommittedState state = entries->StateAt(sequence);
  storage::SnapshotHead head;
  head.set_revision(snapshot.revision());
  head.set_sequence(sequence);
  *head.mutable_counters() = state.counters;
  head.mutable_positions()->Assign(state.positions.begin(), state.positions.end());
  uint64_t last_deleted = sequence;
  if (snapshot.has_history()) {
    storage::History& history = *head.mutable_history() = snapshot.history();
    for (storage::HistorySegment& segment : *history.mutable_segments()) {
      if (segment.revision() == snapshot.revision()) segment.set_sequence(sequence);
    }
    last_deleted = entries->LastCovered(history.begin());
  }
  head.set_pieces(absl::StrCat(snapshot.revision(), "-", absl::GetCurrentTimeNanos()));
  const std::string subject = absl::StrCat(PiecesOf(model_id), ".", head.pieces());
  const absl::StatusOr<WrittenPieces> written = WritePieces(subject, snapshot);
  if (!written.ok()) return written.status();
  head.mutable_part_bytes()->Assign(written->part_bytes.begin(), written->part_bytes.end());
  const uint64_t first = written->first;
  const absl::StatusOr<uint64_t> set = PartitionFor(model_id).SetSnapshot(model_id, head);
  if (!set.ok()) {
    // The head may be there nevertheless, or come: then the pieces belong to it.
    if (absl::IsUnknown(set.status())) return absl::UnavailableError(set.status().message());
    snapshots_->DeleteAll(subject).IgnoreError();
    return set.status();
  }
  // Whatever fails from here on, the head has its pieces.
  absl::Status status = PartitionFor(model_id).DeleteCovered(model_id, last_deleted, *set);
  if (status.ok()) status = snapshots_->DeleteUpTo(PiecesOf(model_id) + ".>", first - 1);
  return status;
}

}  // namespace perceptrond
