#include "core/store/store.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/features/words.h"
#include "core/fleet/fleet.h"
#include "core/learner/catalogue.h"
#include "core/model/views.h"
#include "core/settings/settings.h"
#include "core/store/model_expiry.h"
#include "core/store/snapshotter.h"

namespace perceptrond {

namespace v1 = ::perceptron::v1;

namespace {

// How long the end of a store waits for what it writes last.
constexpr absl::Duration kLastWriteTime = absl::Seconds(10);

}  // namespace

Store::Store(std::unique_ptr<Journal> journal, const Options& options)
    : memory_(options.memory_budget, options.in_flight_share, options.max_in_flight),
      options_([&] {
        Options with_memory = options;
        with_memory.limits.memory = &memory_;
        return with_memory;
      }()),
      journal_(std::move(journal)),
      predictions_(*journal_, memory_, options.fleet == nullptr ? "" : options.fleet->address),
      catalogue_(*journal_,
                 {options.max_model_bytes, options.max_models, options.max_model_features}),
      expiry_(MakeExpiry()),
      cache_(
          memory_, options.max_model_bytes, [this](absl::string_view name) { return Load(name); },
          [this] {
            if (committer_ != nullptr) committer_->WriteDeferred();
          }) {
  committer_ = std::make_unique<Committers>(
      *journal_, options_.committer,
      [this](Model& model, const absl::Status& why) { OnCommitFailure(model, why); },
      [this](const std::shared_ptr<Model>& model) { OnCommit(model); });
  snapshotter_ = std::make_unique<Snapshotter>(
      *journal_, *committer_, memory_, options_.max_history_bytes, options_.on_snapshot_failure);
  if (options_.fleet != nullptr) JoinFleet();
  expiry_->Start();
}

Store::~Store() {
  // A journal that does not answer must not keep the process.
  absl::Notification written;
  std::thread limit([&] {
    if (!written.WaitForNotificationWithTimeout(kLastWriteTime)) journal_->Close();
  });
  expiry_->Stop();
  SaveSamples();
  // Other servers take over at once. Until then its models write.
  if (fleet_ != nullptr) fleet_->Leave();
  // The snapshotter waits for commits, and commits request snapshots: it stops first, but exists
  // until the last commit.
  snapshotter_->Stop();
  committer_.reset();
  fleet_.reset();
  written.Notify();
  limit.join();
}

void Store::SaveSamples() {
  std::vector<std::shared_ptr<Model>> models = cache_.All();
  std::erase_if(models, [](const std::shared_ptr<Model>& model) {
    return !model->core().CheckWritable().ok() ||
           model->ledger().stored_examples().unsaved_bytes() == 0;
  });
  for (const std::shared_ptr<Model>& model : models) snapshotter_->Request(model);
  for (const std::shared_ptr<Model>& model : models) snapshotter_->Await(model->id());
}

absl::StatusOr<v1::Model> Store::Create(v1::Model settings, const std::string& request_id,
                                        bool validate_only) {
  absl::StatusOr<v1::Model> created =
      catalogue_.Create(std::move(settings), request_id, validate_only);
  if (created.ok()) expiry_->OnExpireAfter(ExpireAfter(*created));
  return created;
}

absl::StatusOr<v1::Model> Store::Change(absl::string_view name, const ChangeOptions& options,
                                        const std::function<absl::Status(v1::Model&)>& change) {
  absl::StatusOr<v1::Model> changed = catalogue_.Change(name, options, change);
  if (!changed.ok() || options.validate_only) return changed;
  expiry_->OnExpireAfter(ExpireAfter(*changed));
  // Outside of the catalogue's lock, since freezing waits for messages being learned. A later load
  // reads the new settings; a load in progress may have read the old ones.
  const std::shared_ptr<Model> loaded = cache_.FindAfterLoad(name);
  if (loaded != nullptr && loaded->uid() == changed->uid()) {
    loaded->Change(*changed);
    // A frozen model takes no example again whose count a kill took.
    if (loaded->ledger().has_moved() && loaded->core().CheckWritable().ok())
      (void)committer_->Commit(loaded);
  }
  return changed;
}

absl::Status Store::Delete(absl::string_view name, absl::string_view etag, bool validate_only) {
  return DeleteBy(name, etag, validate_only,
                  [&](const ModelGuard& guard) { return DeleteLoaded(name, guard); });
}

absl::Status Store::DeleteBy(absl::string_view name, absl::string_view etag, bool validate_only,
                             const std::function<absl::Status(const ModelGuard&)>& remove) {
  const absl::StatusOr<std::string> uid = catalogue_.Delete(name, etag, validate_only, remove);
  if (uid.ok() && !validate_only && last_copies_ != nullptr) last_copies_->Remove(name);
  if (uid.ok() && !validate_only) streams_.EndAll(*uid, ModelNotFound(name));
  return uid.status();
}

absl::Status Store::DeleteLoaded(absl::string_view name, const ModelGuard& guard,
                                 const std::function<bool()>& is_in_use) {
  // The model is loaded and closed first: until it is gone every Acquire returns the closed one,
  // and after the commit no write can follow the deletion. A model too damaged to be loaded is
  // deleted all the same.
  absl::StatusOr<std::shared_ptr<Model>> model = Acquire(name);
  if (!model.ok() && !KeepGoing()) return StoppedError();
  if (model.ok()) {
    const bool writes = (*model)->core().CheckWritable().ok();
    // If it is not deleted after all, what was acknowledged stays.
    StopLearning((*model)->core(), ModelNotFound(name));
    if (writes) (void)committer_->Commit(*model);
    (*model)->Close(ModelNotFound(name));
    if (writes) (void)committer_->Commit(*model);
    // Others may have waited for the same load, and have used the model before it was closed.
    if (is_in_use != nullptr && is_in_use()) {
      cache_.CloseAndRemove(name, ModelNotFound(name));
      return absl::AbortedError("the model is in use again");
    }
  }
  const absl::Status deleted = journal_->Delete(name, guard);
  // Also if it was not deleted: the next Acquire loads it anew. A failed commit may have removed
  // this one, and another caller have loaded the model again.
  if (model.ok()) cache_.CloseAndRemove(name, ModelNotFound(name));
  if (model.ok() && deleted.ok()) predictions_.Remove((*model)->id());
  return JournalError(deleted, name);
}

absl::StatusOr<std::shared_ptr<Model>> Store::Acquire(absl::string_view name) {
  if (last_copies_ != nullptr) {
    if (absl::Status status = last_copies_->CheckReadable(name); !status.ok()) return status;
  }
  return AcquireNow(name);
}

absl::StatusOr<std::shared_ptr<Model>> Store::AcquireNow(absl::string_view name) {
  absl::StatusOr<std::shared_ptr<Model>> model = cache_.Acquire(name);
  if (!model.ok() || !(*model)->ledger().torn()) return model;
  // Once this commit has failed no write of it can follow, and the cache has dropped it.
  (void)committer_->Commit(*std::move(model));
  return cache_.Acquire(name);
}

std::shared_ptr<const Model> Store::LastCopyOf(absl::string_view name) const {
  if (last_copies_ == nullptr) return nullptr;
  std::shared_ptr<const Model> copy = last_copies_->Find(name);
  if (copy == nullptr) return nullptr;
  const std::shared_ptr<Model> loaded = GetIfLoaded(name);
  return loaded == nullptr || !loaded->closed().ok() ? copy : nullptr;
}

std::shared_ptr<const Model> Store::InMemory(absl::string_view name) const {
  std::shared_ptr<const Model> copy = LastCopyOf(name);
  return copy != nullptr ? copy : GetIfLoaded(name);
}

absl::StatusOr<std::shared_ptr<const Model>> Store::AcquireToPredict(absl::string_view name,
                                                                     uint64_t min_revision) {
  if (min_revision == 0) {
    if (std::shared_ptr<const Model> copy = LastCopyOf(name); copy != nullptr) return copy;
  }
  absl::StatusOr<std::shared_ptr<const Model>> model = Acquire(name);
  // It may have left memory meanwhile.
  if (!model.ok() && min_revision == 0) {
    if (std::shared_ptr<const Model> copy = LastCopyOf(name); copy != nullptr) return copy;
  }
  return model;
}

absl::StatusOr<std::shared_ptr<Model>> Store::Load(absl::string_view name) {
  constexpr size_t kMostDamaged = 1000;
  absl::StatusOr<std::shared_ptr<Model>> model(absl::InternalError("not loaded"));
  const absl::Status loaded = WithinMemory([&] {
    model = LoadFromJournal(name);
    return model.status();
  });
  if (!loaded.ok()) model = loaded;
  if (!model.ok() && Stopped()) return StoppedError();
  bool is_new_damage = false;
  {
    MutexLock lock(&mutex_);
    if (model.ok()) {
      damaged_.erase(std::string(name));
    } else if (absl::IsDataLoss(model.status()) && damaged_.size() < kMostDamaged) {
      is_new_damage = damaged_.insert(std::string(name)).second;
    }
  }
  if (model.ok()) {
    const std::optional<TextOptions>& text = (*model)->settings().example_space.text;
    if (text.has_value() && text->icu_version != IcuVersion() && options_.on_other_icu != nullptr)
      options_.on_other_icu(std::string(name), text->icu_version);
    return model;
  }
  absl::Status why = JournalError(model.status(), name);
  if (is_new_damage && options_.on_damage != nullptr) options_.on_damage(std::string(name), why);
  return why;
}

absl::StatusOr<std::shared_ptr<Model>> Store::LoadFromJournal(absl::string_view name) {
  absl::StatusOr<storage::ModelHeader> header = journal_->Find(name);
  if (!header.ok()) return header.status();
  if (absl::Status status = DropLeftovers(header->id()); !status.ok()) return status;
  const absl::StatusOr<ModelSettings> settings = ReadSettings(header->model());
  uint64_t weight_bytes = 0;
  uint64_t sample_bytes = 0;
  if (settings.ok()) {
    weight_bytes = EstimateWeightBytes(settings->learner, settings->space.initial_weights());
    if (settings->stored_examples.sample > 0) {
      const absl::StatusOr<storage::Counters> counters = journal_->LoadCounters(header->id());
      if (!counters.ok()) return counters.status();
      sample_bytes = std::min<uint64_t>(
          counters->sample_bytes(),
          StoredExamplesWithin(*settings, options_.max_model_bytes).sample_bytes);
    }
  }
  const uint64_t bytes = weight_bytes + sample_bytes;
  if (absl::Status status = cache_.MakeRoom(name, bytes); !status.ok()) return status;
  // What is read from the journal is there twice until it is restored.
  const ModelCopyMemory copy(memory_, bytes);
  absl::StatusOr<std::shared_ptr<Model>> model = Restore(*header);
  if (model.ok()) (*model)->core().scored = expiry_->MarkOf(header->id());
  if (!model.ok() || !(*model)->settings().stored_predictions.has_value()) return model;
  const absl::Status opened =
      predictions_.Open(header->id(), *(*model)->settings().stored_predictions);
  if (!opened.ok()) return opened;
  return model;
}

absl::StatusOr<std::shared_ptr<Model>> Store::Restore(const storage::ModelHeader& header) {
  const auto component =
      [this](absl::string_view name,
             ComponentAccess access) -> absl::StatusOr<std::shared_ptr<const Model>> {
    if (access == ComponentAccess::kLoad) return Acquire(name);
    if (access == ComponentAccess::kToPredict) return AcquireToPredict(name, 0);
    std::shared_ptr<const Model> model = GetIfLoaded(name);
    if (model == nullptr) return absl::NotFoundError("not in memory");
    return model;
  };
  if (fleet_ == nullptr) return Model::Load(header, *journal_, options_.limits, component);
  Followers& followers = fleet_->FollowersOf(header.id());
  // What is committed while it is read may be more than is kept for it.
  constexpr int kAttempts = 3;
  absl::Status why;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    followers.BeginLoad(header.id());
    absl::StatusOr<std::shared_ptr<Model>> model =
        Model::Load(header, *journal_, options_.limits, component);
    if (!model.ok()) {
      followers.CancelLoad(header.id());
      return model;
    }
    why = followers.EndLoad(*model);
    if (why.ok()) return model;
    if (!absl::IsOutOfRange(why)) return why;
  }
  return absl::UnavailableError(why.message());
}

