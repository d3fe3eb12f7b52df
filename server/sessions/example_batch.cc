#include "server/sessions/example_batch.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/learner/catalogue.h"
#include "core/vector/name.h"
#include "server/access/principal_usage.h"
#include "server/rpc/timed_request.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
using FeaturesCase = NestedExample::FeaturesCase;
using TargetCase = NestedExample::TargetCase;

ValidationError LengthMismatch(absl::string_view what, size_t features, size_t values) {
  return {ValidationCode::kLengthMismatch, absl::StrCat(what, ".values"),
          absl::StrCat(values, " values for ", features,
                       " features; send one value for each, or none for all ones")};
}

absl::Status IsForLearning(absl::string_view field) {
  return InvalidField("INVALID_FIELD", field, "is for examples to learn; send features");
}

absl::Status CheckSupported(const v1::ExampleColumns& columns) {
  if (!columns.prediction_ids().empty()) return IsForLearning("columns.prediction_ids");
  return absl::OkStatus();
}

absl::Status CheckSupported(const NestedExamples& examples) {
  for (size_t i = 0; i < examples.size(); ++i) {
    if (examples[i].features == FeaturesCase::kPredictionId)
      return IsForLearning(absl::StrCat("examples[", i, "].prediction_id"));
  }
  return absl::OkStatus();
}

}  // namespace

void ExampleBatch::MakeStreamNames(uint32_t name_table_size) {
  name_table_size_ = std::bit_floor(std::min(name_table_size, NameTable::kMaxCapacity));
  if (name_table_size_ > 0) stream_names_ = std::make_unique<NameTable>(name_table_size_);
}

void ExampleBatch::DropSpareMemory() {
  batch_ = Batch();
  examples_ = nullptr;
  joined_ = nullptr;
  for (std::vector<uint32_t>* numbers : {&row_ends_, &indices_, &last_row_}) *numbers = {};
  for (std::vector<float>* numbers : {&values_, &weights_}) *numbers = {};
  labels_ = {};
  texts_ = {};
  text_reader_ = {};
  names_.emplace();
  label_names_ = {};
}

absl::Status ExampleBatch::Read(const NestedExamples& examples, bool has_columns,
                                const v1::ExampleColumns& columns, const ModelSettings& settings,
                                Use use) {
  batch_ = Batch();
  row_errors_.clear();
  joined_ = nullptr;
  text_grams_ = 0;
  if (has_columns && !examples.empty()) {
    return InvalidField("BOTH_FORMS", "columns",
                        "the message has examples and columns; send one of them");
  }
  if (absl::Status status = CheckExampleCount("examples", examples.size()); !status.ok())
    return status;
  absl::Status supported = has_columns ? CheckSupported(columns) : CheckSupported(examples);
  if (!supported.ok()) return supported;
  return ReadForms(examples, has_columns, columns, settings, use);
}

absl::Status ExampleBatch::ReadJoined(const JoinedExamples& joined, const ModelSettings& settings) {
  batch_ = Batch();
  row_errors_.clear();
  joined_ = &joined;
  text_grams_ = 0;
  return ReadForms(joined.examples(), /*has_columns=*/false, v1::ExampleColumns::default_instance(),
                   settings, Use::kLearn);
}

absl::Status ExampleBatch::ReadForms(const NestedExamples& examples, bool has_columns,
                                     const v1::ExampleColumns& columns,
                                     const ModelSettings& settings, Use use) {
  examples_ = has_columns ? nullptr : &examples;
  if (has_columns) {
    absl::Status status = CheckExampleCount("columns", CountRows(columns));
    if (status.ok()) status = ReadColumns(columns, settings, use);
    if (!status.ok()) return status;
  } else {
    ReadExamples(examples, settings, use);
  }
  CountExamples(batch_.rows());
  if (!batch_.weights.empty() && !FindLearner(settings.learner).takes_weights) {
    return InvalidField("WEIGHTS_NOT_TAKEN", has_columns ? "columns.weights" : "examples.weight",
                        absl::StrCat("the model's learner, ", FindLearner(settings.learner).name,
                                     ", does not support example weights; send none"));
  }
  return absl::OkStatus();
}

std::string ExampleBatch::PathTo(const RowError& row_error) const {
  return examples_ == nullptr ? PathInColumns(row_error) : PathInExample(row_error);
}

// Of rows that name predictions in columns.
std::string ExampleBatch::PathInJoined(const RowError& row_error) {
  const absl::string_view field = row_error.error.field;
  const bool of_label = field == "labels" || field == "label" || field == "label_name";
  const bool of_weight = field == "weights" || field == "weight";
  return absl::StrCat("columns.",
                      of_label    ? "labels"
                      : of_weight ? "weights"
                                  : "prediction_ids",
                      "[", row_error.row, "]");
}

