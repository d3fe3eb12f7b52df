#include "core/store/model_catalogue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/learner/catalogue.h"
#include "core/model/composition.h"
#include "core/settings/settings.h"
#include "core/sync/current_call.h"
#include "core/vector/number_key.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Sets update_time to now, or to just after what it was if the clock has not moved on, and the etag
// to match.
void Stamp(v1::Model& model) {
  google::protobuf::Timestamp& time = *model.mutable_update_time();
  const int64_t before = time.seconds() * 1'000'000'000 + time.nanos();
  const int64_t nanos = std::max(absl::ToUnixNanos(absl::Now()), before + 1);
  time.set_seconds(nanos / 1'000'000'000);
  time.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  model.set_etag(absl::StrCat(absl::Hex(nanos)));
}

// Whether a repeated creation asks for the model that exists. What may have been updated since is
// not compared.
bool SameSettings(const v1::Model& a, const v1::Model& b) {
  return a.feature_space().SerializeAsString() == b.feature_space().SerializeAsString() &&
         a.stored_examples().SerializeAsString() == b.stored_examples().SerializeAsString() &&
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

// True if a request has the id of an earlier one. PERMISSION_DENIED if that was another principal's.
absl::StatusOr<bool> IsRepeated(absl::string_view request_id, absl::string_view earlier,
                                absl::string_view owner) {
  if (request_id.empty() || request_id != earlier) return false;
  if (absl::Status status = CheckOwner("request_id", owner); !status.ok()) return status;
  return true;
}

void SetRequest(const std::string& request_id, storage::ModelHeader& header) {
  header.set_request_id(request_id);
  if (!request_id.empty()) header.set_request_owner(CurrentPrincipal());
}

// What the header says of uses, of a model that is given its time now.
void StartExpiry(storage::ModelHeader& header) {
  header.clear_last_use_time();
  if (header.model().has_expire_after())
    *header.mutable_last_use_time() = header.model().update_time();
}

void ClearOutputs(v1::Model& model) {
  model.clear_uid();
  model.clear_etag();
  model.clear_state();
  model.clear_revision();
  model.clear_epoch();
  model.clear_create_time();
  model.clear_update_time();
  model.clear_stale_since();
  model.clear_expire_time();
  model.clear_report();
  model.clear_weights();
  model.clear_learning_curve();
  model.clear_members();
  if (model.feature_space().has_composition())
    model.mutable_feature_space()->mutable_composition()->clear_example_space();
  if (!model.has_stored_examples()) return;
  v1::StoredExamples& stored = *model.mutable_stored_examples();
  stored.clear_updates();
  stored.clear_sample();
  stored.clear_memory_bytes();
  stored.clear_complete();
}

// Refuses names that clients would take for one. Of new models alone: one that has such names can still be read and copied.
absl::Status CheckEqualNumbers(const ModelSettings& settings) {
  absl::flat_hash_map<std::string, absl::string_view> names;
  for (const std::string& name : settings.label_names) {
    std::string key = NumberKey(name);
    if (key.empty() || (settings.new_classes == NewClasses::kNamed && IsCode(name))) continue;
    const auto [equal, added] = names.emplace(std::move(key), name);
    if (!added)
      return InvalidSetting("model.label_names",
                            absl::StrCat("\"", equal->second, "\" and \"", name,
                                         "\" are the same number, and equal numbers are one label: "
                                         "give one of them another name"));
  }
  return absl::OkStatus();
}

absl::Status CheckKept(const ModelSettings& settings, const KeptPredictions& journal) {
  const bool durable =
      settings.stored_predictions.has_value() && settings.stored_predictions->durable;
  if (!durable || journal.keeps_predictions()) return absl::OkStatus();
  return InvalidSetting("model.stored_predictions.durable",
                        "a fleet, and a server without a disk, keep predictions in memory alone; "
                        "leave it out");
}

absl::Status CheckSize(const ModelSettings& settings, const CatalogueLimits& limits) {
  if (settings.space.mapped().size > limits.max_model_features) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "MODEL_TOO_LARGE",
        absl::StrCat("the model may have ", settings.space.mapped().size,
                     " features, and the server's models at most ", limits.max_model_features,
                     ": create it with fewer, or raise --max-model-features"),
        {{"max_model_features", absl::StrCat(limits.max_model_features)}});
  }
  const uint64_t max_bytes =
      limits.max_model_bytes - StoredExamplesWithin(settings, limits.max_model_bytes).most_bytes();
  const uint64_t bytes = EstimateWeightBytes(settings.learner, settings.space.initial_weights());
  if (bytes <= max_bytes) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kResourceExhausted, "MODEL_TOO_LARGE",
      absl::StrCat("the model's weights would take ", bytes >> 20,
                   " MiB, and beside what it may store of examples they may take ", max_bytes >> 20,
                   " MiB: create it with fewer dimensions, hash bits, "
                   "classes or stored examples, or raise the server's --memory-budget"),
      {{"bytes", absl::StrCat(bytes)}, {"max_bytes", absl::StrCat(max_bytes)}});
}

}  // namespace

