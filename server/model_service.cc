#include "server/model_service.h"

#include <google/protobuf/util/field_mask_util.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/learner/catalogue.h"
#include "core/model/error.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/convert.h"
#include "server/model_name.h"
#include "server/page_token.h"
#include "server/rpc/router.h"
#include "server/rpc/unary.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kDefaultPage = 100;
constexpr int kLargestPage = 1000;
constexpr absl::string_view kModelList = "ListModels";

absl::Status Create(Store& store, const v1::CreateModelRequest& request, v1::Model& response) {
  const std::string name = absl::StrCat(kModelCollection, request.model_id());
  if (absl::Status status = CheckModelName(name, "model_id"); !status.ok()) return status;
  if (request.request_id().size() > 128)
    return InvalidField("INVALID_FIELD", "request_id", "has more than 128 bytes");
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

// FAILED_PRECONDITION for a model that answers with no one vector of weights.
absl::Status CheckLinear(const Model& model) {
  const CatalogueEntry& learner = FindLearner(model.settings().learner.kind);
  if (learner.form == Form::kLinear) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_LINEAR",
                   absl::StrCat("model \"", model.name(), "\" learns by ", learner.name,
                                ", which answers with no one vector of weights: there are none to "
                                "show; ask without them"),
                   {{"model", model.name()}, {"learner", std::string(learner.name)}});
}

absl::Status Get(Store& store, const v1::GetModelRequest& request, v1::Model& response) {
  if (absl::Status status = CheckModelName(request.name(), "name"); !status.ok()) return status;
  if (absl::Status status = CheckModelView(request.view()); !status.ok()) return status;
  absl::StatusOr<ModelSummary> summary = store.Get(request.name());
  if (!summary.ok()) return summary.status();
  response = ToProto(*summary);
  if (request.view() != v1::MODEL_VIEW_WEIGHTS && request.view() != v1::MODEL_VIEW_HISTORY)
    return absl::OkStatus();
  absl::StatusOr<std::shared_ptr<Model>> model = store.Acquire(request.name());
  if (!model.ok()) return model.status();
  if (request.view() == v1::MODEL_VIEW_HISTORY) {
    ToProto((*model)->MakeLearningCurve(), response);
    return absl::OkStatus();
  }
  if (absl::Status status = CheckLinear(**model); !status.ok()) return status;
  // Report and weights of one revision, also while the model learns.
  const Model::View view = (*model)->MakeView();
  *response.mutable_report() = view.report;
  if (!(*model)->settings().is_multiclass()) ToProto(view.weights, *response.mutable_weights());
  for (const WeightList& weights : view.weights_by_class)
    ToProto(weights, *response.add_weights_by_class());
  response.set_revision(static_cast<int64_t>(view.weights.revision));
  return absl::OkStatus();
}

absl::Status List(Store& store, const v1::ListModelsRequest& request,
                  v1::ListModelsResponse& response) {
  if (request.page_size() < 0) return InvalidField("INVALID_FIELD", "page_size", "is below 0");
  const int limit =
      request.page_size() == 0 ? kDefaultPage : std::min(request.page_size(), kLargestPage);
  // The name of the last model listed.
  const absl::StatusOr<std::string> after = ReadPageToken(kModelList, request.page_token());
  if (!after.ok()) return after.status();
  absl::StatusOr<std::vector<ModelSummary>> page =
      store.List(*after, static_cast<size_t>(limit) + 1);
  if (!page.ok()) return page.status();
  for (size_t i = 0; i < page->size() && i < static_cast<size_t>(limit); ++i) {
    *response.add_models() = ToProto((*page)[i]);
  }
  if (page->size() > static_cast<size_t>(limit)) {
    response.set_next_page_token(MakePageToken(kModelList, response.models(limit - 1).name()));
  }
  return absl::OkStatus();
}

