// A journal in memory: aliases, other names, kept snapshots and copies of models.
#include "absl/strings/str_cat.h"
#include "core/journal/memory_journal.h"

namespace perceptrond {
absl::Status MemoryJournal::Rename(const storage::ModelHeader& header,
                                   const storage::ModelHeader& before) {
  const std::string& name_before = before.model().name();
  storage::ModelHeader renamed;
  {
    MutexLock lock(&shared_->mutex);
    const auto found = shared_->headers.find(name_before);
    if (found == shared_->headers.end() || found->second.id() != header.id())
      return absl::NotFoundError(absl::StrCat("there is no model ", name_before));
    if (!IsSame(found->second, before)) return ChangedByAnother(name_before);
    const std::string& name = header.model().name();
    if (!shared_->headers.emplace(name, header).second)
      return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
    renamed = std::move(found->second);
    shared_->headers.erase(found);
    for (Alias alias : shared_->aliases.AllOf(name_before)) {
      alias.set_model(name);
      shared_->aliases.Put(alias);
    }
  }
  TellWatchers(renamed, true);
  return absl::OkStatus();
}

absl::Status MemoryJournal::PutAlias(const Alias& alias, absl::string_view etag) {
  MutexLock lock(&shared_->mutex);
  absl::Status status = shared_->aliases.CheckEtag(alias.name(), etag);
  if (!status.ok()) return status;
  if (!shared_->headers.contains(alias.model()))
    return absl::NotFoundError(absl::StrCat("there is no model ", alias.model()));
  shared_->aliases.Put(alias);
  return status;
}

absl::Status MemoryJournal::DeleteAlias(absl::string_view name, absl::string_view etag) {
  MutexLock lock(&shared_->mutex);
  absl::Status status = shared_->aliases.CheckEtag(name, etag);
  if (status.ok()) shared_->aliases.Remove(name);
  return status;
}

absl::Status MemoryJournal::SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                                     storage::KeptSnapshot& kept) {
  MutexLock lock(&shared_->mutex);
  const uint32_t partition = PartitionOf(model_id);
  const int64_t epoch = own_epochs_[partition];
  if (epoch != shared_->partitions[partition].epoch) return WrittenByAnother();
  kept.set_epoch(epoch);
  kept.clear_part_bytes();
  kept.add_part_bytes(snapshot.ByteSizeLong());
  shared_->models[model_id].kept[{kept.number(), epoch}] =
      std::make_shared<const storage::Snapshot>(snapshot);
  return absl::OkStatus();
}

absl::StatusOr<storage::Snapshot> MemoryJournal::LoadKept(uint64_t model_id,
                                                          const storage::KeptSnapshot& kept) {
  MutexLock lock(&shared_->mutex);
  const auto& there = shared_->models[model_id].kept;
  const auto found = there.find({kept.number(), kept.epoch()});
  if (found == there.end()) return absl::DataLossError("journal: a kept snapshot is missing");
  return *found->second;
}

absl::Status MemoryJournal::DeleteKept(uint64_t model_id, const storage::KeptSnapshot& kept) {
  MutexLock lock(&shared_->mutex);
  shared_->models[model_id].kept.erase({kept.number(), kept.epoch()});
  return absl::OkStatus();
}

absl::Status MemoryJournal::CreateLearned(storage::ModelHeader& header,
                                          const storage::Snapshot& snapshot,
                                          const CommittedState& committed,
                                          const ModelGuard& guard) {
  MutexLock lock(&shared_->mutex);
  const std::string& name = header.model().name();
  if (shared_->headers.contains(name))
    return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
  if (absl::Status status = shared_->Ask(guard); !status.ok()) return status;
  header.set_id(++shared_->last_id);
  shared_->headers.emplace(name, header);
  ModelData& data = shared_->models[header.id()];
  data.counters = committed.counters;
  for (const storage::ProducerPosition& position : committed.positions)
    data.positions[position.id()] = position;
  data.snapshot = std::make_shared<const storage::Snapshot>(snapshot);
  return absl::OkStatus();
}

}  // namespace perceptrond
