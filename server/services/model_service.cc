#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/learner/catalogue.h"
#include "core/model/views.h"
#include "core/sync/cancellation.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/access/admission.h"
#include "server/access/readable_models.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/convert.h"
#include "server/sessions/placement.h"
#include "server/sessions/watch_reactor.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr size_t kDefaultPageSize = 100;
constexpr size_t kMaxPageSize = 1000;
constexpr absl::string_view kModelList = "ListModels";
constexpr absl::string_view kWeightList = "ListWeights ";
constexpr absl::string_view kTermList = "ListWeights.terms ";
constexpr size_t kDefaultWeightPageSize = 1 << 14;
constexpr size_t kMaxWeightPageSize = 1 << 16;
// A client of gRPC receives at most 4 MiB unless it asks for more.
constexpr size_t kMaxWeightBytes = 3 << 20;

absl::Status Create(Store& store, const v1::CreateModelRequest& request, v1::Model& response) {
  const std::string name = absl::StrCat(kModelCollection, request.model_id());
  if (absl::Status status = CheckModelName(name, "model_id"); !status.ok()) return status;
  if (absl::Status status = CheckId(request.request_id(), "request_id"); !status.ok())
    return status;
  v1::Model settings = request.model();
  settings.set_name(name);
  absl::StatusOr<v1::Model> created =
      store.Create(std::move(settings), request.request_id(), request.validate_only());
  if (!created.ok()) return created.status();
  response = *std::move(created);
  if (request.validate_only()) return absl::OkStatus();
  absl::StatusOr<ModelSummary> summary = store.Get(name);
  if (!summary.ok()) return summary.status();
  response = ToProto(*summary);
  return absl::OkStatus();
}

// FAILED_PRECONDITION (NOT_LINEAR) unless the model predicts with one weight vector for each class.
absl::Status CheckLinear(const Model& model) {
  const CatalogueEntry& learner = FindLearner(model.settings().learner);
  if (learner.form == Form::kLinear) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_LINEAR",
                   absl::StrCat("model \"", model.name(), "\" has the learner ", learner.name,
                                ", which predicts without a weight vector; ask for another view"),
                   {{"model", model.name()}, {"learner", std::string(learner.name)}});
}

void CopyTerm(const ScoreTerm& term, v1::ScoreTerm& proto) {
  proto.set_coefficient(term.coefficient);
  proto.set_score(term.score);
  if (term.rival.has_value()) proto.set_rival(*term.rival);
  proto.set_first_of_member(term.first_of_member);
  if (term.votes.has_value()) proto.set_votes(*term.votes);
}

// RESOURCE_EXHAUSTED (ANSWER_TOO_LARGE).
absl::Status AddAllWeights(const ModelReader& reader, v1::Weights& weights) {
  size_t bytes = 0;
  std::optional<WeightPosition> from = WeightPosition{};
  while (from.has_value()) {
    if (!KeepGoing()) return StoppedError();
    const WeightPage page = ListWeightPage(reader, *from, SIZE_MAX, kMaxWeightBytes + 1);
    for (const WeightList& list : page.lists) {
      // A page may end within a vector.
      v1::WeightVector part;
      ToProto(list, part);
      bytes += part.ByteSizeLong();
      const bool continues = from->index > 0 && &list == &page.lists.front();
      (continues ? *weights.mutable_vectors(weights.vectors_size() - 1) : *weights.add_vectors())
          .MergeFrom(part);
    }
    if (bytes > kMaxWeightBytes) {
      return MakeError(absl::StatusCode::kResourceExhausted, "ANSWER_TOO_LARGE",
                       absl::StrCat("the model has more than ", kMaxWeightBytes >> 20,
                                    " MiB of weights; get them page by page with ListWeights"),
                       {{"max_bytes", absl::StrCat(kMaxWeightBytes)}});
    }
    from = page.next;
  }
  return absl::OkStatus();
}

