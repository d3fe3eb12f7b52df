// A journal that passes everything on: the base of those that watch or disturb. Several may share
// one journal below, so that it outlives the store that was given it.
#pragma once

#include <memory>
#include <utility>

#include "core/journal/journal.h"

namespace perceptrond::testing {

class JournalDecorator : public Journal {
 public:
  explicit JournalDecorator(std::shared_ptr<Journal> base) : base_(std::move(base)) {}

  absl::Status Create(storage::ModelHeader& header) override { return base_->Create(header); }
  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override {
    return base_->Find(name);
  }
  absl::Status Replace(const storage::ModelHeader& header) override {
    return base_->Replace(header);
  }
  absl::Status Delete(absl::string_view name) override { return base_->Delete(name); }
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                         size_t limit) override {
    return base_->List(after, limit);
  }
  absl::StatusOr<uint64_t> Count() override { return base_->Count(); }
  absl::Status Commit(std::span<const JournalEntry> entries, bool sync) override {
    return base_->Commit(entries, sync);
  }
  absl::Status Sync() override { return base_->Sync(); }
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override {
    return base_->LoadCommittedState(model_id);
  }
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override {
    return base_->LoadCounters(model_id);
  }
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const std::function<absl::Status(const storage::UpdateRecord&, size_t bytes)>&
                          replay) override {
    return base_->Replay(model_id, after_revision, replay);
  }
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override {
    return base_->LoadSnapshot(model_id);
  }
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override {
    return base_->SaveSnapshot(model_id, snapshot);
  }
  absl::Status DropAfter(uint64_t model_id, uint64_t revision) override {
    return base_->DropAfter(model_id, revision);
  }
  std::string HistoryId() override { return base_->HistoryId(); }
  JournalStats Stats() override { return base_->Stats(); }
  absl::StatusOr<Backup> BackUp(const Backups& backups, uint32_t keep) override {
    return base_->BackUp(backups, keep);
  }

 private:
  const std::shared_ptr<Journal> base_;
};

}  // namespace perceptrond::testing