absl::StatusOr<storage::ModelHeader> ModelCatalogue::Find(absl::string_view name) {
  absl::StatusOr<storage::ModelHeader> header = journal_.Find(name);
  if (!header.ok()) return JournalError(header.status(), name);
  return header;
}

absl::StatusOr<std::vector<storage::ModelHeader>> ModelCatalogue::List(absl::string_view after,
                                                                       size_t limit) {
  absl::StatusOr<std::vector<storage::ModelHeader>> headers = journal_.List(after, limit);
  if (!headers.ok()) return JournalError(headers.status(), "");
  return headers;
}

absl::StatusOr<v1::Model> ModelCatalogue::Create(v1::Model settings, const std::string& request_id,
                                                 bool validate_only) {
  ClearOutputs(settings);
  FillDefaults(settings);
  const absl::StatusOr<ModelSettings> read = ReadSettings(settings);
  if (!read.ok()) return read.status();
  if (absl::Status status = CheckEqualNumbers(*read); !status.ok()) return status;
  if (absl::Status status = CheckSize(*read, limits_); !status.ok()) return status;
  if (absl::Status status = CheckKept(*read, journal_); !status.ok()) return status;
  const std::string name = settings.name();
  storage::ModelHeader header;
  SetRequest(request_id, header);
  v1::Model& model = *header.mutable_model() = std::move(settings);
  MutexLock lock(&mutex_);
  if (absl::Status status = CheckComponents(journal_, header); !status.ok()) return status;
  absl::StatusOr<storage::ModelHeader> existing = journal_.Find(name);
  if (existing.ok()) {
    const absl::StatusOr<bool> repeated =
        IsRepeated(request_id, existing->request_id(), existing->request_owner());
    if (!repeated.ok()) return repeated.status();
    if (*repeated && SameSettings(existing->model(), model)) return existing->model();
    return JournalError(absl::AlreadyExistsError(""), name);
  }
  if (!absl::IsNotFound(existing.status())) return JournalError(existing.status(), name);
  model.set_state(v1::MODEL_STATE_ACTIVE);
  Stamp(model);
  *model.mutable_create_time() = model.update_time();
  if (validate_only) {
    model.clear_etag();
    ModelsNow now;
    now.count = [&] { return journal_.Count(); };
    if (absl::Status status = CheckCount(now); !status.ok()) return status;
    return model;
  }
  model.set_uid(RandomUid());
  StartExpiry(header);
  if (absl::Status status = MarkComponents(journal_, header); !status.ok()) return status;
  absl::Status refused;
  const auto guard = [&](const ModelsNow& models) { return refused = CheckNew(models, header); };
  const absl::Status created = journal_.Create(header, guard);
  if (!refused.ok()) UnmarkComponents(journal_, header).IgnoreError();
  if (!created.ok()) return refused.ok() ? JournalError(created, name) : refused;
  return model;
}

absl::StatusOr<v1::Model> ModelCatalogue::Change(
    absl::string_view name, const ChangeOptions& options,
    const std::function<absl::Status(v1::Model&)>& change) {
  MutexLock lock(&mutex_);
  AwaitWritten(name);
  absl::Status written;
  for (int conflict = 0; conflict < kMostConflicts; ++conflict) {
    const absl::StatusOr<storage::ModelHeader> found = journal_.Find(name);
    if (!found.ok()) return JournalError(found.status(), name);
    storage::ModelHeader header = *found;
    v1::Model& model = *header.mutable_model();
    const absl::StatusOr<bool> repeated =
        IsRepeated(options.request_id, header.change_request_id(), header.change_request_owner());
    if (!repeated.ok()) return repeated.status();
    if (*repeated) return model;
    if (absl::Status status = CheckEtag(model, options.etag); !status.ok()) return status;
    const std::string before = model.SerializeAsString();
    const std::optional<absl::Duration> expire_before = ExpireAfter(model);
    if (absl::Status status = change(model); !status.ok()) return status;
    if (absl::Status status = CheckMutableFields(model); !status.ok()) return status;
    if (options.validate_only) return model;
    const bool changed = model.SerializeAsString() != before;
    if (!changed && options.request_id.empty()) return model;
    if (changed) Stamp(model);
    if (ExpireAfter(model) != expire_before) StartExpiry(header);
    header.set_change_request_id(std::string(options.request_id));
    header.set_change_request_owner(options.request_id.empty() ? "" : CurrentPrincipal());
    written = journal_.Replace(header, *found);
    if (written.ok()) return model;
    if (!absl::IsAborted(written)) break;
  }
  return JournalError(written, name);
}