absl::Status Get(Store& store, const v1::GetModelRequest& request, v1::Model& response) {
  if (absl::Status status = CheckModelName(request.name(), "name"); !status.ok()) return status;
  if (absl::Status status = CheckModelView(request.view()); !status.ok()) return status;
  absl::StatusOr<ModelSummary> summary = store.Get(request.name());
  if (!summary.ok()) return summary.status();
  response = ToProto(*summary);
  if (request.view() != v1::MODEL_VIEW_WEIGHTS && request.view() != v1::MODEL_VIEW_LEARNING_CURVE)
    return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.name());
  if (!model.ok()) return model.status();
  if (request.view() == v1::MODEL_VIEW_LEARNING_CURVE) {
    ToProto(MakeLearningCurve(**model), response);
    return absl::OkStatus();
  }
  if (absl::Status status = CheckLinear(**model); !status.ok()) return status;
  // Report and weights have the same revision, also while the model learns.
  const ModelReader reader(**model);
  *response.mutable_report() = MakeReport(reader);
  response.set_revision(static_cast<int64_t>(reader.revision()));
  return AddAllWeights(reader, *response.mutable_weights());
}

// Where the next page of a list begins, and the state that the pages are of.
std::string WeightToken(absl::string_view list, const ModelReader& reader,
                        const WeightPosition& position) {
  return MakePageToken(
      absl::StrCat(list, reader.core().uid),
      {position.vector, position.index, reader.core().Fingerprint(reader.state())});
}

// Any position. ABORTED (REVISION_MISMATCH) if the model is in another state now.
absl::StatusOr<WeightPosition> ReadWeightToken(absl::string_view list, const ModelReader& reader,
                                               const std::string& token) {
  const absl::StatusOr<std::vector<uint64_t>> numbers =
      ReadPageNumbers(absl::StrCat(list, reader.core().uid), token, 3);
  if (!numbers.ok()) return numbers.status();
  if (numbers->empty()) return WeightPosition();
  if (numbers->at(2) == reader.core().Fingerprint(reader.state()))
    return WeightPosition{numbers->at(0), numbers->at(1)};
  return MakeError(
      absl::StatusCode::kAborted, "REVISION_MISMATCH",
      absl::StrCat("the model has learned since the first page, and is at revision ",
                   reader.revision(), " now: list its weights again, or freeze it meanwhile"),
      {{"revision", absl::StrCat(reader.revision())}});
}

absl::Status ListModelWeights(Store& store, const v1::ListWeightsRequest& request,
                              v1::ListWeightsResponse& response) {
  if (absl::Status status = CheckModelName(request.model(), "model"); !status.ok()) return status;
  const absl::StatusOr<size_t> limit =
      ReadPageSize(request.page_size(), kDefaultWeightPageSize, kMaxWeightPageSize);
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.model());
  if (!model.ok()) return model.status();
  if (absl::Status status = request.terms() ? absl::OkStatus() : CheckLinear(**model); !status.ok())
    return status;
  const absl::string_view kind = request.terms() ? kTermList : kWeightList;
  const ModelReader reader(**model, ComponentAccess::kNone);
  const absl::StatusOr<WeightPosition> from = ReadWeightToken(kind, reader, request.page_token());
  if (!from.ok()) return from.status();
  const auto list_page = request.terms() ? ListTermPage : ListWeightPage;
  const WeightPage page = list_page(reader, *from, *limit, kMaxWeightBytes / 3);
  if (from->vector > 0 && from->vector >= page.vectors) return BadPageToken(request.page_token());
  for (const WeightList& list : page.lists)
    ToProto(list, *response.mutable_weights()->add_vectors());
  for (const ScoreTerm& term : page.terms) CopyTerm(term, *response.add_terms());
  response.set_first_vector(static_cast<uint32_t>(from->vector));
  response.set_vectors(static_cast<uint32_t>(page.vectors));
  response.set_revision(static_cast<int64_t>(reader.revision()));
  if (page.next.has_value()) response.set_next_page_token(WeightToken(kind, reader, *page.next));
  return absl::OkStatus();
}

