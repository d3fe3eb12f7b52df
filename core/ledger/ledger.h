// A model's ledger: counters, producers' positions, and the updates that the journal has not been
// given yet. They move together: at every moment counters and positions count exactly the same
// examples, and the pending updates are exactly those that the journal lacks. This consistent cut
// is what makes recovery exact.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/convergence/curve_points.h"
#include "core/convergence/progress.h"
#include "core/journal/journal.h"
#include "core/ledger/producers.h"
#include "core/ledger/segment.h"
#include "core/ledger/stored_examples.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// A model's learning curve and its report, of one moment.
struct LearningCurve {
  // By ascending revision. The last point is the current state, as in the report. If examples were
  // evaluated since the last update, it follows that update's own point and has the same revision.
  std::vector<LearningCurvePoint> points;
  ConvergenceReport report;
};

// What a model's state adds to its report.
struct ReportContext {
  // The squared norm of the augmented weights.
  double squared_norm = 0;
  // The model's margin of interest; 0 if it has none.
  double margin_of_interest = 0;
  // Of a composition: the fingerprint of its components now; absent: not known.
  std::optional<uint64_t> components;
};

class Ledger;

// Marks the ledger as torn if an exception leaves the scope of this: std::bad_alloc is the only one
// there is. Make it after the lock of what is changed, so that no other thread sees the change before the mark.
class TornByException {
 public:
  explicit TornByException(Ledger& ledger) : ledger_(ledger) {}
  ~TornByException();
  TornByException(const TornByException&) = delete;
  TornByException& operator=(const TornByException&) = delete;

 private:
  Ledger& ledger_;
  const int exceptions_ = std::uncaught_exceptions();
};

// Thread contract: safe for any number of threads. Lock order: Producer::turn, the model's state,
// this, StoredExamples.
class Ledger {
 public:
  // Continues from the committed state. `theorem` holds what is fixed for the model's life
  // (applies, step_size, separate_prediction_weights, composed). It has at most `max_producers` named
  // producers, and no new one if the committed state has as many or more.
  Ledger(const CommittedState& committed, const StoredExamplesSettings& stored_examples,
         const TheoremContext& theorem, size_t max_producers);