absl::Status Store::DropLeftovers(uint64_t model_id) {
  {
    MutexLock lock(&mutex_);
    if (!failed_.contains(model_id)) return absl::OkStatus();
  }
  // A snapshot of the closed model would change the journal while it is read.
  snapshotter_->Await(model_id);
  absl::StatusOr<storage::Counters> counters = journal_->LoadCounters(model_id);
  if (!counters.ok()) return counters.status();
  absl::Status status = journal_->DropAfter(model_id, counters->report().updates());
  if (!status.ok()) return status;
  MutexLock lock(&mutex_);
  failed_.erase(model_id);
  return absl::OkStatus();
}

absl::StatusOr<ModelSummary> Store::Get(absl::string_view name) {
  if (const auto model = AcquireToPredict(name, 0); !model.ok()) return model.status();
  const absl::StatusOr<storage::ModelHeader> header = catalogue_.Find(name);
  if (!header.ok()) return header.status();
  absl::StatusOr<ModelSummary> summary =
      Summarize(*header, InMemory(name), *journal_, ComponentAccess::kLoad);
  if (!summary.ok()) return summary;
  summary->expire_time = expiry_->ExpireTime(*header);
  AddWriter(*summary);
  return summary;
}

absl::StatusOr<ModelSummary> Store::GetReport(absl::string_view name) {
  const absl::StatusOr<std::shared_ptr<const Model>> model = AcquireToPredict(name, 0);
  if (!model.ok()) return model.status();
  ModelSummary summary = Summarize(**model, ComponentAccess::kLoad);
  AddWriter(summary);
  return summary;
}