absl::Status ListModels(Store& store, const CallAccess* access,
                        const v1::ListModelsRequest& request, v1::ListModelsResponse& response) {
  const absl::StatusOr<size_t> limit =
      ReadPageSize(request.page_size(), kDefaultPageSize, kMaxPageSize);
  if (!limit.ok()) return limit.status();
  // The name of the last model listed.
  const absl::StatusOr<std::string> after =
      ReadPageName(kModelList, request.page_token(), kModelCollection);
  if (!after.ok()) return after.status();
  absl::StatusOr<Store::Found> page =
      access == nullptr ? store.List(*after, *limit)
                        : SearchReadable(store, access->ReadablePrefixes(), *after, *limit, *limit,
                                         [](const v1::Model&) { return true; });
  if (!page.ok()) return page.status();
  for (const ModelSummary& summary : page->models) *response.add_models() = ToProto(summary);
  for (std::string& name : page->unreachable) response.add_unreachable(std::move(name));
  if (!page->next.empty()) response.set_next_page_token(MakePageToken(kModelList, page->next));
  return absl::OkStatus();
}

// The fields that the mask selects. INVALID_ARGUMENT (IMMUTABLE_FIELD, INVALID_FIELD) for a field
// that cannot be updated or does not exist.
absl::StatusOr<std::vector<std::string>> UpdatedFields(const google::protobuf::FieldMask& mask) {
  const std::vector<std::string> all = {"description", "margin_of_interest", "expire_after"};
  if (mask.paths_size() == 0 || (mask.paths_size() == 1 && mask.paths(0) == "*")) return all;
  std::vector<std::string> fields;
  for (const std::string& path : mask.paths()) {
    if (std::find(all.begin(), all.end(), path) != all.end()) {
      fields.push_back(path);
    } else if (google::protobuf::util::FieldMaskUtil::IsValidPath<v1::Model>(path)) {
      return InvalidField("IMMUTABLE_FIELD", "update_mask",
                          absl::StrCat(path, " cannot be changed; create another model instead"));
    } else {
      return InvalidField("INVALID_FIELD", "update_mask",
                          absl::StrCat("a model has no field ", path));
    }
  }
  return fields;
}

// Changes a model and returns it as it is after the change, or with validate_only as it would be.
absl::Status Change(Store& store, const std::string& name, ChangeOptions options,
                    absl::string_view method, const std::function<absl::Status(v1::Model&)>& change,
                    v1::Model& response) {
  if (absl::Status status = CheckId(options.request_id, "request_id"); !status.ok()) return status;
  // An id names a request of one method.
  std::string id;
  if (!options.request_id.empty()) id = absl::StrCat(method, "/", options.request_id);
  options.request_id = id;
  absl::StatusOr<v1::Model> changed = store.Change(name, options, change);
  if (!changed.ok()) return changed.status();
  absl::StatusOr<ModelSummary> summary = store.Get(name);
  if (!summary.ok()) return summary.status();
  summary->settings = *std::move(changed);
  response = ToProto(*summary);
  return absl::OkStatus();
}

void SetExpireAfter(const v1::Model& from, v1::Model& to) {
  if (from.has_expire_after()) {
    *to.mutable_expire_after() = from.expire_after();
  } else {
    to.clear_expire_after();
  }
}

absl::Status Update(Store& store, const v1::UpdateModelRequest& request, v1::Model& response) {
  if (absl::Status status = CheckNoAlias(request.model().name(), "model.name"); !status.ok())
    return status;
  absl::StatusOr<std::vector<std::string>> fields = UpdatedFields(request.update_mask());
  if (!fields.ok()) return fields.status();
  const auto change = [&](v1::Model& model) {
    for (const std::string& field : *fields) {
      if (field == "description") model.set_description(request.model().description());
      if (field == "margin_of_interest")
        model.set_margin_of_interest(request.model().margin_of_interest());
      if (field == "expire_after") SetExpireAfter(request.model(), model);
    }
    return absl::OkStatus();
  };
  return Change(store, request.model().name(),
                {request.model().etag(), request.request_id(), request.validate_only()},
                "UpdateModel", change, response);
}

