// A store whose journal several servers open: what it does when a partition gets another writer,
// and when another server changes a model.
#include <utility>

#include "core/error/error.h"
#include "core/fleet/fleet.h"
#include "core/settings/settings.h"
#include "core/store/model_expiry.h"
#include "core/store/store.h"

namespace perceptrond {

void Store::JoinFleet() {
  Fleet::Hooks hooks;
  hooks.drop = [this](const std::vector<std::shared_ptr<Model>>& models, bool commit,
                      const absl::Status& why) { Drop(models, commit, why); };
  hooks.on_followed = [this](const Model& model) { cache_.UpdateMemory(model); };
  hooks.before_hand_over = [this](const std::vector<std::shared_ptr<Model>>& models) {
    std::vector<std::string> uids;
    for (const std::shared_ptr<Model>& model : models) uids.push_back(model->uid());
    streams_.AwaitRest(uids, WriterChangedError(), options_.fleet->rest_time());
    // At once: what other servers evaluate of streams that are opened from now on would not be counted.
    for (const std::shared_ptr<Model>& model : models)
      StopLearning(model->core(), WriterChangedError());
  };
  hooks.on_reload = options_.on_reload;
  hooks.on_namesake = [this](const Members::Namesake& other) {
    if (options_.on_namesake != nullptr)
      options_.on_namesake(other.has_precedence, other.client_address);
  };
  hooks.on_model_changed = [this](const storage::ModelHeader& header, bool deleted) {
    OnModelChanged(header, deleted);
  };
  last_copies_ = std::make_unique<LastCopies>(
      memory_, [this](const std::string& name) { return AcquireNow(name).status(); });
  hooks.used_models = [this] { return expiry_->UsedHere(); };
  hooks.on_used_models = [this](const std::vector<uint64_t>& ids) {
    expiry_->OnUsedElsewhere(ids);
  };
  // What leaves memory from now on is not loaded again.
  hooks.on_leave = [this] { last_copies_->Stop(); };
  fleet_ = std::make_unique<Fleet>(*journal_, *options_.fleet, std::move(hooks));
}

void Store::Drop(const std::vector<std::shared_ptr<Model>>& models, bool commit,
                 const absl::Status& why) {
  if (commit && !models.empty()) {
    // Then all that was acknowledged can be written, counts of correct rows, too.
    for (const std::shared_ptr<Model>& model : models) StopLearning(model->core(), why);
    (void)committer_->CommitAll(models);
  }
  for (const std::shared_ptr<Model>& model : models) {
    model->core().is_last_copy.store(true, std::memory_order_release);
    model->Close(why);
  }
  // After this nothing of them is being written.
  if (commit && !models.empty()) (void)committer_->Commit(models.back());
  for (const std::shared_ptr<Model>& model : models) {
    streams_.EndAll(model->uid(), why);
    RemoveFromMemory(*model, absl::OkStatus());
  }
}

absl::Status Store::ConfirmWriter(const Model& model) {
  const absl::StatusOr<bool> confirmed = journal_->ConfirmWriter(journal_->PartitionOf(model.id()));
  if (confirmed.ok() && *confirmed) return absl::OkStatus();
  if (fleet_ != nullptr) fleet_->OnWriteFailure(model.id());
  return confirmed.ok() ? WriterChangedError() : JournalError(confirmed.status(), model.name());
}

void Store::RemoveFromMemory(Model& model, const absl::Status& why) {
  // A torn one is of no use.
  const bool keeps = last_copies_ != nullptr && !model.ledger().torn();
  std::shared_ptr<const Model> copy = keeps ? cache_.Find(model.name()) : nullptr;
  if (copy.get() != &model) return cache_.Remove(model);
  last_copies_->Keep(copy, why);
  cache_.Remove(model);
  last_copies_->OnLeft(model);
}

void Store::OnModelChanged(const storage::ModelHeader& header, bool deleted) {
  const std::string& name = header.model().name();
  const std::shared_ptr<Model> loaded = cache_.FindAfterLoad(name);
  const bool same = loaded != nullptr && loaded->uid() == header.model().uid();
  if (!deleted) {
    expiry_->OnExpireAfter(ExpireAfter(header.model()));
    if (same) loaded->Change(header.model());
    return;
  }
  if (same) cache_.CloseAndRemove(name, ModelNotFound(name));
  predictions_.Remove(header.id());
  last_copies_->Remove(name);
  streams_.EndAll(header.model().uid(), ModelNotFound(name));
}

}  // namespace perceptrond
