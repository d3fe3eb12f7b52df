#include "core/model/store.h"

#include <algorithm>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/learner/catalogue.h"
#include "core/model/components.h"
#include "core/model/error.h"
#include "core/model/snapshotter.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Sets update_time to now, and in any case to later than it was, and the etag that goes with it.
void Fingerprint(v1::Model& model) {
  google::protobuf::Timestamp& time = *model.mutable_update_time();
  const int64_t before = time.seconds() * 1'000'000'000 + time.nanos();
  const int64_t nanos = std::max(absl::ToUnixNanos(absl::Now()), before + 1);
  time.set_seconds(nanos / 1'000'000'000);
  time.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  model.set_etag(absl::StrCat(absl::Hex(nanos)));
}

// Whether a repeated creation asks for what there is; what may have been updated since does not
// count.
bool SameSettings(const v1::Model& a, const v1::Model& b) {
  return a.feature_space().SerializeAsString() == b.feature_space().SerializeAsString() &&
         a.retention().SerializeAsString() == b.retention().SerializeAsString() &&
         a.learner().SerializeAsString() == b.learner().SerializeAsString() &&
         std::equal(a.label_names().begin(), a.label_names().end(), b.label_names().begin(),
                    b.label_names().end());
}

std::string RandomUid() {
  absl::BitGen bits;
  return absl::StrCat(absl::Hex(absl::Uniform<uint64_t>(bits), absl::kZeroPad16),
                      absl::Hex(absl::Uniform<uint64_t>(bits), absl::kZeroPad16));
}

absl::Status CheckEtag(const v1::Model& model, absl::string_view etag) {
  if (etag.empty() || etag == model.etag()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kAborted, "ETAG_MISMATCH",
                   absl::StrCat("model \"", model.name(),
                                "\" has changed since you read it: get it again, then decide"),
                   {{"model", model.name()}, {"etag", model.etag()}});
}

void ClearOutputs(v1::Model& model) {
  model.clear_revision();
  model.clear_report();
  model.clear_weights();
  model.clear_weights_by_class();
  if (!model.has_retention()) return;
  v1::Retention& retention = *model.mutable_retention();
  retention.clear_kept_updates();
  retention.clear_kept_sample();
  retention.clear_memory_bytes();
  retention.clear_complete();
}

}  // namespace

Store::Store(std::unique_ptr<Journal> journal, const Options& options)
    : options_(options), journal_(std::move(journal)) {
  committer_ = std::make_unique<Committer>(
      *journal_, options_.committer,
      [this](Model& model, const absl::Status& why) { OnCommitFailure(model, why); },
      [this](const std::shared_ptr<Model>& model) { OnCommit(model); });
  snapshotter_ =
      std::make_unique<Snapshotter>(*journal_, *committer_, options_.on_snapshot_failure);
}

Store::~Store() {
  SaveSamples();
  // The snapshotter waits for commits, and commits ask for snapshots: it stops first, but is there
  // until the last commit.
  snapshotter_->Stop();
  committer_.reset();
}

// What was sampled of right answers is nowhere but in memory and in snapshots.
void Store::SaveSamples() {
  std::vector<std::shared_ptr<Model>> models;
  {
    MutexLock lock(&mutex_);
    for (const auto& [name, slot] : slots_) {
      if (slot.model == nullptr || slot.model->ledger().retention().unsaved_bytes() == 0) continue;
      models.push_back(slot.model);
    }
  }
  // A snapshot under way may have begun before the last of it came; the next one has it all.
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const std::shared_ptr<Model>& model : models) {
      if (model->ledger().retention().unsaved_bytes() > 0) snapshotter_->Request(model);
    }
    for (const std::shared_ptr<Model>& model : models) snapshotter_->Await(model->id());
  }
}

absl::StatusOr<v1::Model> Store::Create(v1::Model settings, const std::string& request_id,
                                        bool validate_only) {
  ClearOutputs(settings);
  FillDefaults(settings);
  const absl::StatusOr<ModelSettings> read = ReadSettings(settings);
  if (!read.ok()) return read.status();
  if (absl::Status status = CheckNew(*read); !status.ok()) return status;
  const std::string name = settings.name();
  storage::ModelHeader header;
  header.set_request_id(request_id);
  v1::Model& model = *header.mutable_model() = std::move(settings);
  MutexLock lock(&headers_mutex_);
  if (absl::Status status = CheckComponents(*journal_, header); !status.ok()) return status;
  absl::StatusOr<storage::ModelHeader> existing = journal_->Find(name);
  if (existing.ok()) {
    if (!request_id.empty() && existing->request_id() == request_id &&
        SameSettings(existing->model(), model)) {
      return existing->model();
    }
    return JournalError(absl::AlreadyExistsError(""), name);
  }
  if (!absl::IsNotFound(existing.status())) return JournalError(existing.status(), name);
  model.set_state(v1::MODEL_STATE_ACTIVE);
  model.clear_update_time();
  Fingerprint(model);
  *model.mutable_create_time() = model.update_time();
  if (validate_only) {
    model.clear_uid();
    model.clear_etag();
    return model;
  }
  model.set_uid(RandomUid());
  if (absl::Status status = MarkComponents(*journal_, header); !status.ok()) return status;
  if (absl::Status status = journal_->Create(header); !status.ok())
    return JournalError(status, name);
  AddToCount(1);
  return model;
}

