#include "core/model/model_core.h"

#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/features/names.h"
#include "core/learner/catalogue.h"
#include "core/model/cost.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

// The convergence theorem holds for the run, as long as every example has the same weight.
bool HasTheorem(const LearnerSettings& learner) {
  return FindLearner(learner).convergence_theorem && learner.start.all_zero() &&
         learner.weighs_classes_equally() && learner.knows_all_classes();
}

}  // namespace

TheoremContext FixedTheoremContext(const ModelSettings& settings) {
  TheoremContext context;
  context.applies = HasTheorem(settings.learner);
  context.step_size = settings.learner.step_size;
  context.squared_norm_ratio = settings.is_multiclass() ? 2.0 : 1.0;
  context.separate_prediction_weights = FindLearner(settings.learner).separate_prediction_weights;
  context.composed = !settings.components.empty();
  return context;
}

ModelState MakeInitialState(const ModelSettings& settings, double margin_of_interest) {
  ModelState state;
  const std::vector<std::string>& names = settings.learner.start.names;
  state.learner = MakeLearner(settings.learner, settings.space.initial_weights() + names.size());
  for (const std::string& name : names) state.names.Add(name);
  if (settings.is_multiclass()) {
    for (const std::string& name : settings.label_names) state.class_names.Add(name);
  }
  state.margin_of_interest = margin_of_interest;
  return state;
}

StateFingerprint CombineFingerprints(const std::vector<StateFingerprint>& parts) {
  return HashBytes(parts.data(), parts.size() * sizeof(StateFingerprint), 0);
}

absl::Time UpdateTime(const ::perceptron::v1::Model& settings) {
  return absl::FromUnixSeconds(settings.update_time().seconds()) +
         absl::Nanoseconds(settings.update_time().nanos());
}

::perceptron::v1::Model ListedSettings(::perceptron::v1::Model settings) {
  settings.clear_label_names();
  if (settings.learner().has_starting_weights())
    settings.mutable_learner()->clear_starting_weights();
  return settings;
}

namespace {

ModelLimits WithoutStoredExamples(ModelLimits limits, const ModelSettings& settings) {
  limits.max_model_bytes -= StoredExamplesWithin(settings, limits.max_model_bytes).most_bytes();
  return limits;
}

}  // namespace

ModelCore::ModelCore(const storage::ModelHeader& header, ModelSettings read,
                     const ModelLimits& limits, const CommittedState& committed)
    : id(header.id()),
      name(header.model().name()),
      uid(header.model().uid()),
      loaded_sequence(committed.sequence),
      settings(std::move(read)),
      weight_space(settings.space.mapped()),
      expansion(MakeExpansion(settings.space)),
      limits(WithoutStoredExamples(limits, settings)),
      documents(settings.space.text.has_value() && settings.space.text->inverse_document_frequency
                    ? std::make_unique<DocumentCounter>(settings.space.size)
                    : nullptr),
      listed_settings(
          std::make_shared<const ::perceptron::v1::Model>(ListedSettings(header.model()))),
      gate(header.model().state() == ::perceptron::v1::MODEL_STATE_FROZEN,
           UpdateTime(header.model())),
      state(MakeInitialState(settings, header.model().margin_of_interest())),
      plan(settings, *Guarded<ModelState>::Reader(state)->learner),
      ledger(committed, StoredExamplesWithin(settings, limits.max_model_bytes),
             FixedTheoremContext(settings), limits.max_producers),
      epoch(committed.epoch) {}

uint64_t ModelCore::EstimateCost(const Batch& batch) const {
  const Guarded<ModelState>::Reader reader(state);
  return perceptrond::EstimateCost(expansion.get(), settings, *reader->learner,
                                   limits.max_example_features, batch);
}

StateFingerprint ModelCore::Fingerprint(const ModelState& state) const {
  const bool by_age = FindLearner(settings.learner).separate_prediction_weights;
  const std::array<uint64_t, 3> parts = {
      state.revision, std::bit_cast<uint64_t>(state.learner->augmented_squared_norm()),
      by_age ? Age() : 0};
  return HashBytes(parts.data(), sizeof(parts), 0);
}

absl::Status ModelCore::CheckOpen(const ModelState& state) const {
  if (!state.closed.ok() || !ledger.torn()) return state.closed;
  return OutOfMemory();
}

void StopLearning(ModelCore& core, const absl::Status& why) {
  Guarded<LearningGate>::Writer(core.gate)->stopped.Update(why);
}

absl::Status ModelCore::CheckWritable() const {
  return follows.load(std::memory_order_acquire) ? NotTheWriterError(name) : absl::OkStatus();
}

absl::Status ModelCore::CheckReadable(const ModelState& state, uint64_t min_revision) const {
  const bool last_copy = min_revision == 0 && is_last_copy.load(std::memory_order_acquire);
  absl::Status open = last_copy && !ledger.torn() ? absl::OkStatus() : CheckOpen(state);
  if (!open.ok() || state.revision >= min_revision) return open;
  return WithRetry(
      MakeError(absl::StatusCode::kAborted, "REVISION_TOO_OLD",
                absl::StrCat("the model is at revision ", state.revision, ", below ", min_revision,
                             "; ask again later, or for an older revision"),
                {{"revision", absl::StrCat(state.revision)}}),
      absl::Seconds(1));
}

}  // namespace perceptrond
