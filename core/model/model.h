// One named model in memory: a learner, its books, and the lock that makes judging and updating one
// step.
#pragma once

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
#include "core/convergence/progress.h"
#include "core/features/dictionary.h"
#include "core/features/mapper.h"
#include "core/learner/learner.h"
#include "core/model/composition.h"
#include "core/model/ledger.h"
#include "core/model/row_error.h"
#include "core/model/settings.h"
#include "core/sync/mutex.h"
#include "core/vector/batch.h"
#include "core/vector/check.h"

namespace perceptrond {

struct Explanation;
struct ExplainOutcome;

// A batch to learn.
struct LearnCall {
  Batch batch;
  // Rows already found bad when the batch was put together, ascending; they lie in the batch as
  // empty rows.
  std::span<const RowError> row_errors;
  // Who sends it: of this model's ledger, or nameless. Required. Its `turn` is held by the caller.
  Producer* producer = nullptr;
  // The number of the first row; absent: the one the producer is at.
  std::optional<int64_t> first_offset;
  // > 0: the producer's pass of that number ends behind the batch.
  int64_t end_of_pass = 0;
  // Fill scores and predicted.
  bool detail = true;
  // Of a composition, which sets it itself: what its components answered from.
  std::optional<StateFingerprint> components;
  // Refuse the whole batch, before any row is learned, if one is bad in itself. What only shows
  // when a row's turn comes (the feature cap, a weight that would overflow) refuses that row alone.
  bool all_or_nothing = false;
};

// What became of it. Reused from call to call: vectors keep their memory.
struct LearnOutcome {
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t duplicates = 0;
  // The model's revision and the producer's position afterwards.
  uint64_t revision = 0;
  int64_t next_offset = 0;
  // With detail, one a row, before it was learned; NaN and 0 for rows refused or replayed.
  std::vector<float> scores;
  std::vector<int32_t> predicted;
  // Rows that caused updates, and the revision each produced.
  std::vector<uint32_t> updated_rows;
  std::vector<uint64_t> update_revisions;
  std::vector<RowError> row_errors;
  std::optional<PassSummary> pass;
  // Of a composition: one an input, at which its model was asked.
  std::vector<uint64_t> component_revisions;

  void Clear();
};

// What a batch is predicted to be. Reused from call to call.
struct PredictOutcome {
  uint64_t revision = 0;
  StateFingerprint fingerprint = 0;
  // One a row; NaN and 0 for refused ones.
  std::vector<float> scores;
  std::vector<int32_t> labels;
  // One a row, or none while the weights are zero.
  std::vector<float> distances;
  // Of +1 or the class in labels, one a row; none if the learner has no probabilities.
  std::vector<float> probabilities;
  // If asked for, of several classes: row after row one for each number below the model's
  // classes(); NaN for numbers that have not come up, and for refused rows. Probabilities as above.
  std::vector<float> class_scores;
  std::vector<float> class_probabilities;
  std::vector<RowError> row_errors;
  // Of a composition: one an input, at which its model was asked.
  std::vector<uint64_t> component_revisions;

  void Clear();
};

// Every non-zero weight.
struct WeightList {
  // By index, or in a named space by name.
  std::vector<uint32_t> indices;
  std::vector<std::string> names;
  std::vector<float> values;
  double offset = 0;
  uint64_t revision = 0;
};

// Weights to adopt, by index; in a named space indices from `first_new` on are names of their own:
// index first_new + i is new_names[i].
struct NewWeights {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  // Of the offset's coordinate.
  float offset_weight = 0;
  std::vector<std::string> new_names;
  uint32_t first_new = std::numeric_limits<uint32_t>::max();
};

// Thread contract: safe for any number of threads. Scoring shares; only an update excludes, and
// only while it is judged again and applied. Lock order: Producer::turn, gate_, mutex_, the
// ledger's.
class Model {
 public:
  struct Limits {
    size_t max_example_features = 1 << 20;
  };

  // Rebuilds a model from the journal: snapshot, records, counters. DATA_LOSS if they contradict
  // each other, down to the bit: every record's rows must call for updates again, and end at the
  // norm they had.
  // `components` is where a composition finds the models that it asks; it must outlive the model.
  static absl::StatusOr<std::shared_ptr<Model>> Load(const storage::ModelHeader& header,
                                                     Journal& journal, const Limits& limits,
                                                     ComponentSource components = nullptr);

  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  uint64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  const std::string& uid() const { return uid_; }
  const ModelSettings& settings() const { return settings_; }
  Ledger& ledger() { return ledger_; }

  // Judges and learns the batch, row by row in its order. On an error nothing was learned and the
  // position did not move:
  //   INVALID_ARGUMENT: the columns are malformed, or (all_or_nothing) a row is bad: then
  //   outcome.refused says which; OUT_OF_RANGE (OFFSET_GAP): rows or passes between the producer's
  //   position and this batch are missing; FAILED_PRECONDITION (MODEL_FROZEN): there are rows or
  //   passes that are no replay.
  // An error of another code says that the model is closed: look it up again; rows before the close
  // may be learned, but the producer's position knows. What was learned is durable once a commit
  // submitted after this call is. O(features of the batch).
  absl::Status Learn(const LearnCall& call, LearnOutcome& outcome) ABSL_LOCKS_EXCLUDED(mutex_);

