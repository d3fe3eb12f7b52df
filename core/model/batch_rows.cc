#include "core/model/batch_rows.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/model/cost.h"

namespace perceptrond {
namespace {

// The label that a name of a model of two labels stands for.
int32_t SignOf(const std::vector<std::string>& names, absl::string_view name, int32_t unknown) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i == 0 ? -1 : 1;
  }
  return unknown;
}

absl::Status MalformedColumns(const ValidationError& error) {
  return InvalidField(ReasonName(error.code), absl::StrCat("columns.", error.field),
                      error.description);
}

bool IsBefore(const RowError& error, size_t row) { return error.row < row; }

}  // namespace

LabelReader::LabelReader(const ModelSettings& settings, const Batch& batch)
    : settings_(settings),
      batch_(batch),
      are_signs_(!settings.is_multiclass() && batch.label_names.empty()),
      resolves_(settings.named_classes() || !batch.label_names.empty()) {}

void LabelReader::Resolve(const Dictionary& class_names) {
  resolved_size_ = class_names.size();
  numbers_.clear();
  for (const absl::string_view name : batch_.label_names) {
    if (!settings_.is_multiclass()) {
      numbers_.push_back(SignOf(settings_.label_names, name, kUnknown));
      continue;
    }
    const uint32_t number = class_names.Find(name);
    numbers_.push_back(number == Dictionary::kUnknown ? kUnknown
                                                      : static_cast<int32_t>(number - 1));
  }
}

size_t LabelReader::limit() const {
  return settings_.new_classes == NewClasses::kNamed ? resolved_size_
                                                     : settings_.learner.classes.max;
}

ValidationCode LabelReader::CheckClassOrName(size_t i) const {
  const int32_t label = batch_.labels[i];
  if (label < 0) return ValidationCode::kUnknownLabel;
  const auto position = static_cast<size_t>(label);
  if (batch_.label_names.empty())
    return position < limit() ? ValidationCode::kNone : ValidationCode::kUnknownLabel;
  if (position >= batch_.label_names.size()) return ValidationCode::kUnknownLabel;
  if (numbers_[position] != kUnknown) return ValidationCode::kNone;
  const size_t bytes = batch_.label_names[position].size();
  const bool may_be_new = settings_.new_classes == NewClasses::kNamed;
  return may_be_new && bytes > 0 && bytes <= kMaxNameBytes ? ValidationCode::kNone
                                                           : ValidationCode::kUnknownLabel;
}

std::vector<int32_t> LabelReader::TwoLabels() const {
  std::vector<int32_t> signs;
  for (const absl::string_view name : batch_.label_names)
    signs.push_back(SignOf(settings_.label_names, name, 0));
  std::vector<int32_t> labels;
  labels.reserve(batch_.labels.size());
  for (const int32_t label : batch_.labels) {
    const auto position = static_cast<size_t>(label);
    labels.push_back(position < signs.size() ? signs[position] : 0);
  }
  return labels;
}

absl::string_view LabelReader::NewClass(size_t i) const {
  if (batch_.label_names.empty()) return {};
  const auto position = static_cast<size_t>(batch_.labels[i]);
  return numbers_[position] == kUnknown ? batch_.label_names[position] : absl::string_view();
}

ValidationError LabelReader::Describe(size_t i) const {
  const int32_t label = batch_.labels[i];
  const auto error = [](std::string description) {
    return ValidationError{ValidationCode::kUnknownLabel, "labels", std::move(description)};
  };
  if (are_signs_) return error(absl::StrCat(label, "; the labels are -1 and +1"));
  if (batch_.label_names.empty()) {
    if (settings_.new_classes == NewClasses::kNamed)
      return error(absl::StrCat(label, " is not a class: there are ", resolved_size_,
                                ", numbered from 0, and new ones are introduced by name"));
    return error(absl::StrCat(label, " is not a class; classes are 0 to ", limit() - 1));
  }
  if (label < 0 || static_cast<size_t>(label) >= batch_.label_names.size())
    return error(absl::StrCat(label, " is not a position in label_names, which has ",
                              batch_.label_names.size()));
  const absl::string_view name = batch_.label_names[static_cast<size_t>(label)];
  if (settings_.new_classes == NewClasses::kNamed)
    return error(absl::StrCat("the name has ", name.size(), " bytes; names of classes have 1 to ",
                              kMaxNameBytes));
  if (settings_.label_names.empty()) return error("the model has no label_names; use numbers");
  return error(absl::StrCat("\"", name.substr(0, 40), "\" is not one of the model's label_names"));
}

