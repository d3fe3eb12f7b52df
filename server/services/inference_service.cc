#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/learner/catalogue.h"
#include "google/rpc/status.pb.h"
#include "server/config/build_info.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/backend.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/inference_batch.h"
#include "server/services/inference_outputs.h"
#include "server/services/services.h"
#include "server/sessions/placement.h"
#include "server/sessions/predict_session.h"

namespace perceptrond {
namespace {

namespace oip = ::inference;
namespace v1 = ::perceptron::v1;
using Parameters = google::protobuf::Map<std::string, oip::InferParameter>;
using TensorMetadata = oip::ModelMetadataResponse::TensorMetadata;

constexpr absl::string_view kMinRevision = "min_revision";
constexpr absl::string_view kUnknownFeatures = "unknown_features";

absl::StatusOr<std::shared_ptr<Model>> FindModel(Store& store, const std::string& id,
                                                 absl::string_view field) {
  if (IsModelId(id)) return store.Acquire(absl::StrCat(kModelCollection, id));
  if (CheckAliasName(id, field).ok()) return AliasNotFound(id);
  return InvalidField("INVALID_FIELD", field,
                      absl::StrCat("\"", absl::Utf8SafeCHexEscape(id),
                                   "\" is not a model's id; write \"spam\" for \"models/spam\""));
}

// The revision that a version names; absent for any.
absl::StatusOr<std::optional<uint64_t>> ReadVersion(const std::string& version,
                                                    absl::string_view field) {
  if (version.empty()) return std::nullopt;
  uint64_t revision = 0;
  // A revision has one spelling: "007" is not 7.
  if (absl::SimpleAtoi(version, &revision) && absl::StrCat(revision) == version) return revision;
  return InvalidField("INVALID_FIELD", field,
                      absl::StrCat("\"", absl::Utf8SafeCHexEscape(version),
                                   "\" is not a version; send the model's revision as a decimal "
                                   "number, or nothing for the current one"));
}

absl::Status CheckVersion(const std::optional<uint64_t>& version, uint64_t revision) {
  if (!version.has_value() || *version == revision) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kNotFound, "VERSION_NOT_FOUND",
      absl::StrCat("the model is at revision ", revision, " and does not have version ", *version,
                   "; send no version for the current one, or freeze the model to keep one"),
      {{"revision", absl::StrCat(revision)}});
}

// Rejects parameters that would change the response or where it is stored.
absl::Status CheckParameters(const Parameters& parameters, const std::string& field) {
  for (const auto& [name, value] : parameters) {
    if (name != "classification" && !absl::StartsWith(name, "shared_memory_")) continue;
    return InvalidField("UNSUPPORTED_PARAMETER",
                        absl::StrCat(field, "parameters[\"", absl::Utf8SafeCHexEscape(name), "\"]"),
                        name == "classification"
                            ? "the classification extension is not supported; use the outputs "
                              "label, class_scores and class_names"
                            : "shared memory is not supported; send the contents");
  }
  return absl::OkStatus();
}

absl::Status CheckAllParameters(const oip::ModelInferRequest& request) {
  absl::Status status = CheckParameters(request.parameters(), "");
  for (int i = 0; status.ok() && i < request.inputs_size(); ++i)
    status = CheckParameters(request.inputs(i).parameters(), absl::StrCat("inputs[", i, "]."));
  for (int i = 0; status.ok() && i < request.outputs_size(); ++i)
    status = CheckParameters(request.outputs(i).parameters(), absl::StrCat("outputs[", i, "]."));
  return status;
}

absl::StatusOr<int64_t> ReadMinRevision(const Parameters& parameters) {
  const auto found = parameters.find(std::string(kMinRevision));
  if (found == parameters.end()) return 0;
  const oip::InferParameter& value = found->second;
  if (value.has_int64_param() && value.int64_param() >= 0) return value.int64_param();
  // Revisions are at most the largest int64.
  if (value.has_uint64_param())
    return static_cast<int64_t>(std::min<uint64_t>(value.uint64_param(), INT64_MAX));
  return InvalidField("INVALID_FIELD", absl::StrCat("parameters[\"", kMinRevision, "\"]"),
                      "is not an integer of at least 0");
}

absl::StatusOr<v1::UnknownFeatures> ReadUnknownFeatures(const Parameters& parameters) {
  const auto found = parameters.find(std::string(kUnknownFeatures));
  if (found == parameters.end()) return v1::UNKNOWN_FEATURES_IGNORE;
  const std::string& choice = found->second.string_param();
  if (choice == "refuse") return v1::UNKNOWN_FEATURES_REFUSE;
  if (choice == "ignore") return v1::UNKNOWN_FEATURES_IGNORE;
  return InvalidField("INVALID_FIELD", absl::StrCat("parameters[\"", kUnknownFeatures, "\"]"),
                      "is not the string \"ignore\" or \"refuse\"");
}

absl::Status PredictTensors(Store& store, const Model& model, const oip::ModelInferRequest& request,
                            bool include_class_scores, v1::PredictResponse& prediction) {
  const absl::StatusOr<int64_t> min_revision = ReadMinRevision(request.parameters());
  if (!min_revision.ok()) return min_revision.status();
  const absl::StatusOr<v1::UnknownFeatures> unknown_features =
      ReadUnknownFeatures(request.parameters());
  if (!unknown_features.ok()) return unknown_features.status();
  MessagePredictor::Request predict;
  v1::PredictRequest& examples = predict.message;
  examples.set_min_revision(*min_revision);
  examples.set_include_class_scores(include_class_scores);
  examples.set_unknown_features(*unknown_features);
  InferenceBatch batch;
  absl::Status status = batch.Read(request, *examples.mutable_columns());
  if (!status.ok()) return status;
  status = MessagePredictor(store).Predict(model, predict, prediction);
  if (status.ok() && prediction.row_errors_size() > 0)
    status = FromProto(prediction.row_errors(0).status());
  if (status.ok()) return batch.CheckWidth(model.settings().example_space, examples.columns());
  return batch.ToTensorError(status);
}

// The feature space of the examples that a model takes; for a composition, that of its components.
absl::StatusOr<FeatureSpace> ExampleSpace(Store& store, std::shared_ptr<Model> model) {
  while (!model->settings().components.empty()) {
    absl::StatusOr<std::shared_ptr<Model>> component =
        store.Acquire(model->settings().components.front().name);
    if (!component.ok()) return component.status();
    model = *std::move(component);
  }
  return model->settings().space;
}

const char* SpaceName(const ModelSettings& settings) {
  if (!settings.components.empty()) return "composition";
  if (settings.space.text.has_value()) return "text";
  switch (settings.space.kind) {
    case FeatureSpace::Kind::kDense:
      return "dense";
    case FeatureSpace::Kind::kHashed:
      return "hashed";
    case FeatureSpace::Kind::kNamed:
      break;
  }
  return "named";
}

// The input forms besides the one in the metadata's inputs: sparse rows, and names in columns.
std::string OtherInputs(const FeatureSpace& space) {
  const char* const kSparse = "row_ends UINT32 [-1], indices UINT32 [-1], values FP32 [-1]";
  const char* const kNames = "row_ends UINT32 [-1], names BYTES [-1], values FP32 [-1]";
  const char* const kPadded = "names BYTES [-1,-1], values FP32 [-1,-1]";
  if (space.text.has_value()) return "text BYTES [-1,1]";
  switch (space.kind) {
    case FeatureSpace::Kind::kDense:
      return kSparse;
    case FeatureSpace::Kind::kHashed:
      // Products of groups need names.
      if (space.map.kind == FeatureMap::Kind::kProducts) break;
      return absl::StrCat(kPadded, "; ", kNames, "; ", kSparse, "; features FP32 [-1,", space.size,
                          "]");
    case FeatureSpace::Kind::kNamed:
      break;
  }
  return absl::StrCat(kPadded, "; ", kNames);
}

void AddTensor(absl::string_view name, absl::string_view datatype,
               const std::vector<int64_t>& shape,
               google::protobuf::RepeatedPtrField<TensorMetadata>& tensors) {
  TensorMetadata& tensor = *tensors.Add();
  tensor.set_name(std::string(name));
  tensor.set_datatype(std::string(datatype));
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
}

absl::Status ModelMetadata(Store& store, const oip::ModelMetadataRequest& request,
                           oip::ModelMetadataResponse& response) {
  const absl::StatusOr<std::shared_ptr<Model>> model = FindModel(store, request.name(), "name");
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::optional<uint64_t>> version = ReadVersion(request.version(), "version");
  if (!version.ok()) return version.status();
  const uint64_t revision = (*model)->revision();
  if (absl::Status status = CheckVersion(*version, revision); !status.ok()) return status;
  const absl::StatusOr<FeatureSpace> space = ExampleSpace(store, *model);
  if (!space.ok()) return space.status();
  const ModelSettings& settings = (*model)->settings();
  const absl::string_view learner = FindLearner(settings.learner).name;
  response.set_name(request.name());
  response.add_versions(absl::StrCat(revision));
  response.set_platform(absl::StrCat("perceptrond_", learner));
  if (space->kind == FeatureSpace::Kind::kDense) {
    AddTensor(kInputNames[0], "FP32", {-1, space->size}, *response.mutable_inputs());
  } else if (space->text.has_value()) {
    AddTensor(kInputNames[5], "BYTES", {-1}, *response.mutable_inputs());
  } else {
    AddTensor(kInputNames[4], "BYTES", {-1, -1}, *response.mutable_inputs());
  }
  for (const InferenceOutput& output : OutputsOf(**model))
    AddTensor(output.name, output.datatype, output.shape, *response.mutable_outputs());
  auto& properties = *response.mutable_properties();
  properties["learner"] = std::string(learner);
  properties["feature_space"] = SpaceName(settings);
  properties["other_inputs"] = OtherInputs(*space);
  properties["fp64_rounding"] = "nearest float32, ties to even";
  return absl::OkStatus();
}

absl::Status ModelReady(Store& store, const Drain& drain, const oip::ModelReadyRequest& request,
                        oip::ModelReadyResponse& response) {
  const absl::StatusOr<std::shared_ptr<Model>> model = FindModel(store, request.name(), "name");
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::optional<uint64_t>> version = ReadVersion(request.version(), "version");
  if (!version.ok()) return version.status();
  response.set_ready(!drain.draining() && CheckVersion(*version, (*model)->revision()).ok());
  return absl::OkStatus();
}

absl::Status ServerMetadata(Store& /*store*/, const oip::ServerMetadataRequest& /*request*/,
                            oip::ServerMetadataResponse& response) {
  response.set_name("perceptrond");
  response.set_version(GetBuildInfo().version);
  for (const absl::string_view extension :
       {absl::string_view("learning"), absl::string_view("perceptron.v1.LearningService"),
        kMinRevision, kUnknownFeatures})
    response.add_extensions(std::string(extension));
  return absl::OkStatus();
}

absl::Status ServerLive(Store& /*store*/, const Drain& /*drain*/,
                        const oip::ServerLiveRequest& /*request*/,
                        oip::ServerLiveResponse& response) {
  response.set_live(true);
  return absl::OkStatus();
}

absl::Status ServerReady(Store& /*store*/, const Drain& drain,
                         const oip::ServerReadyRequest& /*request*/,
                         oip::ServerReadyResponse& response) {
  response.set_ready(!drain.draining());
  return absl::OkStatus();
}

template <typename Request>
Placement Inline(Store& /*store*/, const Request& /*request*/) {
  return {WorkSize::kManagement, true};
}

// The metadata of a model.
template <typename Request>
Placement PlacementOfMetadata(Store& store, const Request& request) {
  return PlacementOfReport(store, absl::StrCat(kModelCollection, request.name()));
}

// A value has four bytes, or is a name of about as many.
constexpr uint64_t kMinFeatureBytes = 4;

// The bytes of the tensors say how many features there are, at most; the rows share them.
Placement PlacementOfInfer(Store& store, const oip::ModelInferRequest& request) {
  const std::shared_ptr<Model> model =
      store.GetIfLoaded(absl::StrCat(kModelCollection, request.model_name()));
  const bool texts = model != nullptr && model->settings().example_space.text.has_value();
  const uint64_t features =
      texts ? kTextByteWork * request.ByteSizeLong() : request.ByteSizeLong() / kMinFeatureBytes;
  uint64_t rows = 1;
  for (const auto& input : request.inputs()) {
    if (input.shape_size() > 0 && input.shape(0) > 0)
      rows = std::max(rows, static_cast<uint64_t>(input.shape(0)));
  }
  BatchShape shape;
  shape.dense_rows = std::min(rows, features + 1);
  shape.dense_width = features / shape.dense_rows + 1;
  return PlacementOfRows(store, model.get(), shape);
}

AwaitedRevision AwaitInferRevision(Store& store, const oip::ModelInferRequest& request) {
  const absl::StatusOr<int64_t> revision = ReadMinRevision(request.parameters());
  if (!revision.ok() || *revision == 0 || !IsModelId(request.model_name())) return {};
  const std::string name = absl::StrCat(kModelCollection, request.model_name());
  return MissingRevision(store, store.GetIfLoaded(name).get(), name, *revision);
}

}  // namespace

