#include "core/model/row_update.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/convergence/tally.h"
#include "core/vector/kernels.h"

namespace perceptrond {

RowUpdate RowUpdater::Learn(ModelState& state, size_t i) {
  Learner& learner = *state.learner;
  Row mapped = rows_.Map(i);
  const std::optional<uint64_t> age = core_.plan.age(core_.ledger);
  const int32_t label = rows_.label(i);
  const double weight = rows_.weight(i) * core_.settings.learner.class_weight(label);
  const Target target{label, weight, age.value_or(0)};
  RowUpdate result;
  result.age = target.age;
  result.evaluation = learner.Evaluate(mapped, label);
  UpdateRow& update = result.update;
  result.error = Prepare(state, i, target, result.evaluation, mapped, update);
  if (result.error || !result.evaluation.update) return result;
  learner.Update(mapped, target, result.evaluation);
  ++state.revision;
  update.revision = state.revision;
  update.row = std::make_shared<const StoredRow>(SeenExample{mapped, label, {}});
  update.weight = rows_.weight(i);
  update.score = Saturate(result.evaluation.score);
  update.age = age;
  update.squared_norm = learner.augmented_squared_norm();
  update.tally.updates = 1;
  NoteUpdate(core_.settings.learner, learner, mapped, target, update.tally);
  return result;
}

// Everything that can fail comes first: on an error the state is as it was.
ValidationError RowUpdater::Prepare(ModelState& state, size_t i, const Target& target,
                                    const Evaluation& evaluation, Row& mapped, UpdateRow& update) {
  const absl::string_view new_class = rows_.NewClass(i);
  if (!new_class.empty() && state.class_names.size() == core_.settings.learner.classes.max)
    return ClassCap();
  if (!evaluation.update) return {};
  if (!state.learner->CanUpdate(mapped, target, evaluation)) {
    return {ValidationCode::kWeightOverflow, "values",
            "learning this example would take a weight out of float32's range"};
  }
  if (core_.has_names()) {
    if (ValidationError error = AddNames(state, i, mapped, update)) return error;
  }
  if (!new_class.empty()) {
    state.class_names.Add(new_class);
    update.new_class = std::string(new_class);
  }
  return {};
}

ValidationError RowUpdater::AddNames(ModelState& state, size_t i, Row& mapped, UpdateRow& update) {
  rows_.UnknownNames(i, unknown_);
  if (unknown_.empty()) return {};
  if (state.names.size() + unknown_.size() > core_.settings.space.size) return FeatureCap(state);
  for (const absl::string_view name : unknown_) {
    state.names.Add(name);
    update.new_names.emplace_back(name);
  }
  state.learner->Grow(state.names.size() + 1);
  rows_.Resolve(state);
  mapped = rows_.Map(i);
  return {};
}

ValidationError RowUpdater::ClassCap() const {
  return {ValidationCode::kClassCap, "labels",
          absl::StrCat("the model has ", core_.settings.learner.classes.max,
                       " classes, the most it can have, and keeps all of them; leave this example "
                       "out, or create a model with a larger max_classes")};
}

ValidationError RowUpdater::FeatureCap(const ModelState& state) const {
  return {
      ValidationCode::kFeatureCap, "feature_names",
      absl::StrCat("the model has ", state.names.size(), " of at most ", core_.settings.space.size,
                   " names and keeps all of them, and this example needs ", unknown_.size(),
                   " new ones; leave them out, or create a model with a larger max_features")};
}

}  // namespace perceptrond
