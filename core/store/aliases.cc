// The aliases of models in the catalogue.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/store/model_catalogue.h"

namespace perceptrond {
namespace {

// All are in memory.
constexpr size_t kMostAliases = 10'000;
constexpr size_t kMaxAliasDescription = 1024;

absl::Status AliasChanged(absl::string_view name) {
  return MakeError(
      absl::StatusCode::kAborted, "ETAG_MISMATCH",
      absl::StrCat("alias \"", name, "\" has changed since you read it: get it again, then decide"),
      {{"alias", std::string(name)}});
}

absl::Status AliasError(const absl::Status& status, absl::string_view name) {
  if (absl::IsAborted(status)) return AliasChanged(name);
  return JournalError(status, "");
}

// Sets the times to now, or to just after what they were if the clock has not moved on, and the etag to
// match.
void StampAlias(Alias& alias) {
  google::protobuf::Timestamp& time = *alias.mutable_update_time();
  const int64_t before = time.seconds() * 1'000'000'000 + time.nanos();
  const int64_t nanos = std::max(absl::GetCurrentTimeNanos(), before + 1);
  time.set_seconds(nanos / 1'000'000'000);
  time.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  alias.set_etag(absl::StrCat(absl::Hex(nanos)));
  if (!alias.has_create_time()) *alias.mutable_create_time() = time;
}

}  // namespace

absl::StatusOr<Alias> ModelCatalogue::ChangeAlias(
    absl::string_view name, const AliasChangeOptions& options,
    const std::function<absl::Status(Alias&)>& change) {
  MutexLock lock(&mutex_);
  absl::Status written;
  for (int conflict = 0; conflict < kMostConflicts; ++conflict) {
    const std::optional<Alias> before = aliases().Find(name);
    if (!before.has_value() && !options.allow_missing) return AliasNotFound(name);
    Alias alias = before.value_or(Alias());
    if (!options.etag.empty() && options.etag != alias.etag()) return AliasChanged(name);
    if (!before.has_value() && aliases().size() >= kMostAliases) {
      return MakeError(absl::StatusCode::kResourceExhausted, "ALIAS_LIMIT",
                       absl::StrCat("there are ", kMostAliases,
                                    " aliases, the most there may be: delete one first"));
    }
    alias.set_name(std::string(name));
    if (absl::Status status = change(alias); !status.ok()) return status;
    if (alias.description().size() > kMaxAliasDescription)
      return InvalidSetting("alias.description",
                            absl::StrCat("has ", alias.description().size(), " bytes; at most ",
                                         kMaxAliasDescription, " are allowed"));
    if (absl::StatusOr<storage::ModelHeader> model = journal_.Find(alias.model()); !model.ok())
      return JournalError(model.status(), alias.model());
    if (before.has_value() && alias.SerializeAsString() == before->SerializeAsString())
      return alias;
    if (before.has_value() && alias.model() != before->model())
      alias.set_previous_model(before->model());
    if (options.validate_only) return alias;
    StampAlias(alias);
    written = journal_.PutAlias(alias, before.has_value() ? before->etag() : "");
    if (written.ok()) return alias;
    // Another server has deleted the model meanwhile.
    if (absl::IsNotFound(written)) return JournalError(written, alias.model());
    if (!absl::IsAborted(written) || !options.etag.empty()) break;
  }
  return AliasError(written, name);
}

absl::Status ModelCatalogue::DeleteAlias(absl::string_view name, absl::string_view etag) {
  MutexLock lock(&mutex_);
  absl::Status deleted;
  for (int conflict = 0; conflict < kMostConflicts; ++conflict) {
    const std::optional<Alias> alias = aliases().Find(name);
    if (!alias.has_value()) return AliasNotFound(name);
    if (!etag.empty() && etag != alias->etag()) return AliasChanged(name);
    deleted = journal_.DeleteAlias(name, alias->etag());
    if (!absl::IsAborted(deleted)) break;
  }
  return deleted.ok() ? deleted : AliasError(deleted, name);
}

absl::Status ModelCatalogue::CheckNoAlias(absl::string_view name) const {
  const std::vector<Alias> found = aliases().AllOf(name);
  if (found.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, "MODEL_IN_USE",
                   absl::StrCat("the alias \"", found.front().name(), "\" names \"", name,
                                "\"; move or delete it first"),
                   {{"model", std::string(name)}, {"used_by", found.front().name()}});
}

}  // namespace perceptrond