void Store::AddWriter(ModelSummary& summary) {
  if (fleet_ == nullptr) return;
  if (!summary.in_memory) summary.epoch = fleet_->WriterOf(summary.id).epoch;
  if (!fleet_->WritesNow(summary.id)) summary.stale_since = fleet_->StateTimeOf(summary.id);
}

absl::StatusOr<ModelSummary> Store::ListedSummary(const storage::ModelHeader& header) {
  absl::StatusOr<ModelSummary> summary =
      SummarizeForList(header, InMemory(header.model().name()), *journal_);
  if (!summary.ok()) return summary;
  summary->expire_time = expiry_->ExpireTime(header);
  AddWriter(*summary);
  return summary;
}

absl::StatusOr<ModelSummary> Store::GetSummary(absl::string_view name) {
  const absl::StatusOr<storage::ModelHeader> header = catalogue_.Find(name);
  if (!header.ok()) return header.status();
  return ListedSummary(*header);
}

absl::StatusOr<Store::Found> Store::Search(absl::string_view after, size_t limit, size_t most_read,
                                           const std::function<bool(const v1::Model&)>& wanted) {
  constexpr size_t kHeadersAtOnce = 256;
  // What a header and its summary take, in multiply-adds.
  constexpr size_t kHeaderWork = 10'000;
  Found found;
  std::string last(after);
  // A fleet may be without its journal for long, and each read then takes seconds.
  constexpr int kMostFailures = 2;
  int failures = 0;
  for (size_t read = 0; read < most_read && found.size() < limit;) {
    const size_t asked = std::min(kHeadersAtOnce, most_read - read);
    const absl::StatusOr<std::vector<storage::ModelHeader>> headers = catalogue_.List(last, asked);
    if (!headers.ok()) return headers.status();
    read += headers->size();
    for (const storage::ModelHeader& header : *headers) {
      if (found.size() == limit) break;
      if (!KeepGoing(kHeaderWork)) return StoppedError();
      last = header.model().name();
      if (!wanted(header.model())) continue;
      absl::StatusOr<ModelSummary> summary = failures >= kMostFailures && InMemory(last) == nullptr
                                                 ? absl::UnavailableError("")
                                                 : ListedSummary(header);
      const bool is_away = fleet_ != nullptr && absl::IsUnavailable(summary.status());
      if (is_away) ++failures;
      if (summary.ok()) {
        found.models.push_back(*std::move(summary));
      } else if (absl::IsDataLoss(summary.status()) || is_away) {
        found.unreachable.push_back(last);
      } else {
        return summary.status();
      }
    }
    if (headers->empty()) return found;
    const bool at_end = headers->size() < asked && last == headers->back().model().name();
    if (at_end) return found;
  }
  const absl::StatusOr<std::vector<storage::ModelHeader>> rest = catalogue_.List(last, 1);
  if (!rest.ok()) return rest.status();
  if (!rest->empty()) found.next = last;
  return found;
}