absl::StatusOr<std::string> ModelCatalogue::Delete(
    absl::string_view name, absl::string_view etag, bool validate_only,
    const std::function<absl::Status(const ModelGuard&)>& remove) {
  MutexLock lock(&mutex_);
  AwaitWritten(name);
  absl::StatusOr<storage::ModelHeader> header = journal_.Find(name);
  if (!header.ok()) return JournalError(header.status(), name);
  if (absl::Status status = CheckEtag(header->model(), etag); !status.ok()) return status;
  if (absl::Status status = CheckUnused(journal_, *header); !status.ok()) return status;
  if (absl::Status status = CheckNoAlias(name); !status.ok()) return status;
  if (validate_only) return header->model().uid();
  absl::Status used;
  const auto guard = [&](const ModelsNow& models) { return used = CheckUnusedNow(models, name); };
  if (absl::Status status = remove(guard); !status.ok()) {
    if (!used.ok()) return used;
    // Another server may have set one meanwhile, which the journal refused.
    const absl::Status named = CheckNoAlias(name);
    return named.ok() ? status : named;
  }
  // A mark that stays is verified before it is believed.
  UnmarkComponents(journal_, *header).IgnoreError();
  return header->model().uid();
}

absl::Status ModelCatalogue::CheckFree(absl::string_view name) {
  const absl::StatusOr<storage::ModelHeader> found = journal_.Find(name);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  return JournalError(found.ok() ? absl::AlreadyExistsError("") : found.status(), name);
}

absl::StatusOr<v1::Model> ModelCatalogue::Rename(
    absl::string_view name, absl::string_view new_name, absl::string_view etag,
    const std::function<absl::Status(const storage::ModelHeader& renamed,
                                     const storage::ModelHeader& before)>& rename) {
  MutexLock lock(&mutex_);
  AwaitWritten(name);
  const absl::StatusOr<storage::ModelHeader> header = journal_.Find(name);
  if (!header.ok()) return JournalError(header.status(), name);
  if (absl::Status status = CheckEtag(header->model(), etag); !status.ok()) return status;
  if (absl::Status status = CheckUnused(journal_, *header); !status.ok()) return status;
  if (absl::Status status = CheckFree(new_name); !status.ok()) return status;
  storage::ModelHeader renamed = *header;
  renamed.mutable_model()->set_name(std::string(new_name));
  Stamp(*renamed.mutable_model());
  if (absl::Status status = MarkComponents(journal_, renamed); !status.ok()) return status;
  if (absl::Status status = rename(renamed, *header); !status.ok()) return status;
  UnmarkComponents(journal_, *header).IgnoreError();
  return renamed.model();
}

void ModelCatalogue::AwaitWritten(absl::string_view name) {
  const auto is_at_rest = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !being_written_.contains(name);
  };
  mutex_.Await(absl::Condition(&is_at_rest));
}

absl::StatusOr<std::optional<v1::Model>> ModelCatalogue::BeginCopy(storage::ModelHeader source,
                                                                   absl::string_view new_name,
                                                                   const std::string& request_id,
                                                                   storage::ModelHeader& header) {
  MutexLock lock(&mutex_);
  AwaitWritten(new_name);
  const absl::StatusOr<storage::ModelHeader> existing = journal_.Find(new_name);
  if (existing.ok()) {
    const absl::StatusOr<bool> repeated =
        IsRepeated(request_id, existing->request_id(), existing->request_owner());
    if (!repeated.ok()) return repeated.status();
    if (*repeated && SameSettings(existing->model(), source.model())) return existing->model();
  }
  if (absl::Status status = CheckFree(new_name); !status.ok()) return status;
  SetRequest(request_id, header);
  header.set_composition_depth(source.composition_depth());
  header.set_composition_models(source.composition_models());
  v1::Model& model = *header.mutable_model() = std::move(*source.mutable_model());
  ClearOutputs(model);
  model.set_name(std::string(new_name));
  if (absl::Status status = CheckComponents(journal_, header); !status.ok()) return status;
  model.set_uid(RandomUid());
  model.set_state(v1::MODEL_STATE_ACTIVE);
  Stamp(model);
  *model.mutable_create_time() = model.update_time();
  StartExpiry(header);
  if (absl::Status status = MarkComponents(journal_, header); !status.ok()) return status;
  being_written_.insert(std::string(new_name));
  return std::nullopt;
}