absl::Status Infer(Store& store, const ::inference::ModelInferRequest& request,
                   ::inference::ModelInferResponse& response) {
  const absl::StatusOr<std::shared_ptr<Model>> model =
      FindModel(store, request.model_name(), "model_name");
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::optional<uint64_t>> version =
      ReadVersion(request.model_version(), "model_version");
  if (!version.ok()) return version.status();
  if (absl::Status status = CheckAllParameters(request); !status.ok()) return status;
  const absl::StatusOr<std::vector<InferenceOutput>> outputs = ChooseOutputs(request, **model);
  if (!outputs.ok()) return outputs.status();
  v1::PredictResponse prediction;
  absl::Status status =
      PredictTensors(store, **model, request, NeedAllScores(*outputs), prediction);
  if (!status.ok()) return status;
  const auto revision = static_cast<uint64_t>(prediction.revision());
  if (status = CheckVersion(*version, revision); !status.ok()) return status;
  response.set_model_name(request.model_name());
  response.set_model_version(absl::StrCat(revision));
  response.set_id(request.id());
  AppendOutputs(*outputs, **model, prediction, request.raw_input_contents_size() > 0, response);
  return absl::OkStatus();
}

void AddInferenceService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService(
      "inference.GRPCInferenceService",
      {{"ServerLive", unary(ServerLive, Inline<oip::ServerLiveRequest>)},
       {"ServerReady", unary(ServerReady, Inline<oip::ServerReadyRequest>)},
       {"ModelReady", unary(ModelReady, PlacementOfMetadata<oip::ModelReadyRequest>)},
       {"ServerMetadata", unary(ServerMetadata, Inline<oip::ServerMetadataRequest>)},
       {"ModelMetadata", unary(ModelMetadata, PlacementOfMetadata<oip::ModelMetadataRequest>)},
       {"ModelInfer", unary(Infer, PlacementOfInfer, AwaitInferRevision)}});
}

}  // namespace perceptrond
