// What a model consists of: its settings, its state under one lock, and its ledger; and what is
// done with it: recovery, learning, prediction and more, each a function in a file of its own.
// Views are in core/model/views.h. Users of models include core/model/model.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/features/document_frequencies.h"
#include "core/features/expansion.h"
#include "core/features/names.h"
#include "core/journal/journal.h"
#include "core/learner/learner.h"
#include "core/ledger/ledger.h"
#include "core/memory/memory_budget.h"
#include "core/model/learning_plan.h"
#include "core/model/revision_waiters.h"
#include "core/settings/settings.h"
#include "core/sync/mutex.h"
#include "core/vector/check.h"
#include "core/vector/row.h"

namespace perceptron::v1 {
class Model;
}

namespace perceptrond {

// What a model's predictions come from, as one number. It differs whenever they may differ, but for
// a chance of 2^-64. Made of the revision, the weights' norm (after a crash another update may get
// the revision of a lost one), and the age of rules whose predictions depend on it.
using StateFingerprint = uint64_t;

// The fingerprint of something made of parts with these.
StateFingerprint CombineFingerprints(const std::vector<StateFingerprint>& parts);

struct ModelLimits {
  // Features of an example, before and after its map.
  size_t max_example_features = 1 << 20;
  // Named producers that it keeps the positions of.
  size_t max_producers = 10'000;
  // What one batch may cost, in multiply-adds (core/model/cost.h): some seconds.
  uint64_t max_message_cost = uint64_t{4'000'000'000};
  // The most bytes that it may take. In ModelCore, without what its stored examples may: a row whose
  // update needs more for weights and names, or for the rows that a rule keeps, gets the error kFeatureCap.
  size_t max_model_bytes = std::numeric_limits<size_t>::max();
  // What all models share. It must outlive them; null: without a limit.
  MemoryBudget* memory = nullptr;
};

// What a model has learned. Every field is of the same revision.
struct ModelState {
  std::unique_ptr<Learner> learner;
  // The names of features, in a named space.
  Dictionary names;
  // Class k is the name of number k + 1, where classes have names.
  Dictionary class_names;
  // Of a text space with them; null: each is 1.
  std::shared_ptr<const InverseDocumentFrequencies> frequencies;
  uint64_t revision = 0;
  double margin_of_interest = 0;
  // Why the model neither learns nor predicts any more; OK while it does.
  absl::Status closed;
};

// What is known of the model's theorem from its settings alone.
TheoremContext FixedTheoremContext(const ModelSettings& settings);

// The state of a model that has learned nothing.
ModelState MakeInitialState(const ModelSettings& settings, double margin_of_interest);

// Whether a model learns. A message holds it shared while it is learned, so that freezing takes
// effect between messages.
struct LearningGate {
  bool frozen = false;
  // Model.update_time of the settings it has.
  absl::Time settings_time;
  // Why it learns and counts nothing any more (StopLearning); OK: it does.
  absl::Status stopped = absl::OkStatus();
};

// Model.update_time.
absl::Time UpdateTime(const ::perceptron::v1::Model& settings);

// Settings as ListModels and WatchModel answer them: without label names and starting weights, which may be as large as
// the model.
::perceptron::v1::Model ListedSettings(::perceptron::v1::Model settings);

// What a model takes up in the journal.
struct JournalUse {
  // Bytes of records that a load would replay.
  uint64_t bytes = 0;
  // When the snapshot was taken; InfinitePast: there is none.
  absl::Time snapshot_time = absl::InfinitePast();
};

// Thread contract: every member is safe for any number of threads. Lock order: Producer::turn,
// gate, state, ledger.
struct ModelCore {
  ModelCore(const storage::ModelHeader& header, ModelSettings settings, const ModelLimits& limits,
            const CommittedState& committed);
  ModelCore(const ModelCore&) = delete;
  ModelCore& operator=(const ModelCore&) = delete;

  // Features have names, and get weights with their first update.
  bool has_names() const { return weight_space.kind == FeatureSpace::Kind::kNamed; }
  // Examples evaluated, for rules that count them (CatalogueEntry::counts_examples); absent for
  // others.
  std::optional<uint64_t> CountedExamples() const {
    return plan.counts_examples ? std::optional(ledger.examples()) : std::nullopt;
  }
  // The same for predictions: 0 for rules that do not count.
  uint64_t Age() const { return CountedExamples().value_or(0); }
  // Model::EstimateCost, for rows in the space that the model learns in.
  uint64_t EstimateCost(const Batch& batch) const;
  // Of the weights alone: see StateFingerprint.
  StateFingerprint Fingerprint(const ModelState& state) const;
  // Why the model neither learns nor predicts any more: it is closed, or an update was cut short by
  // a failed allocation.
  absl::Status CheckOpen(const ModelState& state) const;
  // UNAVAILABLE (NOT_THE_WRITER) if another server of a fleet writes the model: it neither learns
  // nor has producers here. Takes no lock.
  absl::Status CheckWritable() const;
  // OK if the model may answer: it is open, or the last copy for one who asks for no revision; and
  // at least at `min_revision`. ABORTED (REVISION_TOO_OLD), or why it is closed.
  absl::Status CheckReadable(const ModelState& state, uint64_t min_revision) const;
  // The model is being used, as its expiry counts it.
  void MarkScored() const {
    // Threads that find it set share its cache line.
    if (!scored->load(std::memory_order_relaxed)) scored->store(true, std::memory_order_relaxed);
  }

