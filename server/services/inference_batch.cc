#include "server/services/inference_batch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/features/feature_space.h"
#include "core/model/error.h"
#include "core/vector/check.h"
#include "google/rpc/error_details.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::string_view kForms = "send features; or indices and row_ends; or names";

absl::string_view NameOf(size_t role) { return kInputNames[role]; }

// 3 for "row_ends[3]"; absent for "row_ends".
std::optional<size_t> PositionIn(absl::string_view path) {
  const size_t bracket = path.find('[');
  size_t position = 0;
  if (bracket == absl::string_view::npos ||
      !absl::SimpleAtoi(path.substr(bracket + 1, path.find(']') - bracket - 1), &position))
    return std::nullopt;
  return position;
}

template <typename Detail>
bool ReadDetail(const absl::Status& status, absl::string_view url, Detail& detail) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  return payload.has_value() && detail.ParseFromString(std::string(*payload));
}

}  // namespace

absl::Status InferenceBatch::Read(const ::inference::ModelInferRequest& request,
                                  v1::ExampleColumns& columns) {
  if (absl::Status status = Gather(request); !status.ok()) return status;
  if (absl::Status status = CheckForm(); !status.ok()) return status;
  if (Has(Role::kFeatures)) return ReadDense(columns);
  return Has(Role::kIndices) ? ReadSparse(columns) : ReadNamed(columns);
}

absl::Status InferenceBatch::Gather(const ::inference::ModelInferRequest& request) {
  const bool raw = request.raw_input_contents_size() > 0;
  if (raw && request.raw_input_contents_size() != request.inputs_size()) {
    return InvalidField("LENGTH_MISMATCH", "raw_input_contents",
                        absl::StrCat(request.raw_input_contents_size(), " raw contents for ",
                                     request.inputs_size(), " inputs; send one for each"));
  }
  tensors_ = {};
  for (int i = 0; i < request.inputs_size(); ++i) {
    const InferenceTensor::Message& input = request.inputs(i);
    InferenceTensor tensor(input, raw ? &request.raw_input_contents(i) : nullptr, i);
    const auto* const known = std::find(kInputNames.begin(), kInputNames.end(), input.name());
    if (known == kInputNames.end()) {
      return tensor.Invalid("UNKNOWN_TENSOR", absl::StrCat("is not an input of a model; ", kForms));
    }
    std::optional<InferenceTensor>& slot = tensors_[known - kInputNames.begin()];
    if (slot.has_value()) return tensor.Invalid("DUPLICATE_TENSOR", "is sent twice; send it once");
    if (raw && input.has_contents()) {
      return tensor.Invalid("BOTH_FORMS",
                            "has contents as well as raw_input_contents; send one of them");
    }
    if (absl::Status status = tensor.Check(); !status.ok()) return status;
    slot = tensor;
  }
  return absl::OkStatus();
}

absl::Status InferenceBatch::CheckForm() const {
  const Role forms[] = {Role::kFeatures, Role::kIndices, Role::kNames};
  const auto* const form =
      std::find_if(std::begin(forms), std::end(forms), [this](Role role) { return Has(role); });
  if (form == std::end(forms)) {
    return InvalidField("MISSING_TENSOR", "inputs",
                        absl::StrCat("the request has no examples; ", kForms));
  }
  const bool dense = *form == Role::kFeatures;
  const bool padded = *form == Role::kNames && this->padded();
  for (size_t role = 0; role < kRoles; ++role) {
    if (!tensors_[role].has_value() || role == static_cast<size_t>(*form)) continue;
    const bool is_companion = (role == static_cast<size_t>(Role::kRowEnds) && !dense && !padded) ||
                              (role == static_cast<size_t>(Role::kValues) && !dense);
    if (!is_companion) {
      return tensors_[role]->Invalid(
          "BOTH_FORMS", absl::StrCat("cannot be combined with ", padded ? "two-dimensional " : "",
                                     NameOf(static_cast<size_t>(*form)), "; ", kForms));
    }
  }
  if (!dense && !padded && !Has(Role::kRowEnds)) {
    return InvalidField("MISSING_TENSOR", "inputs",
                        absl::StrCat(NameOf(static_cast<size_t>(*form)),
                                     " need row_ends, the position after each row",
                                     *form == Role::kNames ? ", or two dimensions" : ""));
  }
  return absl::OkStatus();
}