  // Scores the batch on one revision. Changes nothing. `refused` are rows already found bad.
  // `all_scores`: fill class_scores. INVALID_ARGUMENT for malformed columns, and for more than
  // kMaxClassScores (TOO_MANY_SCORES); ABORTED (REVISION_TOO_OLD) below min_revision.
  absl::Status Predict(const Batch& batch, std::span<const RowError> row_errors,
                       uint64_t min_revision, PredictOutcome& outcome,
                       bool all_scores = false) const ABSL_LOCKS_EXCLUDED(mutex_);
  static constexpr size_t kMaxClassScores = 1 << 20;

  // Takes each row's score, as Predict gives it, apart into its `max_features` largest
  // contributions and the rest, on one revision. Changes nothing. Errors as Predict's;
  // FAILED_PRECONDITION (NOT_LINEAR). Ends at the first bad row: outcome.refused says which. Holds
  // the shared lock meanwhile. O(features, after Phi).
  absl::Status Explain(const Batch& batch, std::span<const RowError> row_errors,
                       uint64_t min_revision, size_t max_features, ExplainOutcome& outcome) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t revision() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a composition whose components are not all in memory and may not be loaded, what is claimed
  // only as long as they stand as they stood is absent.
  ConvergenceReport MakeReport(bool load_components = true) const ABSL_LOCKS_EXCLUDED(mutex_);
  // What Predict would answer from now. Nothing if a component cannot be asked.
  std::optional<StateFingerprint> Fingerprint(bool load_components) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Weights and report of one revision.
  struct View {
    WeightList weights;
    // Of several classes: by number, and `weights` has nothing but the revision.
    std::vector<WeightList> weights_by_class;
    ConvergenceReport report;
  };
  View MakeView() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The present ones: classes may have come up since it was created.
  std::vector<std::string> LabelNames() const ABSL_LOCKS_EXCLUDED(mutex_);
  // `load_components` as of MakeReport.
  LearningCurve MakeLearningCurve(bool load_components = true) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The weights it answers with that are furthest from 0, the furthest first, of equals the one
  // with the lower index; of several classes one list a class, by number, empty for one that has
  // not come up; empty if it answers with no weights (Form). Looks through them a stretch at a
  // time, and an update waits for one stretch at the most, some 0.2 ms, so that what is listed may
  // be of several revisions: from WeightList::revision of the first to the one returned.
  // O(weights), and takes memory for `limit` of them a class.
  struct TopWeights {
    std::vector<WeightList> lists;
    uint64_t last_revision = 0;
  };
  TopWeights FindTopWeights(size_t limit) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many weights an answer has, of all classes together. O(1).
  size_t weights() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Weights, names and books, approximately.
  size_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Weights, names, and of what is retained the part beyond 64 MiB.
  size_t state_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes what may change of the settings: whether it is frozen, and the margin of interest. Waits
  // for the messages being learned; none is learned by older settings from then on. Settings older
  // than those it has, by update_time, are ignored.
  void Change(const ::perceptron::v1::Model& settings) ABSL_LOCKS_EXCLUDED(gate_, mutex_);
  // From now on Learn and Predict answer `why`: the model was deleted, or its journal could not be
  // written.
  void Close(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status closed() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Puts these weights in the place of those learned: a revision like any update, durable once a
  // commit submitted after this call is. On an error nothing changed: FAILED_PRECONDITION
  // (MODEL_FROZEN, NOT_ADOPTABLE), ABORTED (REVISION_MISMATCH) if the model is not at if_revision,
  // RESOURCE_EXHAUSTED (FEATURE_CAP), or why the model is closed. Returns the revision. O(weights).
  absl::StatusOr<uint64_t> ReplaceWeights(const NewWeights& weights,
                                          std::optional<uint64_t> if_revision)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What is retained, and the revision that goes with it. A composition's is not complete once its
  // components would answer otherwise than they did: it holds their answers. Holds up updates for
  // some 20 ns an example, but no scoring.
  struct RetainedView {
    RetainedExamples examples;
    uint64_t revision = 0;
  };
  RetainedView MakeRetainedView() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_names() const { return weight_space_.kind == FeatureSpace::Kind::kNamed; }
  // Whether its learner gives predictions a probability.
  bool has_probabilities() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of numbers that features have in a named space. O(numbers).
  std::vector<std::string> FeatureNames(std::span<const uint32_t> numbers) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The numbers of names, all at one moment; 0 for those without a weight. And the number that the
  // next name would get.
  struct FeatureNumbers {
    std::vector<uint32_t> numbers;
    uint32_t next = 0;
  };
  FeatureNumbers FindFeatures(std::span<const absl::string_view> names) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The journal's part.
  storage::Snapshot MakeSnapshot() const ABSL_LOCKS_EXCLUDED(mutex_);
  struct JournalUse {
    // Bytes of records that a load would replay.
    uint64_t bytes = 0;
    // When the snapshot was taken; InfinitePast: there is none.
    absl::Time snapshot_time = absl::InfinitePast();
  };
  JournalUse journal_use() const ABSL_LOCKS_EXCLUDED(use_mutex_);
  void AddJournalBytes(uint64_t bytes) ABSL_LOCKS_EXCLUDED(use_mutex_);
  // A snapshot was saved when the journal had `covered` bytes.
  void SnapshotSaved(uint64_t covered, absl::Time time) ABSL_LOCKS_EXCLUDED(use_mutex_);

 private:
  Model(const storage::ModelHeader& header, ModelSettings settings,
        std::shared_ptr<const Expansion> expansion, const Limits& limits,
        ComponentSource components, const CommittedState& standing);

  // One message being learned: see learn.cc.
  class Learning;

  // Of the batch that the learner sees: a composition's is its components' answers.
  absl::Status PredictOwn(const Batch& batch, std::span<const RowError> row_errors,
                          uint64_t min_revision, PredictOutcome& outcome, bool all_scores) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ExplainOwn(const Batch& batch, std::span<const RowError> row_errors,
                          uint64_t min_revision, size_t max_features, ExplainOutcome& outcome) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it may answer: not closed, and at least at that revision.
  absl::Status CheckAnswers(uint64_t min_revision) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // FAILED_PRECONDITION (NOT_LINEAR): its score is no one sum, over features or past mistakes.
  absl::Status CheckExplains() const;
  Explanation ExplainRow(Mapper& mapper, size_t i, uint64_t age, size_t max_features) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status Rebuild(Journal& journal, const storage::Counters& committed)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RestoreSnapshot(const storage::Snapshot& snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReplayRecord(const storage::UpdateRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReplayBatchEnd(const Row& row, int32_t label) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReplayHistory(const storage::UpdateRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReplayUpdate(const storage::UpdateRecord& record, const Batch& batch, size_t i)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ReplayWeightReplacement(const storage::UpdateRecord& record, const Batch& batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RestoreRetained(const storage::Retained& retained)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RetainReplayed(const RetainedUpdate& update) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Contradiction(absl::string_view what) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The weights' numbers in the dictionary, which takes in those of their names that it has not:
  // `added`. RESOURCE_EXHAUSTED, and nothing changed.
  absl::StatusOr<std::vector<uint32_t>> NumberWeights(const NewWeights& weights,
                                                      std::vector<absl::string_view>& added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `components`: of a composition, what they answer from.
  TheoremContext MakeTheoremContext(std::optional<StateFingerprint> components) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Of the components, to be asked for before any lock of this model is taken.
  std::optional<StateFingerprint> FingerprintComponents(bool load) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Of the weights alone.
  StateFingerprint OwnFingerprint() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // What the learner's answers go by besides the weights: see Learner::Answer.
  uint64_t Age() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  WeightList ListWeights(const Hypothesis& hypothesis) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Of a class, or of a model of two labels, whose number is 0. See FindHeaviest.
  WeightList TopWeightsOf(size_t number, size_t limit, uint64_t& last_revision) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What the answer makes of it.
  double WeightOf(size_t number, uint32_t index, uint64_t age) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  double OffsetOf(size_t number, uint64_t age) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // How many scores a row may ask for; 0: of two labels.
  size_t classes() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Whether a row's label and the names of new classes are the model's.
  bool TakesLabel(int32_t label) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool TakeClassNames(const google::protobuf::RepeatedPtrField<std::string>& names)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether names without a weight score nothing, as they must.
  bool UnknownNamesWeighNothing() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const uint64_t id_;
  const std::string name_;
  const std::string uid_;
  const ModelSettings settings_;
  // Where Phi takes examples: what weights are addressed by. And Phi; null: the identity.
  const FeatureSpace weight_space_;
  const std::shared_ptr<const Expansion> expansion_;
  const Limits limits_;
  const ComponentSource components_;
  // The convergence theorem speaks of it, as long as every example counts alike.
  const bool theorem_;

  // Held, shared, while a message is learned: a model is frozen between messages, never within one.
  Mutex gate_ ABSL_ACQUIRED_BEFORE(mutex_);
  bool frozen_ ABSL_GUARDED_BY(gate_) = false;
  // Model.update_time of the settings that it has.
  absl::Time settings_time_ ABSL_GUARDED_BY(gate_);

  // mutable: const methods share it.
  mutable Mutex mutex_;
  std::unique_ptr<Learner> learner_ ABSL_GUARDED_BY(mutex_);
  Dictionary dictionary_ ABSL_GUARDED_BY(mutex_);
  // Of named classes: class k is the name of number k + 1.
  Dictionary class_names_ ABSL_GUARDED_BY(mutex_);
  uint64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
  double margin_of_interest_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);

  mutable Ledger ledger_;

  mutable Mutex use_mutex_;
  JournalUse use_ ABSL_GUARDED_BY(use_mutex_);
};

}  // namespace perceptrond