absl::Status BeginBatch(const Batch& batch, Mapper& mapper) {
  if (ValidationError error = CheckColumns(batch)) return MalformedColumns(error);
  if (ValidationError error = mapper.Begin(batch)) return MalformedColumns(error);
  return absl::OkStatus();
}

BatchRows::BatchRows(const ModelCore& core, const Batch& batch,
                     std::span<const RowError> row_errors)
    : batch_(batch),
      row_errors_(row_errors.begin(), row_errors.end()),
      mapper_(core.settings.space, core.expansion, core.limits.max_example_features),
      labels_(core.settings, batch) {}

absl::Status BatchRows::Begin() {
  if (ValidationError error = CheckColumns(batch_)) return MalformedColumns(error);
  if (size() > 0 && batch_.labels.empty()) {
    return MalformedColumns(
        {ValidationCode::kMissingLabel, "labels", "every row to be learned needs a label"});
  }
  Batch mapped = batch_;
  if (labels_.two_labels() && !batch_.label_names.empty()) {
    numeric_labels_ = labels_.TwoLabels();
    mapped.labels = numeric_labels_;
  }
  if (ValidationError error = mapper_.Begin(mapped)) return MalformedColumns(error);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> BatchRows::CheckCost(const ModelCore& core, const Learner& learner) {
  const auto cost_of = [&](const Batch& some, uint64_t before) {
    return EstimateCost(core.expansion.get(), core.settings, learner,
                        core.limits.max_example_features, some) +
           EstimateLearningCost(core.settings, learner, some, before);
  };
  return perceptrond::CheckCost(batch_, core.limits.max_message_cost, cost_of, row_errors_);
}

void BatchRows::Resolve(const ModelState& state) {
  if (labels_.Stale(state.class_names)) labels_.Resolve(state.class_names);
  mapper_.Resolve(state.names, state.frequencies);
}

void BatchRows::CountDocuments(size_t begin, size_t end, DocumentCounter& documents) const {
  for (size_t i = begin; i < end; ++i) {
    if (FindError(i) != nullptr) continue;
    const Row row = batch_.row(i);
    documents.Add({row.indices, row.size});
  }
}

const RowError* BatchRows::FindError(size_t i) const {
  if (row_errors_.empty()) return nullptr;
  const auto found = std::lower_bound(row_errors_.begin(), row_errors_.end(), i, IsBefore);
  return found != row_errors_.end() && found->row == i ? &*found : nullptr;
}

size_t BatchRows::NextRowError(size_t i) const {
  if (row_errors_.empty()) return size();
  const auto found = std::lower_bound(row_errors_.begin(), row_errors_.end(), i, IsBefore);
  return found == row_errors_.end() ? size() : found->row;
}

ValidationCode BatchRows::CheckTarget(size_t i) const {
  if (const RowError* const error = FindError(i)) return error->error.code;
  if (labels_.Check(i) != ValidationCode::kNone) return ValidationCode::kUnknownLabel;
  const float weight = batch_.weight(i);
  return weight > 0 && std::isfinite(weight) ? ValidationCode::kNone : ValidationCode::kBadWeight;
}

ValidationCode BatchRows::Check(size_t i, double* squared_norm) {
  if (const RowError* const error = FindError(i)) return error->error.code;
  const ValidationCode code = mapper_.Check(i, squared_norm);
  return code == ValidationCode::kNone ? CheckTarget(i) : code;
}

ValidationError BatchRows::Describe(size_t i, ValidationCode code) {
  if (const RowError* const error = FindError(i)) return error->error;
  if (code == ValidationCode::kUnknownLabel) return labels_.Describe(i);
  if (code == ValidationCode::kBadWeight) {
    return {code, "weights",
            absl::StrCat(batch_.weight(i), "; a weight must be above 0 and finite")};
  }
  return mapper_.Describe(i, code);
}

}  // namespace perceptrond
