#include "server/services/inference_batch.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/error/error.h"
#include "core/features/feature_space.h"
#include "core/vector/check.h"
#include "core/vector/name.h"
#include "google/rpc/error_details.pb.h"
#include "server/sessions/example_batch.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::string_view kForms = "send features; or indices and row_ends; or names; or text";

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
  if (Has(Role::kText)) return ReadTexts(columns);
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

std::optional<InferenceBatch::Role> InferenceBatch::form() const {
  for (const Role role : {Role::kFeatures, Role::kIndices, Role::kNames, Role::kText}) {
    if (Has(role)) return role;
  }
  return std::nullopt;
}

absl::Status InferenceBatch::CheckForm() const {
  const std::optional<Role> form = this->form();
  if (!form.has_value()) {
    return InvalidField("MISSING_TENSOR", "inputs",
                        absl::StrCat("the request has no examples; ", kForms));
  }
  const bool alone = *form == Role::kFeatures || *form == Role::kText;
  const bool padded = *form == Role::kNames && this->padded();
  for (size_t role = 0; role < kRoles; ++role) {
    if (!tensors_[role].has_value() || role == static_cast<size_t>(*form)) continue;
    const bool is_companion = (role == static_cast<size_t>(Role::kRowEnds) && !alone && !padded) ||
                              (role == static_cast<size_t>(Role::kValues) && !alone);
    if (!is_companion) {
      return tensors_[role]->Invalid(
          "BOTH_FORMS", absl::StrCat("cannot be combined with ", padded ? "two-dimensional " : "",
                                     NameOf(static_cast<size_t>(*form)), "; ", kForms));
    }
  }
  if (!alone && !padded && !Has(Role::kRowEnds)) {
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
  if (absl::Status status = CheckRows(features); !status.ok()) return status;
  columns.set_dense_width(static_cast<uint32_t>(features.size(1)));
  return features.AppendFloats(*columns.mutable_values());
}

absl::Status InferenceBatch::ReadTexts(v1::ExampleColumns& columns) const {
  const InferenceTensor& texts = *tensor(Role::kText);
  const bool is_column = texts.rank() == 2 && texts.size(1) == 1;
  absl::Status status = is_column ? absl::OkStatus() : texts.CheckRank(1, "[rows] or [rows, 1]");
  if (status.ok()) status = CheckRows(texts);
  if (!status.ok()) return status;
  std::vector<absl::string_view> strings;
  if (status = texts.AppendStrings(strings); !status.ok()) return status;
  for (const absl::string_view text : strings) columns.add_texts(std::string(text));
  return absl::OkStatus();
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
  absl::Status status = ends.CheckRank(1, "[rows]");
  if (status.ok()) status = CheckRows(ends);
  if (!status.ok()) return status;
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
  if (field == "values" && Has(Role::kValues)) return *tensor(Role::kValues);
  if (field == "row_ends" && Has(Role::kRowEnds)) return *tensor(Role::kRowEnds);
  return *tensor(form().value_or(Role::kNames));
}

absl::Status InferenceBatch::ToTensorError(const absl::Status& status) const {
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad;
  if (!ReadDetail(status, kErrorInfoUrl, info) || !ReadDetail(status, kBadRequestUrl, bad) ||
      bad.field_violations_size() == 0)
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
  return ToTensorError(status.code(), info.reason(), path, violation.description());
}

absl::Status InferenceBatch::ToTensorError(absl::StatusCode code, absl::string_view reason,
                                           absl::string_view path,
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
  return TensorOf(field).Error(code, reason, description, position);
}

namespace {

// Returns the vocabulary, which is every name except "" once, in ascending order, and sets
// `numbers` to the position of each name in it.
std::vector<absl::string_view> MakeVocabulary(const std::vector<absl::string_view>& names,
                                              std::vector<uint32_t>& numbers) {
  absl::flat_hash_map<absl::string_view, uint32_t> positions;
  std::vector<absl::string_view> vocabulary;
  for (const absl::string_view name : names) {
    if (!name.empty() && positions.emplace(name, 0).second) vocabulary.push_back(name);
  }
  std::sort(vocabulary.begin(), vocabulary.end());
  for (size_t i = 0; i < vocabulary.size(); ++i)
    positions[vocabulary[i]] = static_cast<uint32_t>(i);
  numbers.assign(names.size(), 0);
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) numbers[i] = positions.at(names[i]);
  }
  return vocabulary;
}

}  // namespace