absl::StatusOr<v1::Model> Store::Change(absl::string_view name, absl::string_view etag,
                                        bool validate_only,
                                        const std::function<absl::Status(v1::Model&)>& change) {
  absl::StatusOr<v1::Model> changed = ChangeHeader(name, etag, validate_only, change);
  if (!changed.ok() || validate_only) return changed;
  // Behind the lock, since freezing waits for what is being learned. A model that is not loaded
  // yet will be with the new header; one that is being loaded may have read the old.
  std::shared_ptr<Model> loaded;
  {
    MutexLock lock(&mutex_);
    AwaitLoaded(name);
    const auto slot = slots_.find(name);
    if (slot != slots_.end()) loaded = slot->second.model;
  }
  if (loaded != nullptr && loaded->uid() == changed->uid()) loaded->Change(*changed);
  return changed;
}

absl::StatusOr<v1::Model> Store::ChangeHeader(
    absl::string_view name, absl::string_view etag, bool validate_only,
    const std::function<absl::Status(v1::Model&)>& change) {
  MutexLock lock(&headers_mutex_);
  absl::StatusOr<storage::ModelHeader> header = journal_->Find(name);
  if (!header.ok()) return JournalError(header.status(), name);
  v1::Model& model = *header->mutable_model();
  if (absl::Status status = CheckEtag(model, etag); !status.ok()) return status;
  const std::string before = model.SerializeAsString();
  if (absl::Status status = change(model); !status.ok()) return status;
  if (absl::Status status = CheckMutableFields(model); !status.ok()) return status;
  if (model.SerializeAsString() == before || validate_only) return model;
  Fingerprint(model);
  if (absl::Status status = journal_->Replace(*header); !status.ok())
    return JournalError(status, name);
  return model;
}

absl::Status Store::Delete(absl::string_view name, absl::string_view etag, bool validate_only) {
  std::string uid;
  {
    MutexLock lock(&headers_mutex_);
    absl::StatusOr<storage::ModelHeader> header = journal_->Find(name);
    if (!header.ok()) return JournalError(header.status(), name);
    if (absl::Status status = CheckEtag(header->model(), etag); !status.ok()) return status;
    if (absl::Status status = CheckUnused(*journal_, *header); !status.ok()) return status;
    if (validate_only) return absl::OkStatus();
    if (absl::Status status = DeleteModel(name); !status.ok()) return status;
    // What stays noted is looked up before it is believed.
    UnmarkComponents(*journal_, *header).IgnoreError();
    uid = header->model().uid();
  }
  streams_.EndAll(uid, ModelNotFound(name));
  return absl::OkStatus();
}

absl::Status Store::DeleteModel(absl::string_view name) {
  // In memory and held, so that whoever asks for it until it is gone meets it closed; and no commit
  // under way may write behind the deletion. A model too damaged to load can be deleted all the
  // same.
  absl::StatusOr<std::shared_ptr<Model>> model = Acquire(name);
  if (model.ok()) {
    (*model)->Close(ModelNotFound(name));
    (void)committer_->Commit(*model);
  }
  const absl::Status deleted = journal_->Delete(name);
  if (deleted.ok()) AddToCount(-1);
  // Also if it was not deleted: then the next to ask for it loads it anew.
  if (model.ok()) CloseAndRemove(name);
  return JournalError(deleted, name);
}

void Store::CloseAndRemove(absl::string_view name) {
  MutexLock lock(&mutex_);
  // A failed commit may have taken the model out, and somebody else have loaded it again.
  AwaitLoaded(name);
  const auto loaded = slots_.find(name);
  if (loaded == slots_.end()) return;
  loaded->second.model->Close(ModelNotFound(name));
  Remove(std::string(name));
}

void Store::AwaitLoaded(absl::string_view name) {
  const auto settled = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto slot = slots_.find(name);
    return slot == slots_.end() || slot->second.model != nullptr;
  };
  mutex_.Await(absl::Condition(&settled));
}