absl::Status InferenceBatch::ReadDense(v1::ExampleColumns& columns) const {
  const InferenceTensor& features = *tensor(Role::kFeatures);
  if (absl::Status status = features.CheckRank(2, "[rows, features]"); !status.ok()) return status;
  if (features.size(1) == 0 || features.size(1) > FeatureSpace::kMaxFeatures) {
    return features.Invalid("WRONG_DIMENSION",
                            absl::StrCat("rows have ", features.size(1), " values; a row has 1 to ",
                                         FeatureSpace::kMaxFeatures));
  }
  columns.set_dense_width(static_cast<uint32_t>(features.size(1)));
  return features.AppendFloats(*columns.mutable_values());
}

absl::Status InferenceBatch::CheckWidth(const FeatureSpace& space,
                                        const v1::ExampleColumns& columns) const {
  const uint32_t width = columns.dense_width();
  if (columns.values_size() > 0 || width == 0 || width == space.size) return absl::OkStatus();
  return tensor(Role::kFeatures)
      ->Invalid("WRONG_DIMENSION",
                absl::StrCat("rows have ", width, " values; the model has dimension ", space.size));
}

absl::Status InferenceBatch::ReadRowEnds(
    google::protobuf::RepeatedField<uint32_t>& row_ends) const {
  const InferenceTensor& ends = *tensor(Role::kRowEnds);
  if (absl::Status status = ends.CheckRank(1, "[rows]"); !status.ok()) return status;
  return ends.AppendIndices(row_ends);
}

absl::Status InferenceBatch::ReadSparse(v1::ExampleColumns& columns) const {
  for (const Role role : {Role::kIndices, Role::kValues}) {
    if (!Has(role)) continue;
    if (absl::Status status = tensor(role)->CheckRank(1, "[features of all rows]"); !status.ok())
      return status;
  }
  if (absl::Status status = ReadRowEnds(*columns.mutable_row_ends()); !status.ok()) return status;
  if (absl::Status status = tensor(Role::kIndices)->AppendIndices(*columns.mutable_indices());
      !status.ok())
    return status;
  if (!Has(Role::kValues)) return absl::OkStatus();
  // Columns without values mean all ones; a tensor without values is an error.
  const InferenceTensor& values = *tensor(Role::kValues);
  if (values.elements() != tensor(Role::kIndices)->elements()) {
    return values.Invalid("LENGTH_MISMATCH",
                          absl::StrCat(values.elements(), " values for ",
                                       tensor(Role::kIndices)->elements(), " indices"));
  }
  return values.AppendFloats(*columns.mutable_values());
}

const InferenceTensor& InferenceBatch::TensorOf(absl::string_view field) const {
  const Role form = Has(Role::kFeatures)  ? Role::kFeatures
                    : Has(Role::kIndices) ? Role::kIndices
                                          : Role::kNames;
  if (field == "values" && Has(Role::kValues)) return *tensor(Role::kValues);
  if (field == "row_ends" && Has(Role::kRowEnds)) return *tensor(Role::kRowEnds);
  return *tensor(form);
}

absl::Status InferenceBatch::ToTensorError(const absl::Status& status) const {
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad;
  if (!absl::IsInvalidArgument(status) || !ReadDetail(status, kErrorInfoUrl, info) ||
      !ReadDetail(status, kBadRequestUrl, bad) || bad.field_violations_size() == 0)
    return status;
  const google::rpc::BadRequest::FieldViolation& violation = bad.field_violations(0);
  if (violation.field() == "include_class_scores") {
    return InvalidField(
        info.reason(), "outputs",
        absl::StrCat(violation.description(),
                     ", or ask for outputs other than class_scores and class_probabilities"));
  }
  absl::string_view path = violation.field();
  if (!absl::ConsumePrefix(&path, "columns")) return status;
  absl::ConsumePrefix(&path, ".");
  return ToTensorError(info.reason(), path, violation.description());
}

absl::Status InferenceBatch::ToTensorError(absl::string_view reason, absl::string_view path,
                                           absl::string_view description) const {
  const absl::string_view field = path.substr(0, path.find('['));
  std::optional<size_t> position = PositionIn(path);
  // The columns have the names of a row in another order than the tensor.
  if (Has(Role::kNames) && position.has_value() && (field == "values" || field == "indices"))
    position =
        *position < positions_.size() ? std::optional<size_t>(positions_[*position]) : std::nullopt;
  // Errors that are not about one element.
  if (field == "feature_names" || reason == ReasonName(ValidationCode::kWrongDimension))
    position = std::nullopt;
  return TensorOf(field).Invalid(reason, description, position);
}

}  // namespace perceptrond
