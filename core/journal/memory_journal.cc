#include "core/journal/memory_journal.h"

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

absl::Status NoSuchModel(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no model ", name));
}

}  // namespace

MemoryJournal::Shared::Shared(const Options& options)
    : partition_count(options.partitions), partitions(options.partitions) {
  for (Partition& partition : partitions)
    partition.recent = std::make_shared<RecentEntries>(options.tail_bytes);
}

absl::Status MemoryJournal::Shared::Ask(const ModelGuard& guard) {
  if (guard == nullptr) return absl::OkStatus();
  ModelsNow now;
  now.find = [&](absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = headers.find(name);
    return found == headers.end() ? nullptr : &found->second;
  };
  now.count = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) -> absl::StatusOr<uint64_t> {
    return headers.size();
  };
  return guard(now);
}

absl::Status MemoryJournal::CreateModel(storage::ModelHeader& header, const ModelGuard& guard) {
  MutexLock lock(&shared_->mutex);
  const std::string& name = header.model().name();
  if (shared_->headers.contains(name))
    return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
  if (absl::Status status = shared_->Ask(guard); !status.ok()) return status;
  header.set_id(++shared_->last_id);
  shared_->headers.emplace(name, header);
  shared_->models.try_emplace(header.id());
  return absl::OkStatus();
}

absl::StatusOr<storage::ModelHeader> MemoryJournal::Find(absl::string_view name) {
  MutexLock lock(&shared_->mutex);
  const auto found = shared_->headers.find(name);
  if (found == shared_->headers.end()) return NoSuchModel(name);
  return found->second;
}

absl::Status MemoryJournal::Replace(const storage::ModelHeader& header,
                                    const storage::ModelHeader& before) {
  {
    MutexLock lock(&shared_->mutex);
    const auto found = shared_->headers.find(header.model().name());
    if (found == shared_->headers.end() || found->second.id() != header.id())
      return NoSuchModel(header.model().name());
    if (!IsSame(found->second, before)) return ChangedByAnother(header.model().name());
    found->second = header;
  }
  TellWatchers(header, false);
  return absl::OkStatus();
}

absl::Status MemoryJournal::DeleteModel(absl::string_view name, const ModelGuard& guard) {
  storage::ModelHeader deleted;
  {
    MutexLock lock(&shared_->mutex);
    const auto found = shared_->headers.find(name);
    if (found == shared_->headers.end()) return NoSuchModel(name);
    if (const std::vector<Alias> aliases = shared_->aliases.AllOf(name); !aliases.empty())
      return NamedBy(aliases.front().name(), name);
    if (absl::Status status = shared_->Ask(guard); !status.ok()) return status;
    deleted = std::move(found->second);
    shared_->models.erase(deleted.id());
    shared_->headers.erase(found);
  }
  TellWatchers(deleted, true);
  return absl::OkStatus();
}

MemoryJournal::~MemoryJournal() {
  MutexLock lock(&shared_->listeners_mutex);
  shared_->listeners.erase(this);
  shared_->watchers.erase(this);
}

absl::Status MemoryJournal::Announce(absl::string_view message) {
  MutexLock lock(&shared_->listeners_mutex);
  for (const auto& [journal, listener] : shared_->listeners) {
    if (journal != this && listener != nullptr) listener(message);
  }
  return absl::OkStatus();
}

void MemoryJournal::Listen(std::function<void(absl::string_view)> listener) {
  MutexLock lock(&shared_->listeners_mutex);
  shared_->listeners[this] = std::move(listener);
}

void MemoryJournal::WatchModels(ModelWatcher watcher) {
  MutexLock lock(&shared_->listeners_mutex);
  shared_->watchers[this] = std::move(watcher);
}

void MemoryJournal::TellWatchers(const storage::ModelHeader& header, bool deleted) {
  MutexLock lock(&shared_->listeners_mutex);
  for (const auto& [journal, watcher] : shared_->watchers) {
    if (journal != this && watcher != nullptr) watcher(header, deleted);
  }
}

absl::StatusOr<std::vector<storage::ModelHeader>> MemoryJournal::List(absl::string_view after,
                                                                      size_t limit) {
  MutexLock lock(&shared_->mutex);
  std::vector<storage::ModelHeader> page;
  for (auto it = shared_->headers.upper_bound(after);
       it != shared_->headers.end() && page.size() < limit; ++it) {
    page.push_back(it->second);
  }
  return page;
}

absl::StatusOr<uint64_t> MemoryJournal::Count() {
  MutexLock lock(&shared_->mutex);
  return shared_->headers.size();
}

absl::StatusOr<CommitOutcome> MemoryJournal::Commit(std::span<const JournalEntry> entries,
                                                    const CommitOptions& options) {
  if (entries.empty()) return absl::InvalidArgumentError("a commit has an entry");
  MutexLock lock(&shared_->mutex);
  const uint32_t number = PartitionOf(entries.front().model_id);
  Partition& partition = shared_->partitions[number];
  std::optional<uint64_t> expected = options.expected;
  if (!expected.has_value() && partition.epoch > 0) expected = own_writes_[number];
  if (expected.value_or(partition.last_sequence) != partition.last_sequence)
    return CommitOutcome{0, /*stale=*/true, partition.last_sequence};
  for (const JournalEntry& entry : entries) {
    const auto found = shared_->models.find(entry.model_id);
    if (found == shared_->models.end()) continue;  // deleted during its last commit
    ModelData& data = found->second;
    for (const storage::UpdateRecord& record : entry.records) {
      data.records[LastRevision(record)] = std::make_shared<storage::UpdateRecord>(record);
    }
    data.counters = entry.counters;
    for (const storage::ProducerPosition& position : entry.positions)
      data.positions[position.id()] = position;
  }
  partition.last_sequence += entries.size();
  own_writes_[number] = partition.last_sequence;
  partition.recent->Add(entries, partition.last_sequence, partition.epoch);
  return CommitOutcome{entries.size(), /*stale=*/false, partition.last_sequence};
}