absl::StatusOr<std::shared_ptr<Model>> Store::Acquire(absl::string_view name) {
  {
    MutexLock lock(&mutex_);
    AwaitLoaded(name);
    const auto found = slots_.find(name);
    if (found != slots_.end()) {
      lru_.splice(lru_.begin(), lru_, found->second.place);
      return found->second.model;
    }
    lru_.emplace_front(name);
    slots_.emplace(name, Slot{nullptr, 0, lru_.begin()});
  }
  absl::StatusOr<std::shared_ptr<Model>> model = Load(name);
  if (!model.ok()) return LoadFailed(std::string(name), JournalError(model.status(), name));
  MutexLock lock(&mutex_);
  damaged_.erase(std::string(name));
  Slot& slot = slots_[name];
  slot.model = *model;
  slot.bytes = (*model)->memory_bytes();
  bytes_ += slot.bytes;
  ++stats_.loads;
  Evict();
  return model;
}

absl::Status Store::LoadFailed(const std::string& name, const absl::Status& why) {
  constexpr size_t kMostDamaged = 1000;
  bool tell = false;
  {
    MutexLock lock(&mutex_);
    Remove(name);
    if (absl::IsDataLoss(why) && damaged_.size() < kMostDamaged)
      tell = damaged_.insert(name).second;
  }
  if (tell && options_.on_damage != nullptr) options_.on_damage(name, why);
  return why;
}

absl::StatusOr<std::shared_ptr<Model>> Store::Load(absl::string_view name) {
  absl::StatusOr<storage::ModelHeader> header = journal_->Find(name);
  if (!header.ok()) return header.status();
  bool doubtful = false;
  {
    MutexLock lock(&mutex_);
    doubtful = doubtful_.contains(header->id());
  }
  if (doubtful) {
    // A snapshot of the closed model would change the journal while it is read.
    snapshotter_->Await(header->id());
    absl::StatusOr<storage::Counters> counters = journal_->LoadCounters(header->id());
    if (!counters.ok()) return counters.status();
    absl::Status status = journal_->DropAfter(header->id(), counters->report().updates());
    if (!status.ok()) return status;
    MutexLock lock(&mutex_);
    doubtful_.erase(header->id());
  }
  return Model::Load(
      *header, *journal_, options_.limits,
      [this](absl::string_view component, bool load) -> absl::StatusOr<std::shared_ptr<Model>> {
        if (load) return Acquire(component);
        std::shared_ptr<Model> model = GetIfLoaded(component);
        if (model == nullptr) return absl::NotFoundError("not in memory");
        return model;
      });
}

void Store::Evict() {
  // Each model is looked at once at the most: those in use go to the front.
  for (size_t looked_at = 0, all = lru_.size(); bytes_ > options_.memory_budget && looked_at < all;
       ++looked_at) {
    const std::string name = lru_.back();
    Slot& slot = slots_[name];
    if (slot.model == nullptr || slot.model.use_count() > 1) {
      lru_.splice(lru_.begin(), lru_, slot.place);
      continue;
    }
    Remove(name);
    ++stats_.evictions;
  }
}

void Store::Remove(const std::string& name) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) return;
  bytes_ -= found->second.bytes;
  lru_.erase(found->second.place);
  slots_.erase(found);
}

std::shared_ptr<Model> Store::GetIfLoaded(absl::string_view name) {
  MutexLock lock(&mutex_);
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second.model;
}

absl::StatusOr<ModelSummary> Store::Get(absl::string_view name) {
  absl::StatusOr<std::shared_ptr<Model>> model = Acquire(name);
  if (!model.ok()) return model.status();
  absl::StatusOr<storage::ModelHeader> header = journal_->Find(name);
  if (!header.ok()) return JournalError(header.status(), name);
  return Summarize(*header, /*load_components=*/true);
}

absl::StatusOr<std::vector<ModelSummary>> Store::List(absl::string_view after, size_t limit) {
  absl::StatusOr<std::vector<storage::ModelHeader>> headers = journal_->List(after, limit);
  if (!headers.ok()) return JournalError(headers.status(), "");
  std::vector<ModelSummary> page;
  for (const storage::ModelHeader& header : *headers) {
    absl::StatusOr<ModelSummary> summary = SummarizeForList(header);
    if (!summary.ok()) return summary.status();
    page.push_back(*std::move(summary));
  }
  return page;
}