absl::Status InferenceBatch::ReadNamed(v1::ExampleColumns& columns) {
  SentNames sent;
  if (absl::Status status = CheckNameShapes(); !status.ok()) return status;
  if (absl::Status status = ReadNameRows(sent); !status.ok()) return status;
  v1::NameColumn& vocabulary = *columns.mutable_feature_names();
  for (const absl::string_view name : MakeVocabulary(sent.names, sent.numbers)) {
    vocabulary.mutable_text()->append(name.data(), name.size());
    vocabulary.add_lengths(static_cast<uint32_t>(name.size()));
  }
  if (absl::Status status = CheckNameRows(sent); !status.ok()) return status;
  positions_.clear();
  size_t begin = 0;
  for (const uint32_t end : sent.row_ends) {
    absl::Status status = AppendNameRow(sent, begin, end, columns);
    if (!status.ok()) return status;
    begin = end;
  }
  return AppendNameValues(columns);
}

absl::Status InferenceBatch::CheckNameShapes() const {
  const InferenceTensor& names = *tensor(Role::kNames);
  if (!padded()) {
    absl::Status status = names.CheckRank(1, "[rows, names] or [names of all rows]");
    if (!status.ok()) return status;
  }
  const auto& shape = names.message().shape();
  const std::optional<InferenceTensor>& values = tensor(Role::kValues);
  if (values.has_value() &&
      !std::equal(shape.begin(), shape.end(), values->message().shape().begin(),
                  values->message().shape().end()))
    return values->Invalid("WRONG_SHAPE",
                           "has another shape than names; send one value for each name");
  return padded() ? CheckRows(names) : absl::OkStatus();
}

absl::Status InferenceBatch::CheckRows(const InferenceTensor& tensor) {
  if (tensor.size(0) <= ExampleBatch::kMaxExamples) return absl::OkStatus();
  return tensor.Invalid("TOO_MANY_EXAMPLES",
                        absl::StrCat(tensor.size(0), " examples; a message can hold at most ",
                                     ExampleBatch::kMaxExamples));
}

absl::Status InferenceBatch::CheckName(absl::string_view name, size_t position) const {
  if (name.empty() && padded()) return absl::OkStatus();
  if (name.empty() || name.size() > kMaxNameBytes) {
    return tensor(Role::kNames)
        ->Invalid("BAD_NAME",
                  absl::StrCat("has ", name.size(), " bytes; a name has 1 to ", kMaxNameBytes),
                  position);
  }
  if (IsValidUtf8({name.data(), name.size()})) return absl::OkStatus();
  return tensor(Role::kNames)->Invalid("BAD_NAME", "is not UTF-8", position);
}

absl::Status InferenceBatch::ReadNameRows(SentNames& sent) const {
  const InferenceTensor& names = *tensor(Role::kNames);
  if (absl::Status status = names.AppendStrings(sent.names); !status.ok()) return status;
  for (size_t i = 0; i < sent.names.size(); ++i) {
    if (absl::Status status = CheckName(sent.names[i], i); !status.ok()) return status;
  }
  if (!padded()) return ReadRowEnds(sent.row_ends);
  for (uint64_t row = 1; row <= names.size(0); ++row)
    sent.row_ends.Add(static_cast<uint32_t>(row * names.size(1)));
  return absl::OkStatus();
}

absl::Status InferenceBatch::CheckNameRows(const SentNames& sent) const {
  Batch batch;
  batch.row_ends = {sent.row_ends.data(), static_cast<size_t>(sent.row_ends.size())};
  batch.indices = sent.numbers;
  const ValidationError error = CheckColumns(batch);
  return error ? ToTensorError(absl::StatusCode::kInvalidArgument, ReasonName(error.code),
                               error.field, error.description)
               : absl::OkStatus();
}

absl::Status InferenceBatch::AppendNameRow(const SentNames& sent, size_t begin, size_t end,
                                           v1::ExampleColumns& columns) {
  std::vector<std::pair<uint32_t, size_t>> row;
  for (size_t i = begin; i < end; ++i) {
    if (!sent.names[i].empty()) row.emplace_back(sent.numbers[i], i);
  }
  std::sort(row.begin(), row.end());
  for (size_t i = 0; i < row.size(); ++i) {
    const auto [number, position] = row[i];
    if (i > 0 && row[i - 1].first == number) {
      return tensor(Role::kNames)
          ->Invalid("REPEATED_NAME",
                    absl::StrCat("\"", absl::Utf8SafeCHexEscape(sent.names[position]),
                                 "\" occurs twice in row ", columns.row_ends_size(),
                                 "; a name may occur once in a row"),
                    position);
    }
    columns.add_indices(number);
    positions_.push_back(position);
  }
  columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
  return absl::OkStatus();
}

absl::Status InferenceBatch::AppendNameValues(v1::ExampleColumns& columns) const {
  if (!Has(Role::kValues)) return absl::OkStatus();
  google::protobuf::RepeatedField<float> sent;
  if (absl::Status status = tensor(Role::kValues)->AppendFloats(sent); !status.ok()) return status;
  columns.mutable_values()->Reserve(static_cast<int>(positions_.size()));
  for (const size_t position : positions_) columns.add_values(sent[static_cast<int>(position)]);
  return absl::OkStatus();
}

}  // namespace perceptrond
