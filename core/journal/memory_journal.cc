#include "core/journal/memory_journal.h"

#include "absl/strings/str_cat.h"

namespace perceptrond {

absl::StatusOr<Backup> Journal::BackUp(const Backups& /*backups*/, uint32_t /*keep*/) {
  return absl::FailedPreconditionError("models in memory cannot be backed up");
}
namespace {

absl::Status NoSuchModel(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no model ", name));
}

}  // namespace

absl::Status MemoryJournal::Create(storage::ModelHeader& header) {
  MutexLock lock(&mutex_);
  const std::string& name = header.model().name();
  if (headers_.contains(name)) return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
  header.set_id(++last_id_);
  headers_.emplace(name, header);
  models_.try_emplace(header.id());
  return absl::OkStatus();
}

absl::StatusOr<storage::ModelHeader> MemoryJournal::Find(absl::string_view name) {
  MutexLock lock(&mutex_);
  const auto found = headers_.find(name);
  if (found == headers_.end()) return NoSuchModel(name);
  return found->second;
}

absl::Status MemoryJournal::Replace(const storage::ModelHeader& header) {
  MutexLock lock(&mutex_);
  const auto found = headers_.find(header.model().name());
  if (found == headers_.end() || found->second.id() != header.id())
    return NoSuchModel(header.model().name());
  found->second = header;
  return absl::OkStatus();
}

absl::Status MemoryJournal::Delete(absl::string_view name) {
  MutexLock lock(&mutex_);
  const auto found = headers_.find(name);
  if (found == headers_.end()) return NoSuchModel(name);
  models_.erase(found->second.id());
  headers_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<storage::ModelHeader>> MemoryJournal::List(absl::string_view after,
                                                                      size_t limit) {
  MutexLock lock(&mutex_);
  std::vector<storage::ModelHeader> page;
  for (auto it = headers_.upper_bound(after); it != headers_.end() && page.size() < limit; ++it) {
    page.push_back(it->second);
  }
  return page;
}

absl::StatusOr<uint64_t> MemoryJournal::Count() {
  MutexLock lock(&mutex_);
  return headers_.size();
}

absl::Status MemoryJournal::Commit(std::span<const JournalEntry> entries, bool /*sync*/) {
  MutexLock lock(&mutex_);
  for (const JournalEntry& entry : entries) {
    const auto found = models_.find(entry.model_id);
    if (found == models_.end()) continue;  // deleted during its last commit
    ModelData& data = found->second;
    for (const storage::UpdateRecord& record : entry.records) {
      data.records[LastRevision(record)] = std::make_shared<storage::UpdateRecord>(record);
    }
    data.counters = entry.counters;
    for (const storage::ProducerPosition& position : entry.positions)
      data.positions[position.id()] = position;
  }
  return absl::OkStatus();
}

absl::StatusOr<CommittedState> MemoryJournal::LoadCommittedState(uint64_t model_id) {
  MutexLock lock(&mutex_);
  const ModelData& data = models_[model_id];
  CommittedState committed{data.counters, {}};
  for (const auto& [id, position] : data.positions) committed.positions.push_back(position);
  return committed;
}

absl::StatusOr<storage::Counters> MemoryJournal::LoadCounters(uint64_t model_id) {
  MutexLock lock(&mutex_);
  return models_[model_id].counters;
}

absl::Status MemoryJournal::Replay(
    uint64_t model_id, uint64_t after_revision,
    const std::function<absl::Status(const storage::UpdateRecord&, size_t bytes)>& replay) {
  std::vector<std::shared_ptr<const storage::UpdateRecord>> records;
  {
    MutexLock lock(&mutex_);
    const ModelData& data = models_[model_id];
    for (auto it = data.records.upper_bound(after_revision); it != data.records.end(); ++it) {
      records.push_back(it->second);
    }
  }
  for (const auto& record : records) {
    if (absl::Status status = replay(*record, record->ByteSizeLong()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<storage::Snapshot>> MemoryJournal::LoadSnapshot(uint64_t model_id) {
  MutexLock lock(&mutex_);
  return models_[model_id].snapshot;
}

absl::Status MemoryJournal::SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) {
  MutexLock lock(&mutex_);
  const auto found = models_.find(model_id);
  if (found == models_.end()) return absl::OkStatus();
  ModelData& data = found->second;
  data.snapshot = snapshot;
  data.records.erase(data.records.begin(), data.records.upper_bound(snapshot.revision()));
  return absl::OkStatus();
}

absl::Status MemoryJournal::DropAfter(uint64_t model_id, uint64_t revision) {
  MutexLock lock(&mutex_);
  ModelData& data = models_[model_id];
  data.records.erase(data.records.upper_bound(revision), data.records.end());
  return absl::OkStatus();
}

}  // namespace perceptrond
