#include "server/inference_batch.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/features/feature_space.h"
#include "core/model/error.h"
#include "core/vector/check.h"
#include "google/rpc/error_details.pb.h"
#include "server/example_batch.h"
#include "server/utf8.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::string_view kForms = "send features; or indices and row_ends; or names";

absl::string_view NameOf(size_t role) { return kInputNames[role]; }

std::string Element(size_t i) { return absl::StrCat(", element ", i); }

// Each name once, in the order of its bytes.
std::vector<absl::string_view> Vocabulary(const std::vector<absl::string_view>& names) {
  std::vector<absl::string_view> vocabulary = names;
  std::sort(vocabulary.begin(), vocabulary.end());
  vocabulary.erase(std::unique(vocabulary.begin(), vocabulary.end()), vocabulary.end());
  if (!vocabulary.empty() && vocabulary.front().empty()) vocabulary.erase(vocabulary.begin());
  return vocabulary;
}

// Of each name its place in the vocabulary; of "" nothing that matters.
std::vector<uint32_t> Number(const std::vector<absl::string_view>& names,
                             const std::vector<absl::string_view>& vocabulary) {
  absl::flat_hash_map<absl::string_view, uint32_t> places;
  places.reserve(vocabulary.size());
  for (const absl::string_view name : vocabulary)
    places.emplace(name, static_cast<uint32_t>(places.size()));
  std::vector<uint32_t> numbers(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) numbers[i] = places.at(names[i]);
  }
  return numbers;
}

// "row_ends[3]" is the field row_ends, place 3.
std::pair<absl::string_view, std::optional<size_t>> SplitPath(absl::string_view path) {
  const size_t bracket = path.find('[');
  if (bracket == absl::string_view::npos) return {path, std::nullopt};
  absl::string_view number = path.substr(bracket + 1);
  number = number.substr(0, number.find(']'));
  size_t place = 0;
  if (!absl::SimpleAtoi(number, &place)) return {path.substr(0, bracket), std::nullopt};
  return {path.substr(0, bracket), place};
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
      return tensor.Invalid("UNKNOWN_TENSOR", absl::StrCat("is no input of a model; ", kForms));
    }
    std::optional<InferenceTensor>& place = tensors_[known - kInputNames.begin()];
    if (place.has_value()) return tensor.Invalid("DUPLICATE_TENSOR", "is there twice");
    if (raw && input.has_contents()) {
      return tensor.Invalid("BOTH_FORMS",
                            "has contents beside raw_input_contents; send one of them");
    }
    if (absl::Status status = tensor.Check(); !status.ok()) return status;
    place = tensor;
  }
  return absl::OkStatus();
}

absl::Status InferenceBatch::CheckForm() const {
  const Role forms[] = {Role::kFeatures, Role::kIndices, Role::kNames};
  const auto* const form =
      std::find_if(std::begin(forms), std::end(forms), [this](Role role) { return Has(role); });
  if (form == std::end(forms)) {
    return InvalidField("MISSING_TENSOR", "inputs",
                        absl::StrCat("there are no examples; ", kForms));
  }
  const bool dense = *form == Role::kFeatures;
  const bool padded = *form == Role::kNames && tensor(Role::kNames)->rank() == 2;
  for (size_t role = 0; role < kRoles; ++role) {
    if (!tensors_[role].has_value() || role == static_cast<size_t>(*form)) continue;
    const bool goes_along = (role == static_cast<size_t>(Role::kRowEnds) && !dense && !padded) ||
                            (role == static_cast<size_t>(Role::kValues) && !dense);
    if (!goes_along) {
      return tensors_[role]->Invalid(
          "BOTH_FORMS", absl::StrCat("does not go with ", padded ? "two-dimensional " : "",
                                     NameOf(static_cast<size_t>(*form)), "; ", kForms));
    }
  }
  if (!dense && !padded && !Has(Role::kRowEnds)) {
    return InvalidField("MISSING_TENSOR", "inputs",
                        absl::StrCat(NameOf(static_cast<size_t>(*form)),
                                     " need row_ends, which say where each row ends",
                                     *form == Role::kNames ? "; or two dimensions" : ""));
  }
  return absl::OkStatus();
}