// The fields of the mask that may be updated. INVALID_ARGUMENT for others.
absl::StatusOr<std::vector<std::string>> UpdatedFields(const google::protobuf::FieldMask& mask) {
  const std::vector<std::string> all = {"description", "margin_of_interest"};
  if (mask.paths_size() == 0 || (mask.paths_size() == 1 && mask.paths(0) == "*")) return all;
  std::vector<std::string> fields;
  for (const std::string& path : mask.paths()) {
    if (std::find(all.begin(), all.end(), path) != all.end()) {
      fields.push_back(path);
    } else if (google::protobuf::util::FieldMaskUtil::IsValidPath<v1::Model>(path)) {
      return InvalidField("IMMUTABLE_FIELD", "update_mask",
                          absl::StrCat(path, " cannot be changed; create another model with it"));
    } else {
      return InvalidField("INVALID_FIELD", "update_mask",
                          absl::StrCat("a model has no field ", path));
    }
  }
  return fields;
}

absl::Status Update(Store& store, const v1::UpdateModelRequest& request, v1::Model& response) {
  if (absl::Status status = CheckModelName(request.model().name(), "model.name"); !status.ok())
    return status;
  absl::StatusOr<std::vector<std::string>> fields = UpdatedFields(request.update_mask());
  if (!fields.ok()) return fields.status();
  absl::StatusOr<v1::Model> changed =
      store.Change(request.model().name(), request.model().etag(), request.validate_only(),
                   [&](v1::Model& model) {
                     for (const std::string& field : *fields) {
                       if (field == "description")
                         model.set_description(request.model().description());
                       if (field == "margin_of_interest")
                         model.set_margin_of_interest(request.model().margin_of_interest());
                     }
                     return absl::OkStatus();
                   });
  if (!changed.ok()) return changed.status();
  absl::StatusOr<ModelSummary> summary = store.Get(request.model().name());
  if (!summary.ok()) return summary.status();
  // With validate_only, what would be.
  summary->settings = *std::move(changed);
  response = ToProto(*summary);
  return absl::OkStatus();
}

absl::Status Delete(Store& store, const v1::DeleteModelRequest& request,
                    google::protobuf::Empty& /*response*/) {
  if (absl::Status status = CheckModelName(request.name(), "name"); !status.ok()) return status;
  return store.Delete(request.name(), request.etag(), request.validate_only());
}

// The model as it is after its state changed.
absl::Status SetState(Store& store, const std::string& name, const std::string& etag,
                      v1::ModelState state, v1::Model& response) {
  if (absl::Status status = CheckModelName(name, "name"); !status.ok()) return status;
  absl::StatusOr<v1::Model> changed =
      store.Change(name, etag, /*validate_only=*/false, [&](v1::Model& model) {
        model.set_state(state);
        return absl::OkStatus();
      });
  if (!changed.ok()) return changed.status();
  absl::StatusOr<ModelSummary> summary = store.Get(name);
  if (!summary.ok()) return summary.status();
  response = ToProto(*summary);
  return absl::OkStatus();
}

absl::Status Freeze(Store& store, const v1::FreezeModelRequest& request, v1::Model& response) {
  return SetState(store, request.name(), request.etag(), v1::MODEL_STATE_FROZEN, response);
}

absl::Status Unfreeze(Store& store, const v1::UnfreezeModelRequest& request, v1::Model& response) {
  return SetState(store, request.name(), request.etag(), v1::MODEL_STATE_ACTIVE, response);
}

}  // namespace

void AddModelService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService("perceptron.v1.ModelService", {{"CreateModel", unary(Create)},
                                                   {"GetModel", unary(Get)},
                                                   {"ListModels", unary(List)},
                                                   {"UpdateModel", unary(Update)},
                                                   {"DeleteModel", unary(Delete)},
                                                   {"FreezeModel", unary(Freeze)},
                                                   {"UnfreezeModel", unary(Unfreeze)}});
}

}  // namespace perceptrond