absl::StatusOr<CommitOutcome> MemoryJournal::TakeOver(uint32_t number, const std::string& address,
                                                      uint64_t expected) {
  MutexLock lock(&shared_->mutex);
  Partition& partition = shared_->partitions[number];
  if (expected != partition.last_sequence)
    return CommitOutcome{0, /*stale=*/true, partition.last_sequence};
  own_writes_[number] = ++partition.last_sequence;
  own_epochs_[number] = partition.epoch = static_cast<int64_t>(partition.last_sequence);
  storage::TakeOver take_over;
  take_over.set_epoch(partition.epoch);
  take_over.set_address(address);
  partition.recent->AddTakeOver(take_over, partition.last_sequence);
  return CommitOutcome{1, /*stale=*/false, partition.last_sequence};
}

absl::StatusOr<uint64_t> MemoryJournal::LastSequence(uint32_t partition) {
  MutexLock lock(&shared_->mutex);
  return shared_->partitions[partition].last_sequence;
}

absl::StatusOr<std::unique_ptr<JournalTail>> MemoryJournal::Tail(uint32_t partition,
                                                                 uint64_t after) {
  MutexLock lock(&shared_->mutex);
  return TailOf(shared_->partitions[partition].recent, after, shared_->partitions[partition].epoch);
}

// The parts of a model at one moment.
class MemoryJournal::Stored final : public StoredModel {
 public:
  Stored(const ModelData& data, const Partition& partition)
      : committed_{data.counters, {}, partition.last_sequence, partition.epoch},
        snapshot_(data.snapshot) {
    for (const auto& [id, position] : data.positions) committed_.positions.push_back(position);
    for (const auto& [revision, record] : data.records) records_.push_back(record);
  }

  const CommittedState& committed() const override { return committed_; }
  absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() override {
    return snapshot_ == nullptr ? std::nullopt : std::optional(*snapshot_);
  }
  absl::Status Replay(uint64_t after_revision, const ReplayCallback& replay) override {
    for (const std::shared_ptr<const storage::UpdateRecord>& record : records_) {
      if (LastRevision(*record) <= after_revision) continue;
      if (absl::Status status = replay(*record, record->ByteSizeLong()); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

 private:
  CommittedState committed_;
  const std::shared_ptr<const storage::Snapshot> snapshot_;
  std::vector<std::shared_ptr<const storage::UpdateRecord>> records_;
};

absl::StatusOr<std::unique_ptr<StoredModel>> MemoryJournal::Load(uint64_t model_id) {
  MutexLock lock(&shared_->mutex);
  return std::make_unique<Stored>(shared_->models[model_id],
                                  shared_->partitions[PartitionOf(model_id)]);
}

absl::StatusOr<CommittedState> MemoryJournal::LoadCommittedState(uint64_t model_id) {
  const absl::StatusOr<std::unique_ptr<StoredModel>> stored = Load(model_id);
  return (*stored)->committed();
}

absl::StatusOr<storage::Counters> MemoryJournal::LoadCounters(uint64_t model_id) {
  MutexLock lock(&shared_->mutex);
  return shared_->models[model_id].counters;
}

absl::Status MemoryJournal::Replay(uint64_t model_id, uint64_t after_revision,
                                   const ReplayCallback& replay) {
  return (*Load(model_id))->Replay(after_revision, replay);
}

absl::StatusOr<std::optional<storage::Snapshot>> MemoryJournal::LoadSnapshot(uint64_t model_id) {
  return (*Load(model_id))->TakeSnapshot();
}

absl::Status MemoryJournal::SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) {
  MutexLock lock(&shared_->mutex);
  const auto found = shared_->models.find(model_id);
  if (found == shared_->models.end()) return absl::OkStatus();
  ModelData& data = found->second;
  data.snapshot = std::make_shared<const storage::Snapshot>(snapshot);
  const uint64_t dropped =
      snapshot.has_history() ? snapshot.history().begin() : snapshot.revision();
  data.records.erase(data.records.begin(), data.records.upper_bound(dropped));
  return absl::OkStatus();
}

absl::StatusOr<storage::History> MemoryJournal::LoadHistory(uint64_t model_id) {
  MutexLock lock(&shared_->mutex);
  const std::shared_ptr<const storage::Snapshot>& snapshot = shared_->models[model_id].snapshot;
  if (snapshot == nullptr) return storage::History();
  if (snapshot->has_history()) return snapshot->history();
  storage::History none;
  none.set_revision(snapshot->revision());
  none.set_begin(snapshot->revision());
  return none;
}

absl::Status MemoryJournal::DropAfter(uint64_t model_id, uint64_t revision) {
  MutexLock lock(&shared_->mutex);
  ModelData& data = shared_->models[model_id];
  data.records.erase(data.records.upper_bound(revision), data.records.end());
  return absl::OkStatus();
}

}  // namespace perceptrond