absl::Status InferenceBatch::ReadDense(v1::ExampleColumns& columns) const {
  const InferenceTensor& features = *tensor(Role::kFeatures);
  if (absl::Status status = features.CheckRank(2, "[rows, features]"); !status.ok()) return status;
  if (features.size(1) == 0 || features.size(1) > FeatureSpace::kMaxFeatures) {
    return features.Invalid("WRONG_DIMENSION",
                            absl::StrCat("rows of ", features.size(1), " values"));
  }
  columns.set_dense_width(static_cast<uint32_t>(features.size(1)));
  return features.AppendFloats(*columns.mutable_values());
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
  // To the columns no values are all ones: here they are too few.
  const InferenceTensor& values = *tensor(Role::kValues);
  if (values.elements() != tensor(Role::kIndices)->elements()) {
    return values.Invalid("LENGTH_MISMATCH",
                          absl::StrCat(values.elements(), " values for ",
                                       tensor(Role::kIndices)->elements(), " indices"));
  }
  return values.AppendFloats(*columns.mutable_values());
}

absl::Status InferenceBatch::ReadNames(std::vector<absl::string_view>& names) const {
  const InferenceTensor& tensor = *this->tensor(Role::kNames);
  if (absl::Status status = tensor.AppendStrings(names); !status.ok()) return status;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() && tensor.rank() == 2) continue;
    if (names[i].empty() || names[i].size() > FeatureSpace::kMaxNameBytes) {
      return tensor.Invalid("BAD_NAME",
                            absl::StrCat("a name has 1 to ", FeatureSpace::kMaxNameBytes,
                                         " bytes, this has ", names[i].size()),
                            Element(i));
    }
    if (!IsUtf8({names[i].data(), names[i].size()}))
      return tensor.Invalid("BAD_NAME", "is not UTF-8", Element(i));
  }
  return absl::OkStatus();
}

absl::Status InferenceBatch::ReadNamed(v1::ExampleColumns& columns) {
  const InferenceTensor& tensor = *this->tensor(Role::kNames);
  const std::optional<InferenceTensor>& values = this->tensor(Role::kValues);
  const bool padded = tensor.rank() == 2;
  if (!padded) {
    if (absl::Status status = tensor.CheckRank(1, "[rows, names] or [names of all rows]");
        !status.ok())
      return status;
  }
  if (values.has_value() &&
      !std::equal(tensor.message().shape().begin(), tensor.message().shape().end(),
                  values->message().shape().begin(), values->message().shape().end())) {
    return values->Invalid("WRONG_SHAPE", "has another shape than names");
  }
  // Before memory is taken: rows without names take no bytes of the message.
  if (padded && tensor.size(0) > ExampleBatch::kMaxExamples) {
    return tensor.Invalid("TOO_MANY_EXAMPLES",
                          absl::StrCat(tensor.size(0), " examples; a message holds at most ",
                                       ExampleBatch::kMaxExamples));
  }
  std::vector<absl::string_view> names;
  if (absl::Status status = ReadNames(names); !status.ok()) return status;
  google::protobuf::RepeatedField<uint32_t> row_ends;
  if (padded) {
    for (uint64_t row = 1; row <= tensor.size(0); ++row)
      row_ends.Add(static_cast<uint32_t>(row * tensor.size(1)));
  } else if (absl::Status status = ReadRowEnds(row_ends); !status.ok()) {
    return status;
  }
  const std::vector<absl::string_view> vocabulary = Vocabulary(names);
  const std::vector<uint32_t> numbers = Number(names, vocabulary);
  Batch as_sent;
  as_sent.row_ends = {row_ends.data(), static_cast<size_t>(row_ends.size())};
  as_sent.indices = numbers;
  if (const Finding finding = CheckColumns(as_sent)) {
    const auto [field, place] = SplitPath(finding.field);
    return TensorOf(field).Invalid(FaultReason(finding.fault), finding.description,
                                   place.has_value() ? Element(*place) : "");
  }
  if (values.has_value()) {
    if (absl::Status status = values->AppendFloats(*columns.mutable_values()); !status.ok())
      return status;
  }
  const google::protobuf::RepeatedField<float> sent = std::move(*columns.mutable_values());
  columns.clear_values();
  places_.clear();
  for (size_t row = 0; row < as_sent.rows(); ++row) {
    absl::Status status =
        AppendNamedRow(names, numbers, as_sent.row_begin(row), as_sent.row_ends[row], columns);
    if (!status.ok()) return status;
  }
  if (values.has_value()) {
    for (const size_t place : places_) columns.add_values(sent[static_cast<int>(place)]);
  }
  for (const absl::string_view name : vocabulary) columns.add_feature_names(std::string(name));
  return absl::OkStatus();
}