absl::StatusOr<v1::Model> ModelCatalogue::CreateCopy(storage::ModelHeader source,
                                                     absl::string_view new_name,
                                                     const std::string& request_id,
                                                     const storage::Snapshot& snapshot,
                                                     const CommittedState& committed) {
  const absl::StatusOr<ModelSettings> read = ReadSettings(source.model());
  if (!read.ok()) return read.status();
  if (absl::Status status = CheckSize(*read, limits_); !status.ok()) return status;
  if (absl::Status status = CheckKept(*read, journal_); !status.ok()) return status;
  storage::ModelHeader header;
  const absl::StatusOr<std::optional<v1::Model>> existing =
      BeginCopy(std::move(source), new_name, request_id, header);
  if (!existing.ok()) return existing.status();
  if (existing->has_value()) return **existing;
  const absl::Cleanup end = [&] {
    MutexLock lock(&mutex_);
    being_written_.erase(new_name);
  };
  // A large state takes long to write. The journal has the last word on the name.
  absl::Status refused;
  const auto guard = [&](const ModelsNow& models) { return refused = CheckNew(models, header); };
  const absl::Status created = journal_.CreateWith(header, snapshot, committed, guard);
  if (!refused.ok()) {
    MutexLock lock(&mutex_);
    UnmarkComponents(journal_, header).IgnoreError();
  }
  if (!created.ok()) return refused.ok() ? JournalError(created, new_name) : refused;
  return header.model();
}

absl::Status ModelCatalogue::ChangeHeader(
    absl::string_view name,
    const std::function<absl::StatusOr<bool>(storage::ModelHeader&)>& change) {
  {
    MutexLock lock(&mutex_);
    AwaitWritten(name);
    being_written_.emplace(name);
  }
  const absl::Cleanup end = [&] {
    MutexLock lock(&mutex_);
    being_written_.erase(name);
  };
  absl::Status written;
  for (int conflict = 0; conflict < kMostConflicts; ++conflict) {
    const absl::StatusOr<storage::ModelHeader> before = journal_.Find(name);
    if (!before.ok()) return JournalError(before.status(), name);
    storage::ModelHeader header = *before;
    const absl::StatusOr<bool> changed = change(header);
    if (!changed.ok() || !*changed) return changed.status();
    written = journal_.Replace(header, *before);
    if (!absl::IsAborted(written)) break;
  }
  return JournalError(written, name);
}

absl::Status ModelCatalogue::ChangeKept(
    absl::string_view name, const std::function<absl::Status(storage::ModelHeader&)>& change) {
  return ChangeHeader(name, [&](storage::ModelHeader& header) -> absl::StatusOr<bool> {
    const uint64_t number = header.last_kept_number();
    const int kept = header.kept_snapshots_size();
    if (absl::Status status = change(header); !status.ok()) return status;
    return header.last_kept_number() != number || header.kept_snapshots_size() != kept;
  });
}

absl::Status ModelCatalogue::SaveUse(absl::string_view name, uint64_t model_id,
                                     absl::Time last_use) {
  return ChangeHeader(name, [&](storage::ModelHeader& header) -> absl::StatusOr<bool> {
    // Another model may have the name now, or this one be kept.
    if (header.id() != model_id || !header.model().has_expire_after())
      return JournalError(absl::NotFoundError(""), name);
    const int64_t nanos = absl::ToUnixNanos(last_use);
    header.mutable_last_use_time()->set_seconds(nanos / 1'000'000'000);
    header.mutable_last_use_time()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
    return true;
  });
}

absl::StatusOr<uint64_t> ModelCatalogue::Count() {
  absl::StatusOr<uint64_t> count = journal_.Count();
  if (!count.ok()) return JournalError(count.status(), "");
  return count;
}

absl::Status ModelCatalogue::CheckCount(const ModelsNow& models) const {
  if (limits_.max_models == std::numeric_limits<uint64_t>::max()) return absl::OkStatus();
  const absl::StatusOr<uint64_t> count = models.count();
  if (!count.ok()) return JournalError(count.status(), "");
  if (*count < limits_.max_models) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "MODEL_LIMIT",
                   absl::StrCat("the server has ", *count,
                                " models, the most it may have: delete one, or raise --max-models"),
                   {{"max_models", absl::StrCat(limits_.max_models)}});
}

absl::Status ModelCatalogue::CheckNew(const ModelsNow& models,
                                      const storage::ModelHeader& header) const {
  if (absl::Status status = CheckCount(models); !status.ok()) return status;
  return CheckComponentsExist(models, header);
}

}  // namespace perceptrond