void Store::OnCommitFailure(Model& model, const absl::Status& why) {
  // Its memory holds updates that the journal does not have. The next Acquire restores it from the
  // journal, after what the failed write may have left there is dropped.
  if (fleet_ != nullptr) model.core().is_last_copy.store(true, std::memory_order_release);
  model.Close(why);
  if (options_.on_write_failure != nullptr) options_.on_write_failure(model.name(), why);
  {
    MutexLock lock(&mutex_);
    failed_.insert(model.id());
  }
  RemoveFromMemory(model, why);
  // Correct rows were acknowledged that the next one may lack: a producer that resumes says which.
  streams_.EndAll(model.uid(), why);
  if (fleet_ != nullptr) fleet_->OnWriteFailure(model.id());
}

void Store::OnCommit(const std::shared_ptr<Model>& model) {
  cache_.UpdateMemory(*model);
  const uint64_t unsaved = model->ledger().stored_examples().unsaved_bytes();
  const uint64_t journal_bytes = Guarded<JournalUse>::Reader(model->core().journal_use)->bytes;
  const uint64_t state_bytes = MeasureMemory(*model).state;
  if (journal_bytes + unsaved > std::max<uint64_t>(options_.snapshot_bytes, 2 * state_bytes))
    snapshotter_->RequestAny(model);
}

Store::Stats Store::stats() const {
  const ModelCache::Stats cache = cache_.stats();
  Stats stats;
  stats.commits = committer_->commits();
  stats.commit_failures = committer_->failures();
  stats.commit_busy = committer_->busy();
  stats.oldest_commit_wait = committer_->oldest_wait();
  stats.loads = cache.loads;
  stats.evictions = cache.evictions;
  stats.snapshots = snapshotter_->snapshots();
  stats.snapshot_failures = snapshotter_->failures();
  stats.expired = expiry_->expired();
  stats.models_in_memory = cache.models;
  stats.memory_bytes = cache.memory_bytes;
  return stats;
}

}  // namespace perceptrond