  const uint64_t id;
  const std::string name;
  const std::string uid;
  // The journal's entries up to this one are in the model that was loaded.
  const uint64_t loaded_sequence;
  const ModelSettings settings;
  // The space of the weights: settings.space after its feature map.
  const FeatureSpace weight_space;
  // The feature map; null: the identity.
  const std::shared_ptr<const Expansion> expansion;
  const ModelLimits limits;

  // Null unless the space has inverse document frequencies. Added to with the state locked.
  const std::unique_ptr<DocumentCounter> documents;

  // ListedSettings of those that Model::Change was given last.
  Guarded<std::shared_ptr<const ::perceptron::v1::Model>> listed_settings;
  Guarded<LearningGate> gate;
  Guarded<ModelState> state;
  const LearningPlan plan;
  // mutable: reading the ledger locks it.
  mutable Ledger ledger;
  Guarded<JournalUse> journal_use;
  // The model is among those whose counters its committer has deferred.
  std::atomic<bool> counts_deferred = false;
  // Used without ModelCache::Acquire since the cache looked last (ModelHandle).
  std::atomic<bool> used = false;
  // A row was scored since ModelExpiry looked last, which sets it anew before the model is used. Outlives the model:
  // what leaves memory stays used.
  std::shared_ptr<std::atomic<bool>> scored = std::make_shared<std::atomic<bool>>(false);
  // Batches being worked on that hold the state for long (core/model/cost.h).
  mutable std::atomic<int> large_work = 0;
  // Another server writes the model, and this one only predicts (Followers). Once it is false it
  // stays so.
  std::atomic<bool> follows = false;
  // CommittedState::epoch of the entries that the state has. Grows. Written before an entry of that writer is applied: who
  // reads it with the state locked names the state by it and the revision.
  std::atomic<int64_t> epoch;
  // Of a model that follows: those who wait until an update is applied. Outlives the model for
  // them.
  const std::shared_ptr<RevisionWaiters> waiters = std::make_shared<RevisionWaiters>();
  // state->closed is not OK. Read without a lock.
  std::atomic<bool> is_closed = false;
  // It predicts although it is closed, until it is loaded again (LastCopies).
  std::atomic<bool> is_last_copy = false;
};

// From now on Learn, ReplaceWeights and CountCorrectRows return `why`: what was learned and counted before can be
// committed whole, and the model be closed. Waits for the messages being learned. The first reason stays.
void StopLearning(ModelCore& core, const absl::Status& why);

struct ExplainOptions;
struct ExplainOutcome;
struct LearnCall;
struct LearnOutcome;
struct NewWeights;
struct PredictOutcome;

// Restores the state of a core that was made with stored.committed() and has learned nothing yet:
// the snapshot, then every record after it, each checked against what it says of itself
// (docs/journal.md). The restored weights are equal to the bit to those before. DATA_LOSS, and the
// core is of no use, if the journal is inconsistent; StoppedError likewise. O(snapshot and
// records). (recovery.cc)
absl::Status Recover(StoredModel& stored, ModelCore& core);

// Applies an entry that another server committed to a model that only predicts: its records are
// replayed and checked as in Recover, under the state's exclusive lock, so that readers see all of
// it or nothing. OUT_OF_RANGE if records before it are missing here, as after a snapshot, or if it
// was rolled back: the model must be loaded again. DATA_LOSS, and the model is of no use, if it is
// inconsistent. O(records).
// (recovery.cc)
absl::Status Follow(const JournalEntry& entry, ModelCore& core);

// Model::Learn, for rows in the space that the model learns in. Mistakes are the only writes: rows
// are evaluated under the state's shared lock until one calls for an update; that row is evaluated
// again under the exclusive lock, and learned if it still calls for one. (learn_batch.cc)
absl::Status LearnBatch(ModelCore& core, const LearnCall& call, LearnOutcome& outcome);

// Model::Predict, for rows in the space that the model learns in: under the state's shared lock, on
// one revision. (predict_batch.cc)
absl::Status PredictBatch(const ModelCore& core, const Batch& batch,
                          std::span<const RowError> row_errors, uint64_t min_revision,
                          bool include_class_scores, PredictOutcome& outcome);

// Model::Explain, in the same way. (explain.cc)
absl::Status ExplainBatch(const ModelCore& core, const Batch& batch,
                          std::span<const RowError> row_errors, const ExplainOptions& options,
                          ExplainOutcome& outcome);

// Puts the document frequencies counted so far into force, as an update of its own, if they are due.
// Why the model is closed. O(slots). (frequency_change.cc)
absl::Status ChangeFrequencies(ModelCore& core);
// Recovery: the frequencies of a snapshot, and those that a record puts into force. False and DATA_LOSS
// if they are inconsistent, and the core is of no use.
bool RestoreFrequencies(const storage::Snapshot& snapshot, ModelCore& core, ModelState& state);
absl::Status ReplayFrequencyChange(const storage::UpdateRecord& record, ModelCore& core,
                                   ModelState& state);

// Model::ReplaceWeights. (replace_weights.cc)
absl::StatusOr<uint64_t> ReplaceAllWeights(ModelCore& core, NewWeights weights,
                                           std::optional<uint64_t> expected_revision);

}  // namespace perceptrond