absl::Status InferenceBatch::AppendNamedRow(const std::vector<absl::string_view>& names,
                                            const std::vector<uint32_t>& numbers, size_t begin,
                                            size_t end, v1::ExampleColumns& columns) {
  std::vector<std::pair<uint32_t, size_t>> row;
  for (size_t i = begin; i < end; ++i) {
    if (!names[i].empty()) row.emplace_back(numbers[i], i);
  }
  std::sort(row.begin(), row.end());
  for (size_t i = 0; i < row.size(); ++i) {
    const auto [number, place] = row[i];
    if (i > 0 && row[i - 1].first == number) {
      return tensor(Role::kNames)
          ->Invalid("REPEATED_NAME",
                    absl::StrCat("\"", absl::Utf8SafeCHexEscape(names[place]),
                                 "\" stands twice in row ", columns.row_ends_size()),
                    Element(place));
    }
    columns.add_indices(number);
    places_.push_back(place);
  }
  columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
  return absl::OkStatus();
}

const InferenceTensor& InferenceBatch::TensorOf(absl::string_view field) const {
  const Role form = Has(Role::kFeatures)  ? Role::kFeatures
                    : Has(Role::kIndices) ? Role::kIndices
                                          : Role::kNames;
  if (field == "values" && Has(Role::kValues)) return *tensor(Role::kValues);
  if (field == "row_ends" && Has(Role::kRowEnds)) return *tensor(Role::kRowEnds);
  return *tensor(form);
}

absl::Status InferenceBatch::InTensors(const absl::Status& status) const {
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad;
  if (!absl::IsInvalidArgument(status) || !ReadDetail(status, kErrorInfoUrl, info) ||
      !ReadDetail(status, kBadRequestUrl, bad) || bad.field_violations_size() == 0)
    return status;
  const google::rpc::BadRequest::FieldViolation& violation = bad.field_violations(0);
  if (violation.field() == "all_scores") {
    return InvalidField(
        info.reason(), "outputs",
        absl::StrCat(violation.description(),
                     ", or ask for outputs other than class_scores and class_probabilities"));
  }
  absl::string_view path = violation.field();
  if (!absl::ConsumePrefix(&path, "columns")) return status;
  absl::ConsumePrefix(&path, ".");
  auto [field, place] = SplitPath(path);
  // Names lie in the columns in another order than they were sent in.
  if (Has(Role::kNames) && place.has_value() && (field == "values" || field == "indices"))
    place = *place < places_.size() ? std::optional<size_t>(places_[*place]) : std::nullopt;
  // These are not about one element.
  if (field == "feature_names" || info.reason() == FaultReason(Fault::kWrongDimension))
    place = std::nullopt;
  return TensorOf(field).Invalid(info.reason(), violation.description(),
                                 place.has_value() ? Element(*place) : "");
}

}  // namespace perceptrond