std::string ExampleBatch::PathInExample(const RowError& row_error) const {
  if (joined_ != nullptr && joined_->in_columns()) return PathInJoined(row_error);
  const ValidationError& error = row_error.error;
  const std::string path = absl::StrCat("examples[", row_error.row, "]");
  if (error.field == "weights") return absl::StrCat(path, ".weight");
  if (error.field == "labels")
    return absl::StrCat(path, batch_.label_names.empty() ? ".label" : ".label_name");
  const bool in_batch =
      error.field == "indices" || error.field == "values" || error.field == "feature_names";
  // ReadLabel and AppendRow name fields of the example itself.
  if (!in_batch) return absl::StrCat(path, ".", error.field);
  const FeaturesCase features = (*examples_)[row_error.row].features;
  if (features == FeaturesCase::kText) return absl::StrCat(path, ".text");
  if (features == FeaturesCase::kNamed) {
    if (!error.position.has_value()) return absl::StrCat(path, ".named");
    return absl::StrCat(path, ".named.", error.field == "feature_names" ? "names" : error.field,
                        "[", *error.position, "]");
  }
  const char* const field = features == FeaturesCase::kDense ? ".dense" : ".sparse";
  if (!error.position.has_value()) return absl::StrCat(path, field);
  return absl::StrCat(path, field, ".", error.field, "[", *error.position, "]");
}

ValidationError ExampleBatch::AppendText(absl::string_view text, const FeatureSpace& space) {
  const ValidationCode code = text_reader_.Read(text, *space.text, space.size,
                                                kMaxBatchGrams - text_grams_, indices_, values_);
  text_grams_ += text_reader_.grams();
  return code == ValidationCode::kNone ? ValidationError() : DescribeText(text, code);
}

void ExampleBatch::ReadExamples(const NestedExamples& examples, const ModelSettings& settings,
                                Use use) {
  row_ends_.clear();
  indices_.clear();
  values_.clear();
  labels_.clear();
  weights_.clear();
  names_->Clear();
  last_row_.clear();
  label_names_.clear();
  label_positions_.clear();
  texts_.clear();
  const FeatureSpace& space = settings.example_space;
  // For a dense model examples with names are invalid, and the others have indices.
  has_names_ = space.kind != FeatureSpace::Kind::kDense && !space.text.has_value() &&
               std::any_of(examples.begin(), examples.end(), [&](const NestedExample& example) {
                 return !examples.names(example).empty();
               });
  if (settings.is_multiclass() && use == Use::kLearn) GatherLabelNames(examples);
  for (const NestedExample& example : examples) {
    const size_t begin = indices_.size();
    int32_t label = 1;
    ValidationError error =
        use == Use::kLearn ? ReadLabel(example, settings, label) : ValidationError();
    if (!error) error = AppendRow(example, settings);
    if (error) {
      indices_.resize(begin);
      values_.resize(begin);
      row_errors_.push_back({static_cast<uint32_t>(row_ends_.size()), std::move(error)});
    }
    row_ends_.push_back(static_cast<uint32_t>(indices_.size()));
    if (space.text.has_value()) texts_.push_back(example.text);
    labels_.push_back(label);
    if (example.has_weight && use == Use::kLearn) {
      weights_.resize(row_ends_.size() - 1, 1.0F);
      weights_.push_back(example.weight);
    }
  }
  if (!weights_.empty()) weights_.resize(row_ends_.size(), 1.0F);
  batch_.weights = weights_;
  batch_.row_ends = row_ends_;
  batch_.indices = indices_;
  batch_.values = values_;
  batch_.labels = labels_;
  batch_.label_names = label_names_;
  batch_.names = has_names_ ? &*names_ : nullptr;
  batch_.texts = texts_;
  batch_.indices_are_checked = has_names_ || space.text.has_value();
}

void ExampleBatch::GatherLabelNames(const NestedExamples& examples) {
  for (const NestedExample& example : examples) {
    if (example.target != TargetCase::kLabelName) continue;
    const auto next = static_cast<int32_t>(label_names_.size());
    if (label_positions_.emplace(example.label_name, next).second)
      label_names_.push_back(example.label_name);
  }
}

// Whether the class exists is checked by the model when it learns the row.
ValidationError ExampleBatch::ReadClass(const NestedExample& example, int32_t& label) const {
  if (example.target == TargetCase::kLabelName) {
    label = label_positions_.at(example.label_name);
    return {};
  }
  if (!label_names_.empty()) {
    return {ValidationCode::kWrongForm, "label",
            "other examples of this message have label_name; send examples with numeric labels in "
            "another message"};
  }
  label = example.label;
  return {};
}

