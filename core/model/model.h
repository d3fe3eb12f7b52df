// A named model in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/model_core.h"
#include "core/vector/check.h"
#include "core/vector/row.h"

namespace perceptrond {

struct ExplainOptions;
struct ExplainOutcome;

// The score of rows with errors and of replayed rows.
inline constexpr float kNoScore = std::numeric_limits<float>::quiet_NaN();

// A batch to learn.
struct LearnCall {
  Batch batch;
  // The rows in which reading the batch found errors, ascending. They are empty rows of the batch.
  std::span<const RowError> row_errors;
  // The sender: a producer of this model's ledger, or one without a name. Required; the caller
  // holds its `turn`.
  Producer* producer = nullptr;
  // The number of the first row; absent: the producer's position.
  std::optional<int64_t> first_offset;
  // The first rows of the batch that were evaluated elsewhere and counted (CountCorrectRows): among
  // LearnOutcome::duplicates, and no duplicates in the report.
  size_t counted_rows = 0;
  // The rows that name predictions which the journal keeps, ascending. The commit that has a row
  // drops its prediction; that of a row with an error stays.
  std::span<const PredictionOfRow> predictions;
  // > 0: the producer's pass of this number ends after the batch.
  int64_t completed_pass = 0;
  // Whether to fill LearnOutcome's scores and predicted.
  bool detail = true;
  // Of a composition, which sets it: the fingerprint of the components that computed the batch.
  std::optional<StateFingerprint> components;
  // Refuse the whole batch, before any row is learned, if a row is invalid by itself. Errors that
  // only learning a row shows (the feature cap, a weight that would overflow) are that row's alone.
  bool all_or_nothing = false;
};

// The effect of a learned batch. Reused from call to call: vectors keep their memory.
struct LearnOutcome {
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t duplicates = 0;
  // The model's revision after the batch, and the epoch of that state (ModelCore::epoch).
  uint64_t revision = 0;
  int64_t epoch = 0;
  // The producer's position after the batch.
  int64_t next_offset = 0;
  // With detail, one a row, before it was learned; NaN for replayed rows and rows with errors.
  std::vector<float> scores;
  // With detail, one a row, before it was learned; for replayed rows and rows with errors 0, or -1
  // for several classes.
  std::vector<int32_t> predicted;
  // Rows that caused updates.
  std::vector<uint32_t> updated_rows;
  // The revision that each of them produced.
  std::vector<uint64_t> update_revisions;
  std::vector<RowError> row_errors;
  std::optional<PassSummary> pass;
  // What the batch has added to memory that the model's own counts only once it is written.
  size_t uncommitted_bytes = 0;
  // Of a composition, one an input: the revision of the component that computed it.
  std::vector<uint64_t> component_revisions;

  void Clear();
};

// Predictions for a batch. Reused from call to call: vectors keep their memory.
struct PredictOutcome {
  // The state that predicted: its revision and epoch (ModelCore::epoch).
  uint64_t revision = 0;
  int64_t epoch = 0;
  // Examples evaluated by the state that predicted, if its predictions depend on them; else 0.
  uint64_t age = 0;
  StateFingerprint fingerprint = 0;
  // One a row; NaN for rows with errors.
  std::vector<float> scores;
  // One a row; for rows with errors 0, or -1 for several classes.
  std::vector<int32_t> labels;
  // The signed distance of each row from the boundary; empty while the weights are zero.
  std::vector<float> distances;
  // The probability of +1, or of the class in `labels`, one a row; empty if the learner has none.
  std::vector<float> probabilities;
  // On request, for several classes: the scores of all classes below the model's number of classes,
  // row after row; NaN for classes without an example, and for rows with errors.
  std::vector<float> class_scores;
  // Their probabilities in the same form; empty if the learner has none.
  std::vector<float> class_probabilities;
  std::vector<RowError> row_errors;
  // Of a composition, one an input: the revision of the component that computed it.
  std::vector<uint64_t> component_revisions;

  void Clear();
};

// Weights that replace all others, by index. In a named space indices from `first_new` on stand for
// new names: index first_new + i for new_names[i].
struct NewWeights {
  struct Vector {
    // Strictly ascending.
    std::vector<uint32_t> indices;
    // One an index, finite.
    std::vector<float> values;
    // The weight of the constant input.
    float bias_weight = 0;
  };
  // One; with several classes one a class, by number, empty for a class that the model does not
  // have. Classes without a vector get weights of 0.
  std::vector<Vector> vectors;
  std::vector<std::string> new_names;
  uint32_t first_new = std::numeric_limits<uint32_t>::max();
};

class Model;

// Which components of a composition are asked for their state: all, loading those that are not in
// memory; all, by copies of those whose journal is out of reach; those in memory; or none.
enum class ComponentAccess : uint8_t { kLoad, kToPredict, kOnlyInMemory, kNone };

// The model of a name, as Store::Acquire and AcquireToPredict return it; with kOnlyInMemory
// NOT_FOUND unless it is in memory.
using ComponentSource = std::function<absl::StatusOr<std::shared_ptr<const Model>>(
    absl::string_view name, ComponentAccess access)>;

// A model: it learns, predicts and explains. There are two implementations. One works on the
// features it is sent; a composition works on the outputs of other models
// (core/model/composition.h). Reports, weights and other views are functions over a ModelReader
// (core/model/views.h).
//
// Thread contract: safe for any number of threads. Evaluating rows shares the state's lock; only an
// update excludes, and only while its row is evaluated again and applied.
class Model {
 public:
  using Limits = ModelLimits;

