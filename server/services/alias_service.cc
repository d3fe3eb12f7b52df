#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "perceptron/v1/alias_service.pb.h"
#include "server/access/admission.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::string_view kAliasList = "ListAliases";
constexpr size_t kDefaultAliasPage = 100;
constexpr size_t kMaxAliasPage = 1000;
constexpr int64_t kDefaultMinExamples = 100;
constexpr int64_t kMostWindowExamples = 1000;

absl::Status GetAlias(Store& store, const v1::GetAliasRequest& request, v1::Alias& response) {
  if (absl::Status status = CheckAliasName(request.name(), "name"); !status.ok()) return status;
  std::optional<Alias> alias = store.catalogue().aliases().Find(request.name());
  if (!alias.has_value()) return AliasNotFound(request.name());
  response = *std::move(alias);
  return absl::OkStatus();
}

absl::Status ListAliases(Store& store, const CallAccess* access,
                         const v1::ListAliasesRequest& request, v1::ListAliasesResponse& response) {
  const absl::StatusOr<size_t> limit =
      ReadPageSize(request.page_size(), kDefaultAliasPage, kMaxAliasPage);
  if (!limit.ok()) return limit.status();
  // The name of the last alias listed.
  absl::StatusOr<std::string> after =
      ReadPageName(kAliasList, request.page_token(), kAliasCollection);
  if (!after.ok()) return after.status();
  const AliasMap& aliases = store.catalogue().aliases();
  while (true) {
    const std::vector<Alias> page = aliases.List(*after, kMaxAliasPage);
    if (page.empty()) return absl::OkStatus();
    for (const Alias& alias : page) {
      if (access != nullptr && !access->CanRead(alias.name())) continue;
      if (static_cast<size_t>(response.aliases_size()) == *limit) {
        response.set_next_page_token(
            MakePageToken(kAliasList, response.aliases(response.aliases_size() - 1).name()));
        return absl::OkStatus();
      }
      *response.add_aliases() = alias;
    }
    *after = page.back().name();
  }
}

// Which fields of an alias the mask selects. INVALID_ARGUMENT (IMMUTABLE_FIELD, INVALID_FIELD).
struct SelectedFields {
  bool model = false;
  bool description = false;
};
absl::StatusOr<SelectedFields> ReadAliasMask(const google::protobuf::FieldMask& mask) {
  if (mask.paths_size() == 0 || (mask.paths_size() == 1 && mask.paths(0) == "*"))
    return SelectedFields{true, true};
  SelectedFields fields;
  for (const std::string& path : mask.paths()) {
    if (path == "model") {
      fields.model = true;
    } else if (path == "description") {
      fields.description = true;
    } else if (google::protobuf::util::FieldMaskUtil::IsValidPath<v1::Alias>(path)) {
      return InvalidField("IMMUTABLE_FIELD", "update_mask", absl::StrCat(path, " cannot be set"));
    } else {
      return InvalidField("INVALID_FIELD", "update_mask",
                          absl::StrCat("an alias has no field ", path));
    }
  }
  return fields;
}

absl::Status UpdateAlias(Store& store, const v1::UpdateAliasRequest& request, v1::Alias& response) {
  const v1::Alias& wanted = request.alias();
  if (absl::Status status = CheckAliasName(wanted.name(), "alias.name"); !status.ok())
    return status;
  const absl::StatusOr<SelectedFields> fields = ReadAliasMask(request.update_mask());
  if (!fields.ok()) return fields.status();
  const auto change = [&](Alias& alias) -> absl::Status {
    // A new one needs a model.
    if (fields->model || alias.model().empty()) {
      if (absl::Status status = CheckNoAlias(wanted.model(), "alias.model"); !status.ok())
        return status;
      alias.set_model(wanted.model());
    }
    if (fields->description) alias.set_description(wanted.description());
    return absl::OkStatus();
  };
  absl::StatusOr<Alias> changed = store.catalogue().ChangeAlias(
      wanted.name(), {wanted.etag(), request.allow_missing(), request.validate_only()}, change);
  if (!changed.ok()) return changed.status();
  response = *std::move(changed);
  return absl::OkStatus();
}

absl::Status DeleteAlias(Store& store, const v1::DeleteAliasRequest& request,
                         google::protobuf::Empty& /*response*/) {
  if (absl::Status status = CheckAliasName(request.name(), "name"); !status.ok()) return status;
  absl::Status deleted = store.catalogue().DeleteAlias(request.name(), request.etag());
  if (absl::IsNotFound(deleted) && request.allow_missing()) return absl::OkStatus();
  return deleted;
}

