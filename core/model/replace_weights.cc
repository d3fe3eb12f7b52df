// How a model's weights are replaced by others, as by the separator of an analysis.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/learner/catalogue.h"
#include "core/model/model.h"
#include "core/model/recovery.h"

namespace perceptrond {
namespace {

absl::Status FeatureCap(const ModelCore& core, const ModelState& state, size_t needed) {
  return WithRetry(
      MakeError(
          absl::StatusCode::kResourceExhausted, "FEATURE_CAP",
          absl::StrCat("the model has ", state.names.size(), " of at most ", core.weight_space.size,
                       " names and keeps all of them, and the new "
                       "weights need ",
                       needed, " new ones; create a model with a larger max_features")),
      absl::Hours(24));
}

// What finding a name takes, in multiply-adds.
constexpr size_t kFindWork = 200;

// Names that have no weight yet. Asks KeepGoing.
std::vector<std::string> FindNewNames(const ModelState& state, const NewWeights& weights) {
  std::set<uint32_t> used;
  for (const NewWeights::Vector& one : weights.vectors) {
    used.insert(std::lower_bound(one.indices.begin(), one.indices.end(), weights.first_new),
                one.indices.end());
  }
  std::vector<std::string> names;
  for (const uint32_t index : used) {
    if (!KeepGoing(kFindWork)) break;
    const std::string& name = weights.new_names[index - weights.first_new];
    if (state.names.Find(name) == Dictionary::kUnknown) names.push_back(name);
  }
  return names;
}

// Gives the new weights the indices that their names have by now.
void ResolveNames(const ModelState& state, NewWeights& weights) {
  for (NewWeights::Vector& one : weights.vectors) {
    for (uint32_t& index : one.indices) {
      if (index >= weights.first_new)
        index = state.names.Find(weights.new_names[index - weights.first_new]);
    }
  }
}

absl::Status RevisionMismatch(const ModelState& state, absl::string_view expected) {
  return MakeError(absl::StatusCode::kAborted, "REVISION_MISMATCH",
                   absl::StrCat("the model is at revision ", state.revision, ", not at ", expected,
                                ": it has learned since; analyze it again"),
                   {{"revision", absl::StrCat(state.revision)}});
}

absl::Status CheckReplaceable(const ModelCore& core, const ModelState& state,
                              const NewWeights& weights,
                              std::optional<uint64_t> expected_revision) {
  if (absl::Status open = core.CheckOpen(state); !open.ok()) return open;
  if (state.learner->replaceable_weights() == nullptr) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_REPLACEABLE",
                     absl::StrCat("the learner ", FindLearner(core.settings.learner).name,
                                  " has no weights that can be replaced"),
                     {{"model", core.name}});
  }
  if (expected_revision.has_value() && *expected_revision != state.revision)
    return RevisionMismatch(state, absl::StrCat(*expected_revision));
  // Classes are never removed, but a rollback leaves the model with fewer.
  for (size_t k = 0; k < weights.vectors.size(); ++k) {
    const NewWeights::Vector& one = weights.vectors[k];
    const bool is_empty = one.indices.empty() && one.bias_weight == 0;
    if (k >= state.learner->predictor().scores() || (!is_empty && !HasVector(core, state, k)))
      return RevisionMismatch(state, "one with these classes");
  }
  return absl::OkStatus();
}

// A vector's weights, which must outlive the result.
ReplacementVector View(const NewWeights::Vector& one) {
  const uint32_t* indices = one.indices.empty() ? kNoIndices : one.indices.data();
  return {{indices, one.values.data(), one.indices.size()}, one.bias_weight};
}

}  // namespace

absl::StatusOr<uint64_t> ReplaceAllWeights(ModelCore& core, NewWeights weights,
                                           std::optional<uint64_t> expected_revision) {
  const Guarded<LearningGate>::Reader gate(core.gate);
  if (absl::Status writable = core.CheckWritable(); !writable.ok()) return writable;
  if (!gate->stopped.ok()) return gate->stopped;
  if (gate->frozen) return ModelFrozen(core.name);
  const Guarded<ModelState>::Writer state(core.state);
  if (absl::Status status = CheckReplaceable(core, *state, weights, expected_revision);
      !status.ok())
    return status;
  const TornByException torn(core.ledger);
  UpdateRow update;
  update.new_names = FindNewNames(*state, weights);
  if (!KeepGoing()) return StoppedError();
  // From here on the weights are replaced whole.
  const CancellationScope whole(nullptr);
  if (core.has_names() && state->names.size() + update.new_names.size() > core.weight_space.size)
    return FeatureCap(core, *state, update.new_names.size());
  for (const std::string& name : update.new_names) state->names.Add(name);
  if (!update.new_names.empty()) state->learner->Grow(state->names.size() + 1);
  ResolveNames(*state, weights);
  std::vector<ReplacementVector> vectors;
  for (const NewWeights::Vector& one : weights.vectors) vectors.push_back(View(one));
  update.age = core.CountedExamples();
  state->learner->replaceable_weights()->ReplaceWeights(vectors, update.age.value_or(0));
  update.revision = ++state->revision;
  update.squared_norm = state->learner->augmented_squared_norm();
  core.ledger.AddWeightReplacement(update, vectors);
  return update.revision;
}

}  // namespace perceptrond
