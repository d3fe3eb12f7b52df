#include "core/model/model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/model/composition.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

// A model of the features it is sent.
class FeatureModel final : public Model {
 public:
  explicit FeatureModel(std::unique_ptr<ModelCore> core) : Model(std::move(core)) {}

  absl::Status Learn(const LearnCall& call, LearnOutcome& outcome) override {
    outcome.Clear();
    return LearnBatch(core(), call, outcome);
  }
  absl::Status Predict(const Batch& batch, std::span<const RowError> row_errors,
                       uint64_t min_revision, PredictOutcome& outcome,
                       bool include_class_scores) const override {
    return PredictBatch(core(), batch, row_errors, min_revision, include_class_scores, outcome);
  }
  absl::Status Explain(const Batch& batch, std::span<const RowError> row_errors,
                       const ExplainOptions& options, ExplainOutcome& outcome) const override {
    return ExplainBatch(core(), batch, row_errors, options, outcome);
  }
  uint64_t EstimateCost(const Batch& batch) const override { return core().EstimateCost(batch); }
  std::optional<StateFingerprint> Fingerprint(ComponentAccess /*access*/) const override {
    const Guarded<ModelState>::Reader state(core().state);
    return core().Fingerprint(*state);
  }
  std::optional<StateFingerprint> ComponentsFingerprint(ComponentAccess /*access*/) const override {
    return std::nullopt;
  }
};

}  // namespace

void LearnOutcome::Clear() {
  examples = mistakes = duplicates = revision = 0;
  epoch = 0;
  next_offset = 0;
  uncommitted_bytes = 0;
  scores.clear();
  predicted.clear();
  updated_rows.clear();
  update_revisions.clear();
  row_errors.clear();
  pass.reset();
  component_revisions.clear();
}

absl::StatusOr<std::shared_ptr<Model>> Model::Load(const storage::ModelHeader& header,
                                                   Journal& journal, const ModelLimits& limits,
                                                   ComponentSource components) {
  const absl::StatusOr<std::unique_ptr<StoredModel>> stored = journal.Load(header.id());
  if (!stored.ok()) return stored.status();
  return RestoreModel(header, **stored, limits, std::move(components));
}

absl::StatusOr<std::shared_ptr<Model>> RestoreModel(const storage::ModelHeader& header,
                                                    StoredModel& stored, const ModelLimits& limits,
                                                    ComponentSource components) {
  absl::StatusOr<ModelSettings> settings = ReadSettings(header.model());
  if (!settings.ok()) {
    return MakeError(absl::StatusCode::kDataLoss, "JOURNAL_CORRUPT",
                     absl::StrCat("the journal holds settings that this server cannot read: ",
                                  settings.status().message()));
  }
  const bool is_composition = !settings->components.empty();
  auto core = std::make_unique<ModelCore>(header, *std::move(settings), limits, stored.committed());
  if (absl::Status status = Recover(stored, *core); !status.ok()) return status;
  if (is_composition) return std::make_shared<Composition>(std::move(core), std::move(components));
  return std::make_shared<FeatureModel>(std::move(core));
}

absl::StatusOr<uint64_t> Model::ReplaceWeights(const NewWeights& weights,
                                               std::optional<uint64_t> expected_revision) {
  return ReplaceAllWeights(*core_, weights, expected_revision);
}

void Model::Change(const ::perceptron::v1::Model& settings) {
  const Guarded<LearningGate>::Writer gate(core_->gate);
  const absl::Time time = UpdateTime(settings);
  if (time < gate->settings_time) return;
  gate->settings_time = time;
  gate->frozen = settings.state() == ::perceptron::v1::MODEL_STATE_FROZEN;
  *Guarded<std::shared_ptr<const ::perceptron::v1::Model>>::Writer(core_->listed_settings) =
      std::make_shared<const ::perceptron::v1::Model>(ListedSettings(settings));
  Guarded<ModelState>::Writer(core_->state)->margin_of_interest = settings.margin_of_interest();
}

void Model::Close(absl::Status why) {
  {
    const Guarded<ModelState>::Writer state(core_->state);
    if (!state->closed.ok()) return;
    state->closed = std::move(why);
    core_->is_closed.store(true, std::memory_order_release);
  }
  core_->waiters->Release();
}

absl::Status Model::closed() const {
  if (!core_->is_closed.load(std::memory_order_acquire))
    return core_->ledger.torn() ? OutOfMemory() : absl::OkStatus();
  return Guarded<ModelState>::Reader(core_->state)->closed;
}

}  // namespace perceptrond