absl::Status CheckChallenge(const v1::ChallengeAliasRequest& request, int64_t min_examples) {
  if (absl::Status status = CheckAliasName(request.name(), "name"); !status.ok()) return status;
  if (absl::Status status = CheckNoAlias(request.challenger(), "challenger"); !status.ok())
    return status;
  if (!v1::ComparedError_IsValid(request.error())) {
    return InvalidField("INVALID_FIELD", "error",
                        absl::StrCat(request.error(), " is no value of ComparedError"));
  }
  if (!(request.margin() >= 0 && request.margin() < 1)) {
    return InvalidField("INVALID_FIELD", "margin",
                        absl::StrCat(request.margin(), " is not at least 0 and below 1"));
  }
  const bool window = request.error() != v1::COMPARED_ERROR_PROGRESSIVE;
  if (min_examples > 0 && (!window || min_examples <= kMostWindowExamples)) return absl::OkStatus();
  return InvalidField(
      "INVALID_FIELD", "min_examples",
      absl::StrCat(min_examples, " is not above 0", window ? " and at most 1000" : ""));
}

absl::StatusOr<v1::Contestant> ReadContestant(Store& store, const std::string& name,
                                              v1::ComparedError error) {
  const absl::StatusOr<ModelSummary> summary = store.Get(name);
  if (!summary.ok()) return summary.status();
  const v1::ConvergenceReport& report = summary->report;
  v1::Contestant contestant;
  contestant.set_model(name);
  contestant.set_revision(static_cast<int64_t>(summary->revision));
  const bool window = error != v1::COMPARED_ERROR_PROGRESSIVE;
  contestant.set_examples(
      static_cast<int64_t>(window ? report.window_examples() : report.examples()));
  if (window ? report.has_window_error() : report.has_progressive_error())
    contestant.set_error(window ? report.window_error() : report.progressive_error());
  return contestant;
}

v1::ChallengeOutcome DecideChallenge(const v1::Contestant& champion,
                                     const v1::Contestant& challenger, double margin,
                                     int64_t min_examples) {
  if (std::min(champion.examples(), challenger.examples()) < min_examples)
    return v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES;
  const bool both_err_never = margin == 0 && champion.error() == 0 && challenger.error() == 0;
  return challenger.error() + margin < champion.error() || both_err_never
             ? v1::CHALLENGE_OUTCOME_CHALLENGER_WON
             : v1::CHALLENGE_OUTCOME_CHAMPION_WON;
}

absl::Status ChallengeAlias(Store& store, const CallAccess* access,
                            const v1::ChallengeAliasRequest& request,
                            v1::ChallengeAliasResponse& response) {
  const int64_t min_examples =
      request.min_examples() == 0 ? kDefaultMinExamples : request.min_examples();
  if (absl::Status status = CheckChallenge(request, min_examples); !status.ok()) return status;
  const std::optional<Alias> alias = store.catalogue().aliases().Find(request.name());
  if (!alias.has_value()) return AliasNotFound(request.name());
  if (alias->model() == request.challenger()) {
    return InvalidField("INVALID_FIELD", "challenger",
                        absl::StrCat("\"", request.challenger(), "\" is what the alias names"));
  }
  // A caller that may move the alias may lack the right to read the model that it names.
  if (access != nullptr && !access->CanRead(alias->model()))
    return PermissionDenied(access->principal(), "role READ for what the alias names");
  absl::StatusOr<v1::Contestant> champion = ReadContestant(store, alias->model(), request.error());
  if (!champion.ok()) return champion.status();
  absl::StatusOr<v1::Contestant> challenger =
      ReadContestant(store, request.challenger(), request.error());
  if (!challenger.ok()) return challenger.status();
  response.set_outcome(DecideChallenge(*champion, *challenger, request.margin(), min_examples));
  const bool moves = response.outcome() == v1::CHALLENGE_OUTCOME_CHALLENGER_WON;
  // Whatever it decides, it is about the alias as it was compared.
  const std::string& etag = request.etag().empty() ? alias->etag() : request.etag();
  const auto change = [&](Alias& changed) {
    if (moves) changed.set_model(request.challenger());
    return absl::OkStatus();
  };
  absl::StatusOr<Alias> changed = store.catalogue().ChangeAlias(
      request.name(), {etag, /*allow_missing=*/false, request.validate_only()}, change);
  if (!changed.ok()) return changed.status();
  *response.mutable_alias() = request.validate_only() ? *alias : *std::move(changed);
  *response.mutable_champion() = *std::move(champion);
  *response.mutable_challenger() = *std::move(challenger);
  return absl::OkStatus();
}

}  // namespace

void AddAliasService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService(
      "perceptron.v1.AliasService",
      {{"GetAlias", unary(GetAlias, IsManagement<v1::GetAliasRequest>)},
       {"ListAliases", unary(ListAliases, IsManagement<v1::ListAliasesRequest>)},
       {"UpdateAlias", unary(UpdateAlias, IsManagement<v1::UpdateAliasRequest>)},
       {"DeleteAlias", unary(DeleteAlias, IsManagement<v1::DeleteAliasRequest>)},
       // Models may have to be loaded.
       {"ChallengeAlias", unary(ChallengeAlias, IsLarge<v1::ChallengeAliasRequest>)}});
}

}  // namespace perceptrond