absl::Status Delete(Store& store, const v1::DeleteModelRequest& request,
                    google::protobuf::Empty& /*response*/) {
  if (absl::Status status = CheckNoAlias(request.name(), "name"); !status.ok()) return status;
  absl::Status deleted = store.Delete(request.name(), request.etag(), request.validate_only());
  if (absl::IsNotFound(deleted) && request.allow_missing()) return absl::OkStatus();
  return deleted;
}

// Freezes or unfreezes a model.
template <typename Request>
absl::Status SetState(Store& store, const Request& request, v1::ModelState state,
                      v1::Model& response) {
  if (absl::Status status = CheckNoAlias(request.name(), "name"); !status.ok()) return status;
  const auto change = [state](v1::Model& model) {
    model.set_state(state);
    return absl::OkStatus();
  };
  return Change(
      store, request.name(), {request.etag(), request.request_id(), request.validate_only()},
      state == v1::MODEL_STATE_FROZEN ? "FreezeModel" : "UnfreezeModel", change, response);
}

absl::Status Freeze(Store& store, const v1::FreezeModelRequest& request, v1::Model& response) {
  return SetState(store, request, v1::MODEL_STATE_FROZEN, response);
}

absl::Status Unfreeze(Store& store, const v1::UnfreezeModelRequest& request, v1::Model& response) {
  return SetState(store, request, v1::MODEL_STATE_ACTIVE, response);
}

// Starting weights make a request long; the others are as long as all weights.
Placement PlacementOfCreate(Store& /*store*/, const v1::CreateModelRequest& request) {
  constexpr size_t kShort = 64 << 10;
  constexpr uint32_t kFewWeights = 1 << 22;
  constexpr uint32_t kFewBits = 22;
  const v1::FeatureSpace& space = request.model().feature_space();
  const bool large = request.ByteSizeLong() > kShort || space.has_map() ||
                     space.dense().dimension() > kFewWeights || space.hashed().bits() > kFewBits ||
                     space.text().bits() > kFewBits;
  return {large ? WorkSize::kLarge : WorkSize::kManagement};
}

Placement PlacementOfGet(Store& store, const v1::GetModelRequest& request) {
  if (request.view() == v1::MODEL_VIEW_WEIGHTS) return {WorkSize::kLarge};
  return PlacementOfReport(store, request.name());
}

Placement PlacementOfWeights(Store& store, const v1::ListWeightsRequest& request) {
  return PlacementOfReport(store, request.model());
}

Placement PlacementOfUpdate(Store& store, const v1::UpdateModelRequest& request) {
  return PlacementOfManagement(store, request.model().name());
}

template <typename Request>
Placement PlacementOfNamed(Store& store, const Request& request) {
  return PlacementOfManagement(store, request.name());
}

}  // namespace

void AddModelService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService(
      "perceptron.v1.ModelService",
      {{"CreateModel", unary(Create, PlacementOfCreate)},
       {"GetModel", unary(Get, PlacementOfGet)},
       {"ListWeights", unary(ListModelWeights, PlacementOfWeights)},
       {"ListModels", unary(ListModels, IsManagement<v1::ListModelsRequest>)},
       {"UpdateModel", unary(Update, PlacementOfUpdate)},
       {"DeleteModel", unary(Delete, PlacementOfNamed<v1::DeleteModelRequest>)},
       {"FreezeModel", unary(Freeze, PlacementOfNamed<v1::FreezeModelRequest>)},
       {"UnfreezeModel", unary(Unfreeze, PlacementOfNamed<v1::UnfreezeModelRequest>)},
       {"WatchModel", [backend](Call& call) { WatchReactor::Start(call, backend); }}});
}

}  // namespace perceptrond
