// A journal that passes everything on: the base of those that watch or disturb. Several may share
// one journal below, so that it outlives the store that was given it.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/journal/journal.h"

namespace perceptrond::testing {

// Reads each part of a model when it is asked for, as a decorator has it.
class ModelInParts final : public StoredModel {
 public:
  ModelInParts(Journal& journal, uint64_t model_id, CommittedState committed)
      : journal_(journal), model_id_(model_id), committed_(std::move(committed)) {}

  const CommittedState& committed() const override { return committed_; }
  absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() override {
    return journal_.LoadSnapshot(model_id_);
  }
  absl::Status Replay(uint64_t after_revision, const ReplayCallback& replay) override {
    return journal_.Replay(model_id_, after_revision, replay);
  }

 private:
  Journal& journal_;
  const uint64_t model_id_;
  const CommittedState committed_;
};

class JournalDecorator : public Journal {
 public:
  explicit JournalDecorator(std::shared_ptr<Journal> base) : base_(std::move(base)) {}

  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override {
    return base_->Find(name);
  }
  absl::Status Replace(const storage::ModelHeader& header,
                       const storage::ModelHeader& before) override {
    return base_->Replace(header, before);
  }
  absl::Status Rename(const storage::ModelHeader& header,
                      const storage::ModelHeader& before) override {
    return base_->Rename(header, before);
  }
  const AliasMap& aliases() const override { return base_->aliases(); }
  absl::Status PutAlias(const Alias& alias, absl::string_view etag) override {
    return base_->PutAlias(alias, etag);
  }
  absl::Status DeleteAlias(absl::string_view name, absl::string_view etag) override {
    return base_->DeleteAlias(name, etag);
  }
  absl::Status SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                        storage::KeptSnapshot& kept) override {
    return base_->SaveKept(model_id, snapshot, kept);
  }
  absl::StatusOr<storage::Snapshot> LoadKept(uint64_t model_id,
                                             const storage::KeptSnapshot& kept) override {
    return base_->LoadKept(model_id, kept);
  }
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                         size_t limit) override {
    return base_->List(after, limit);
  }
  absl::StatusOr<uint64_t> Count() override { return base_->Count(); }
  uint32_t partitions() const override { return base_->partitions(); }
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override {
    return base_->Commit(entries, options);
  }
  absl::StatusOr<CommitOutcome> TakeOver(uint32_t partition, const std::string& address,
                                         uint64_t expected) override {
    return base_->TakeOver(partition, address, expected);
  }
  absl::StatusOr<bool> ConfirmWriter(uint32_t partition) override {
    return base_->ConfirmWriter(partition);
  }
  absl::StatusOr<uint64_t> LastSequence(uint32_t partition) override {
    return base_->LastSequence(partition);
  }
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override {
    return base_->Tail(partition, after);
  }
  absl::Status Sync() override { return base_->Sync(); }
  absl::Status Sweep() override { return base_->Sweep(); }
  void Close() override { base_->Close(); }
  absl::Status Verify() override { return base_->Verify(); }
  absl::Status Refresh() override { return base_->Refresh(); }
  absl::Status ExcludeOthers() override { return base_->ExcludeOthers(); }
  absl::Status BeginImport() override { return base_->BeginImport(); }
  absl::Status FinishImport() override { return base_->FinishImport(); }
  absl::Status Announce(absl::string_view message) override { return base_->Announce(message); }
  void Listen(std::function<void(absl::string_view message)> listener) override {
    base_->Listen(std::move(listener));
  }
  void WatchModels(ModelWatcher watcher) override { base_->WatchModels(std::move(watcher)); }
  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override {
    absl::StatusOr<CommittedState> committed = LoadCommittedState(model_id);
    if (!committed.ok()) return committed.status();
    return std::make_unique<ModelInParts>(*this, model_id, *std::move(committed));
  }
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override {
    return base_->LoadCommittedState(model_id);
  }
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override {
    return base_->LoadCounters(model_id);
  }
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const ReplayCallback& replay) override {
    return base_->Replay(model_id, after_revision, replay);
  }
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override {
    return base_->LoadSnapshot(model_id);
  }
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override {
    return base_->SaveSnapshot(model_id, snapshot);
  }
  absl::StatusOr<storage::History> LoadHistory(uint64_t model_id) override {
    return base_->LoadHistory(model_id);
  }
  absl::Status DropAfter(uint64_t model_id, uint64_t revision) override {
    return base_->DropAfter(model_id, revision);
  }
  bool keeps_predictions() const override { return base_->keeps_predictions(); }
  absl::Status SavePredictions(uint64_t model_id,
                               std::span<const KeptPrediction> predictions) override {
    return base_->SavePredictions(model_id, predictions);
  }
  absl::Status DropPredictions(uint64_t model_id, std::span<const uint64_t> numbers) override {
    return base_->DropPredictions(model_id, numbers);
  }
  absl::StatusOr<std::vector<KeptPrediction>> LoadPredictions(uint64_t model_id) override {
    return base_->LoadPredictions(model_id);
  }
  std::string Id() override { return base_->Id(); }
  JournalStats Stats() override { return base_->Stats(); }
  absl::StatusOr<Backup> BackUp(const Backups& backups, uint32_t keep) override {
    return base_->BackUp(backups, keep);
  }

 protected:
  Journal& base() { return *base_; }
  absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) override {
    return base_->Create(header, guard);
  }
  absl::Status DeleteModel(absl::string_view name, const ModelGuard& guard) override {
    return base_->Delete(name, guard);
  }
  absl::Status CreateLearned(storage::ModelHeader& header, const storage::Snapshot& snapshot,
                             const CommittedState& committed, const ModelGuard& guard) override {
    return base_->CreateWith(header, snapshot, committed, guard);
  }

 private:
  const std::shared_ptr<Journal> base_;
};

}  // namespace perceptrond::testing