ValidationError ExampleBatch::ReadLabel(const NestedExample& example, const ModelSettings& settings,
                                        int32_t& label) const {
  if (settings.is_multiclass() && example.target != TargetCase::kNone)
    return ReadClass(example, label);
  switch (example.target) {
    case TargetCase::kLabel:
      if (example.label != 1 && example.label != -1) {
        return {ValidationCode::kUnknownLabel, "label",
                absl::StrCat(example.label, " is not a label; use -1 or +1")};
      }
      label = example.label;
      return {};
    case TargetCase::kLabelName: {
      const auto& names = settings.label_names;
      const auto found = std::find(names.begin(), names.end(), example.label_name);
      if (found == names.end()) {
        return {ValidationCode::kUnknownLabel, "label_name",
                names.empty() ? "the model's labels have no names; use label -1 or +1"
                              : absl::StrCat("the model's labels are \"", names[0], "\" and \"",
                                             names[1], "\"")};
      }
      label = found == names.begin() ? -1 : 1;
      return {};
    }
    case TargetCase::kNone:
      break;
  }
  return {ValidationCode::kMissingLabel, "label", "is missing; an example to learn needs a label"};
}

namespace {

const char* FieldOf(FeaturesCase features) {
  switch (features) {
    case FeaturesCase::kDense:
      return "dense";
    case FeaturesCase::kSparse:
      return "sparse";
    case FeaturesCase::kNamed:
      return "named";
    default:
      return "text";
  }
}

// Texts are for models with a text space, which take nothing else.
ValidationError CheckTextForm(const NestedExample& example, const ModelSettings& settings) {
  const bool takes_texts = settings.example_space.text.has_value();
  if (example.features == FeaturesCase::kNone ||
      takes_texts == (example.features == FeaturesCase::kText))
    return {};
  return {ValidationCode::kWrongForm, FieldOf(example.features),
          takes_texts ? "the model has a text space; send text"
                      : "the model takes features; models created with a text space take texts"};
}

}  // namespace

ValidationError ExampleBatch::AppendRow(const NestedExample& example,
                                        const ModelSettings& settings) {
  const bool by_index =
      example.features == FeaturesCase::kDense || example.features == FeaturesCase::kSparse;
  // Only a joined one whose prediction was not found has it still.
  if (example.features == FeaturesCase::kPredictionId) return joined_->ErrorOf(row_ends_.size());
  if (ValidationError error = CheckTextForm(example, settings)) return error;
  if (example.features == FeaturesCase::kText)
    return AppendText(example.text, settings.example_space);
  if (settings.example_space.kind == FeatureSpace::Kind::kNamed && by_index) {
    return {ValidationCode::kWrongForm, FieldOf(example.features),
            "the model has named features; send named"};
  }
  if (settings.example_space.kind == FeatureSpace::Kind::kDense &&
      example.features == FeaturesCase::kNamed) {
    return {ValidationCode::kWrongForm, "named",
            "the model is dense; send dense or sparse features"};
  }
  if (has_names_ && by_index) {
    return {ValidationCode::kWrongForm, FieldOf(example.features),
            "other examples of this message have named features; send examples with indices in "
            "another message"};
  }
  if (example.features == FeaturesCase::kDense) {
    const size_t values = example.values.size();
    if (values != settings.example_space.size) {
      return {
          ValidationCode::kWrongDimension, "dense.values",
          absl::StrCat(values, " values for a model of dimension ", settings.example_space.size)};
    }
    for (size_t i = 0; i < values; ++i) indices_.push_back(static_cast<uint32_t>(i));
    example.values.AppendTo(values_);
    return {};
  }
  if (example.features == FeaturesCase::kSparse) {
    if (!example.values.empty() && example.values.size() != example.indices.size())
      return LengthMismatch("sparse", example.indices.size(), example.values.size());
    example.indices.AppendTo(indices_);
    example.values.AppendTo(values_);
    values_.resize(indices_.size(), 1.0F);
    return {};
  }
  return AppendNamed(example);
}

ValidationError ExampleBatch::AppendNamed(const NestedExample& example) {
  const std::span<const absl::string_view> names = examples_->names(example);
  if (!example.values.empty() && example.values.size() != names.size())
    return LengthMismatch("named", names.size(), example.values.size());
  const auto row = static_cast<uint32_t>(row_ends_.size() + 1);
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty() || names[i].size() > kMaxNameBytes) {
      return {ValidationCode::kBadName, absl::StrCat("named.names[", i, "]"),
              absl::StrCat("has ", names[i].size(), " bytes; a name has 1 to ", kMaxNameBytes)};
    }
  }
  const size_t begin = indices_.size();
  indices_.resize(begin + names.size());
  names_->Intern(names, indices_.data() + begin);
  if (last_row_.size() < names_->end()) last_row_.resize(2 * size_t{names_->end()});
  for (size_t i = 0; i < names.size(); ++i) {
    uint32_t& last = last_row_[indices_[begin + i]];
    if (last == row) {
      return {ValidationCode::kRepeatedName, "named.names",
              absl::StrCat("\"", names[i], "\" occurs twice; a name may occur once in an example")};
    }
    last = row;
  }
  example.values.AppendTo(values_);
  values_.resize(indices_.size(), 1.0F);
  return {};
}

}  // namespace perceptrond