absl::StatusOr<Store::Found> Store::Search(absl::string_view after, size_t limit, size_t most_read,
                                           const std::function<bool(const v1::Model&)>& wanted) {
  constexpr size_t kHeadersAtOnce = 256;
  Found found;
  std::string last(after);
  for (size_t read = 0; read < most_read && found.models.size() < limit;) {
    const size_t asked = std::min(kHeadersAtOnce, most_read - read);
    absl::StatusOr<std::vector<storage::ModelHeader>> headers = journal_->List(last, asked);
    if (!headers.ok()) return JournalError(headers.status(), "");
    read += headers->size();
    for (const storage::ModelHeader& header : *headers) {
      if (found.models.size() == limit) break;
      last = header.model().name();
      if (!wanted(header.model())) continue;
      absl::StatusOr<ModelSummary> summary = SummarizeForList(header);
      if (!summary.ok()) return summary.status();
      found.models.push_back(*std::move(summary));
    }
    if (headers->empty()) return found;
    const bool at_end = headers->size() < asked && last == headers->back().model().name();
    if (at_end) return found;
  }
  absl::StatusOr<std::vector<storage::ModelHeader>> behind = journal_->List(last, 1);
  if (!behind.ok()) return JournalError(behind.status(), "");
  if (!behind->empty()) found.next = last;
  return found;
}

absl::StatusOr<ModelSummary> Store::GetSummary(absl::string_view name) {
  const absl::StatusOr<storage::ModelHeader> header = journal_->Find(name);
  if (!header.ok()) return JournalError(header.status(), name);
  return SummarizeForList(*header);
}

absl::StatusOr<ModelSummary> Store::SummarizeForList(const storage::ModelHeader& header) {
  absl::StatusOr<ModelSummary> summary = Summarize(header, /*load_components=*/false);
  if (!summary.ok()) return JournalError(summary.status(), header.model().name());
  // As large as the model, and of no use to whoever looks at many.
  if (summary->settings.learner().has_starting_weights())
    summary->settings.mutable_learner()->mutable_starting_weights()->Clear();
  return summary;
}

absl::StatusOr<ModelSummary> Store::Summarize(const storage::ModelHeader& header,
                                              bool load_components) {
  ModelSummary summary;
  summary.settings = header.model();
  if (const std::shared_ptr<Model> model = GetIfLoaded(header.model().name());
      model != nullptr && model->id() == header.id()) {
    summary.report = model->MakeReport(load_components);
    summary.journal = model->journal_use();
    summary.memory_bytes = model->memory_bytes();
    summary.retained = model->ledger().retention().Standing();
    summary.in_memory = true;
    if (model->settings().new_classes == NewClasses::kNamed) {
      const std::vector<std::string> names = model->LabelNames();
      summary.settings.mutable_label_names()->Assign(names.begin(), names.end());
    }
  } else {
    absl::StatusOr<storage::Counters> counters = journal_->LoadCounters(header.id());
    if (!counters.ok()) return counters.status();
    summary.report = Progress(*counters).MakeStoredReport();
  }
  summary.revision = summary.report.updates();
  return summary;
}

void Store::OnCommitFailure(Model& model, const absl::Status& why) {
  // Its memory holds updates that no journal has. The next Acquire rebuilds it from the journal;
  // leftovers of the failed write, should any appear, go first.
  model.Close(why);
  if (options_.on_write_failure != nullptr) options_.on_write_failure(model.name(), why);
  MutexLock lock(&mutex_);
  doubtful_.insert(model.id());
  const auto found = slots_.find(model.name());
  if (found != slots_.end() && found->second.model.get() == &model) Remove(model.name());
}

void Store::OnCommit(const std::shared_ptr<Model>& model) {
  const size_t bytes = model->memory_bytes();
  {
    MutexLock lock(&mutex_);
    const auto found = slots_.find(model->name());
    if (found != slots_.end() && found->second.model == model) {
      bytes_ += bytes - found->second.bytes;
      found->second.bytes = bytes;
      Evict();
    }
  }
  if (model->journal_use().bytes + model->ledger().retention().unsaved_bytes() >
      std::max<uint64_t>(options_.snapshot_bytes, 2 * model->state_bytes()))
    snapshotter_->Request(model);
}

absl::StatusOr<uint64_t> Store::Count() {
  {
    MutexLock lock(&count_mutex_);
    if (count_.has_value()) return *count_;
  }
  // Nobody creates or deletes while they are counted.
  MutexLock headers_lock(&headers_mutex_);
  absl::StatusOr<uint64_t> counted = journal_->Count();
  if (!counted.ok()) return JournalError(counted.status(), "");
  MutexLock lock(&count_mutex_);
  count_ = *counted;
  return *counted;
}

void Store::AddToCount(int difference) {
  MutexLock lock(&count_mutex_);
  if (count_.has_value()) *count_ += static_cast<uint64_t>(difference);
}

Store::Stats Store::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.commits = committer_->commits();
  stats.commit_failures = committer_->failures();
  stats.commit_busy = committer_->busy();
  stats.oldest_commit_wait = committer_->oldest_wait();
  stats.snapshots = snapshotter_->snapshots();
  stats.snapshot_failures = snapshotter_->failures();
  stats.models_in_memory = slots_.size();
  stats.memory_bytes = bytes_;
  return stats;
}

}  // namespace perceptrond