  // See ProducerTable::Find.
  absl::StatusOr<std::shared_ptr<Producer>> FindProducer(absl::string_view id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Raises the producer's position to `next_offset`, if it is lower, and counts nothing: the examples
  // between are said to have been acknowledged before a power failure took their count. The caller
  // holds its turn.
  void Resume(Producer& producer, int64_t next_offset) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds a segment of the producer: counters, position, sample and pending updates move together.
  // The caller holds the producer's turn, and the lock of the state that the latest row was
  // evaluated on (exclusively, if there are updates). `names` is the dictionary of that state. Rows
  // evaluated before an update that was added earlier extend no streak. Returns the position after
  // the segment, and the pass that it ended: a pass that had ended before is returned again
  // if it was the producer's last, else with nothing but its number.
  struct Applied {
    int64_t next_offset = 0;
    std::optional<PassSummary> pass;
    // What the segment's updates take while they wait for the journal.
    size_t pending_bytes = 0;
  };
  // Calls `on_locked` once this is locked. It may release the state's lock if the segment has no
  // sample: this lock alone then keeps segments in order. A thread that locks the state and then
  // this finds both at one revision. What does not lock this, as stored_examples(), may lack the
  // segment.
  Applied Apply(
      Producer& producer, const Segment& segment, const Dictionary& names,
      absl::FunctionRef<void()> on_locked = [] {}) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds an update without a row that replaced all weights by `vectors`. The caller holds the
  // state's lock exclusively.
  void AddWeightReplacement(const UpdateRow& update, std::span<const ReplacementVector> vectors)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void AddAnalysis(const ::perceptron::v1::Analysis& analysis) ABSL_LOCKS_EXCLUDED(mutex_);

  // The writer of this epoch, above those before, is about to update the model, which is at this revision.
  void BeginEpoch(EpochBegin begin) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the model, at revision `current`, has all updates of the state that a server answered with this
  // revision in this epoch. Updates that later epochs made do not count. For an epoch that did not update the model here,
  // the state must be the one that the next epoch found. For one above the model's last epoch, which is not in its log,
  // updates of the last one do not count.
  bool HasState(int64_t epoch, uint64_t revision, uint64_t current) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns what the entry with this first new revision writes: the last epoch, if that is its first update.
  std::vector<EpochBegin> EpochsBegunBy(uint64_t first_revision) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes over counters and positions that another server committed. The caller holds the state's
  // lock exclusively, and nothing learns here. The drift's window begins anew.
  void Follow(const storage::Counters& counters,
              std::span<const storage::ProducerPosition> positions) ABSL_LOCKS_EXCLUDED(mutex_);

  // Everything since the last TakePending, for the journal.
  struct Pending {
    // The pending updates, with counters and positions of the same moment. Without model_id.
    JournalEntry entry;
    // The model may take more memory than at the last call: by updates, new producers, or its sample.
    bool has_grown = false;
    // For OnCommitted.
    uint64_t changes = 0;
  };
  Pending TakePending() ABSL_LOCKS_EXCLUDED(mutex_);
  // The journal has what a TakePending returned with this Pending::changes, and what those before did.
  void OnCommitted(uint64_t changes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether there is more to be written than counts and positions of correct rows: updates, the end of
  // a pass, an analysis, learned predictions.
  bool must_be_written() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether anything has changed since the last TakePending.
  bool has_moved() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether such a thing is not known to be in the journal.
  bool has_uncommitted() ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether an allocation failed while an update was applied, to the state or here: what is in
  // memory is then no consistent cut, must not be written, and must be loaded again. Takes no lock.
  bool torn() const { return torn_.load(std::memory_order_acquire); }

  // Examples evaluated by the run that made the weights: all but those that a rollback undid. Takes no
  // lock.
  uint64_t examples() const { return examples_.load(); }
  // Of this moment.
  storage::Counters counters() ABSL_LOCKS_EXCLUDED(mutex_);
  // Counters and positions of this moment, as a commit would leave them.
  CommittedState CopyState() ABSL_LOCKS_EXCLUDED(mutex_);
  // Producers, pending updates, windows: approximate. O(1).
  size_t memory_bytes() ABSL_LOCKS_EXCLUDED(mutex_);

  ConvergenceReport MakeReport(const ReportContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  LearningCurve MakeLearningCurve(const ReportContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  // The points of the learning curve, for a snapshot.
  CurvePoints curve_points() ABSL_LOCKS_EXCLUDED(mutex_);
  // Recovery: the snapshot's points, then those of each record.
  void RestoreCurvePoints(CurvePoints points) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReplayCurve(const LearningCurvePoint& point) ABSL_LOCKS_EXCLUDED(mutex_);

  // Safe by itself. What is added there and not through Apply is not counted.
  StoredExamples& stored_examples() { return stored_examples_; }
  const StoredExamples& stored_examples() const { return stored_examples_; }

 private:
  std::vector<EpochBegin> EpochsBegunByLocked(uint64_t first_revision) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  friend class TornByException;
  friend void AddFrequencyChange(const UpdateRow& update, const DocumentCounts& counts,
                                 Ledger& ledger);

  // The caller's call has an update.
  void NoteUpdate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { ++changes_; }
  void MarkTorn() { torn_.store(true, std::memory_order_release); }
  void PublishExamples() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    examples_.store(ExamplesOf(progress_.counters()));
  }
  static uint64_t ExamplesOf(const storage::Counters& counters) {
    return counters.report().examples() - counters.undone_examples();
  }
  // With what is known of the sample.
  storage::Counters StoredCounters() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTally(const Tally& tally, uint64_t revision, const ProducerTable::Mutable& producer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddUpdate(const UpdateRow& update, std::optional<uint64_t> components)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PassSummary EndPass(Producer& producer, const Segment& segment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TheoremContext MakeTheoremContext(const ReportContext& context) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TheoremContext theorem_;
  // Changed under mutex_, so that its claims hold for the examples that are counted.
  StoredExamples stored_examples_;

  Mutex mutex_;
  // Ascending; the last one is the writer's.
  std::vector<EpochBegin> epochs_ ABSL_GUARDED_BY(mutex_);
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  CurvePoints curve_points_ ABSL_GUARDED_BY(mutex_);
  ProducerTable producers_ ABSL_GUARDED_BY(mutex_);
  PendingRecords pending_ ABSL_GUARDED_BY(mutex_);
  // Those of progress_, for rules that count them at each update and prediction.
  std::atomic<uint64_t> examples_;
  std::atomic<bool> torn_ = false;
  bool has_moved_ ABSL_GUARDED_BY(mutex_) = false;
  // Counts what must_be_written() names; how much of it was taken, and was committed.
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_changes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t committed_changes_ ABSL_GUARDED_BY(mutex_) = 0;
  // JournalEntry::learned_predictions.
  std::vector<uint64_t> learned_predictions_ ABSL_GUARDED_BY(mutex_);
  // Of the producers at the last TakePending.
  size_t producer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Adds an update without a row that changed the features of all examples, by these document
// frequencies: what was proven of the data is dropped, and so are the stored examples. The caller holds
// the state's lock exclusively.
void AddFrequencyChange(const UpdateRow& update, const DocumentCounts& counts, Ledger& ledger);

}  // namespace perceptrond