  // Restores a model from the journal: snapshot, records, counters. `components` is where a
  // composition finds the models it is made of; it must outlive the model. DATA_LOSS if what the
  // journal holds is inconsistent: replayed rows must call for updates again, and reach the
  // recorded norm to the bit. StoppedError. O(snapshot and records).
  static absl::StatusOr<std::shared_ptr<Model>> Load(const storage::ModelHeader& header,
                                                     Journal& journal, const ModelLimits& limits,
                                                     ComponentSource components = nullptr);
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  uint64_t id() const { return core_->id; }
  const std::string& name() const { return core_->name; }
  const std::string& uid() const { return core_->uid; }
  const ModelSettings& settings() const { return core_->settings; }
  // Features have names.
  bool has_names() const { return core_->has_names(); }
  Ledger& ledger() { return core_->ledger; }
  // The number of updates, which names the state exactly.
  uint64_t revision() const { return Guarded<ModelState>::Reader(core_->state)->revision; }

  // Evaluates and learns the batch, row by row in order. On an error nothing was learned and the
  // position did not move:
  //   INVALID_ARGUMENT: the columns are malformed, or (all_or_nothing) a row is invalid, and
  //   outcome.row_errors says which; OUT_OF_RANGE (OFFSET_GAP, PASS_GAP): rows or passes between
  //   the producer's position and this batch are missing; FAILED_PRECONDITION (MODEL_FROZEN): the
  //   batch has rows or passes that are not a replay.
  // RESOURCE_EXHAUSTED (MESSAGE_TOO_COSTLY, see EstimateCost; MEMORY_EXHAUSTED). Two errors come when rows may be
  // learned, which the producer's position counts, all rows before one and none after it:
  // StoppedError (core/error/stopped.h), once the thread's work was stopped, and any other code,
  // which says that the model is closed: acquire it again. What was learned is durable once a
  // commit submitted after this call is written. O(features of the batch).
  virtual absl::Status Learn(const LearnCall& call, LearnOutcome& outcome) = 0;

  // Predicts the batch on one revision. Changes nothing. `row_errors`: the rows in which reading
  // the batch found errors, ascending. `include_class_scores`: fill class_scores. INVALID_ARGUMENT
  // for malformed columns and for more than kMaxClassScores (TOO_MANY_SCORES); ABORTED
  // (REVISION_TOO_OLD) below min_revision; RESOURCE_EXHAUSTED (MESSAGE_TOO_COSTLY); StoppedError.
  // O(features of the batch).
  virtual absl::Status Predict(const Batch& batch, std::span<const RowError> row_errors,
                               uint64_t min_revision, PredictOutcome& outcome,
                               bool include_class_scores = false) const = 0;
  static constexpr size_t kMaxClassScores = 1 << 20;

  // Decomposes a score of each row into its largest contributions and the sum of the others, on one
  // revision. Changes nothing. Errors as Predict's; INVALID_ARGUMENT for a label that the model
  // does not have (ExplainOptions::label); FAILED_PRECONDITION (NOT_LINEAR). Ends at the first
  // invalid row, which outcome.row_errors names. Holds the state's lock shared. O(features of the
  // batch after its map).
  virtual absl::Status Explain(const Batch& batch, std::span<const RowError> row_errors,
                               const ExplainOptions& options, ExplainOutcome& outcome) const = 0;

  // Multiply-adds, or as much time, that predicting the batch takes (core/model/cost.h); Predict,
  // Learn and Explain refuse what costs more than Limits::max_message_cost. The columns must be
  // well formed. A composition's components are asked, too, if they are in memory. O(rows).
  virtual uint64_t EstimateCost(const Batch& batch) const = 0;

  // The state that predictions come from now. Absent if a component cannot be asked.
  virtual std::optional<StateFingerprint> Fingerprint(ComponentAccess access) const = 0;
  // The fingerprint of a composition's components. Absent for other models, and if a component
  // cannot be asked.
  virtual std::optional<StateFingerprint> ComponentsFingerprint(ComponentAccess access) const = 0;

  // Replaces all weights: an update, durable once a commit submitted after this call is written. On
  // an error nothing changed: FAILED_PRECONDITION (MODEL_FROZEN, NOT_REPLACEABLE), ABORTED
  // (REVISION_MISMATCH) if the model is not at expected_revision, RESOURCE_EXHAUSTED (FEATURE_CAP),
  // StoppedError, or why the model is closed. Returns the revision. O(weights).
  absl::StatusOr<uint64_t> ReplaceWeights(const NewWeights& weights,
                                          std::optional<uint64_t> expected_revision);

  // Takes over what may change of the settings: whether the model is frozen, and the margin of
  // interest. Waits for the messages being learned. Settings older than the model's, by
  // update_time, are ignored.
  void Change(const ::perceptron::v1::Model& settings);
  // From now on Learn and Predict return `why`: the model was deleted, or its journal could not be
  // written. The first reason stays.
  void Close(absl::Status why);
  // Why the model is closed; OK while it is open. Takes no lock while it is open.
  absl::Status closed() const;

  // For core/model only: what the functions over models work on.
  ModelCore& core() { return *core_; }
  const ModelCore& core() const { return *core_; }

 protected:
  explicit Model(std::unique_ptr<ModelCore> core) : core_(std::move(core)) {}

 private:
  const std::unique_ptr<ModelCore> core_;
};

// As Model::Load, of a model that was read from the journal.
absl::StatusOr<std::shared_ptr<Model>> RestoreModel(const storage::ModelHeader& header,
                                                    StoredModel& stored, const ModelLimits& limits,
                                                    ComponentSource components);

}  // namespace perceptrond
