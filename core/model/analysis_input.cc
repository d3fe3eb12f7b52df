#include "core/model/analysis_input.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/model/error.h"
#include "core/model/views.h"

namespace perceptrond {
namespace {

absl::Status NothingRetained(const Model& model) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "NOTHING_STORED",
      absl::StrCat(
          "model \"", model.name(),
          "\" stores no example: it has had no update yet, or was created with "
          "stored_examples.max_updates = 0; stored_examples.max_sample stores other examples"),
      {{"model", model.name()}});
}

// Margins in the space of the features prove nothing about the kernel's space.
absl::Status InKernelSpace(const Model& model) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "KERNEL_SPACE",
      absl::StrCat(
          "model \"", model.name(),
          "\" learns in its kernel's space; an analysis in the space of the "
          "features proves nothing about it. A pass without an update shows that it has "
          "converged; for margins use a linear learner with a feature map like the kernel"),
      {{"model", model.name()}});
}

}  // namespace

absl::StatusOr<AnalysisInput> AnalysisInput::Make(const Model& model) {
  if (FindLearner(model.settings().learner).form == Form::kKernel) return InKernelSpace(model);
  AnalysisInput input;
  StoredExamplesView view;
  {
    const ModelReader reader(model);
    view = CopyStoredExamples(reader);
    if (model.settings().is_multiclass()) input.CollectClasses(reader, view.examples);
  }
  const StoredExamplesCopy& retained = view.examples;
  if (retained.updates.empty() && retained.sample.empty()) return NothingRetained(model);
  input.complete_ = retained.complete;
  input.revision_ = view.revision;
  if (model.has_names()) input.NumberNames(model, retained);
  // Latest first: an example is represented by its latest update.
  for (auto update = retained.updates.rbegin(); update != retained.updates.rend(); ++update)
    input.Add(*update, model.has_names());
  for (const auto& [hash, row] : retained.sample) input.Add({.row = row}, model.has_names());
  return input;
}

// Of the same moment as the examples. One of the sample may be of a class that the model has not: if
// the update that makes the class exist could not be made.
void AnalysisInput::CollectClasses(const ModelReader& reader, const StoredExamplesCopy& examples) {
  const Predictor& predictor = reader.state().learner->predictor();
  for (size_t k = 0; k < predictor.scores(); ++k) {
    if (predictor.HasLabel(static_cast<int32_t>(k))) classes_.push_back(static_cast<int32_t>(k));
  }
  for (const auto& [hash, row] : examples.sample) classes_.push_back(row->label);
  std::sort(classes_.begin(), classes_.end());
  classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
}

int32_t AnalysisInput::LabelOf(const StoredRow& row) const {
  if (classes_.empty()) return row.label;
  const auto at = std::lower_bound(classes_.begin(), classes_.end(), row.label);
  return static_cast<int32_t>(at - classes_.begin());
}

// At one moment: a name that got its weight between two rows would become two features.
void AnalysisInput::NumberNames(const Model& model, const StoredExamplesCopy& examples) {
  std::vector<absl::string_view> names;
  for (const auto& [hash, row] : examples.sample) {
    for (const std::string& name : row->unknown) {
      if (numbers_.emplace(name, 0).second) names.push_back(name);
    }
  }
  const FeatureNumbers found = FindFeatures(model, names);
  first_new_ = found.next;
  for (size_t i = 0; i < names.size(); ++i) {
    uint32_t number = found.numbers[i];
    if (number == Dictionary::kUnknown) {
      number = first_new_ + static_cast<uint32_t>(new_names_.size());
      new_names_.emplace_back(names[i]);
    }
    numbers_[names[i]] = number;
  }
}

Row AnalysisInput::Numbered(const StoredRow& row) {
  std::vector<uint32_t> numbers = row.indices;
  auto name = row.unknown.begin();
  for (uint32_t& number : numbers) {
    if (number == Dictionary::kUnknown) number = numbers_.at(*name++);
  }
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  StoredRow& sorted = numbered_.emplace_back();
  for (const size_t i : order) {
    sorted.indices.push_back(numbers[i]);
    sorted.values.push_back(row.values[i]);
  }
  return sorted.row();
}

void AnalysisInput::Add(const StoredUpdate& example, bool named) {
  const Row row = named ? Numbered(*example.row) : example.row->row();
  const int32_t label = LabelOf(*example.row);
  const SeenExample seen{row, label, {}};
  const Dictionary by_number;
  const auto [known, is_new] = known_.emplace(HashOf(seen, by_number), rows_.size());
  if (!is_new) {
    const LabelledRow& held = rows_[known->second];
    // Two different examples may share a hash.
    if (SameExample({held.row, held.label, {}}, seen, by_number)) {
      if (named) numbered_.pop_back();
      return;
    }
  }
  rows_.push_back({row, label});
  examples_.push_back(example);
}

}  // namespace perceptrond
