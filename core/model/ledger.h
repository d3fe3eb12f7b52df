// A model's books: counters, producers' positions, and the updates that wait to be journaled. They
// move together, so that at every moment they are a consistent cut: the counters and positions
// count exactly the same examples, and the waiting updates are exactly those that the journal has
// not been given. That is what makes recovery exact.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/convergence/history.h"
#include "core/convergence/progress.h"
#include "core/journal/journal.h"
#include "core/model/retention.h"
#include "core/sync/mutex.h"
#include "core/vector/row.h"

namespace perceptrond {

// One sender of examples. Named ones are kept in the ledger and journaled; a stream without a name
// has one of its own.
struct Producer {
  explicit Producer(std::string id) : id(std::move(id)) {}

  // Empty: unnamed, never journaled.
  const std::string id;
  // Held while a message of this producer is learned, so that a stream and its successor take
  // turns.
  Mutex turn;

  // Guarded by the ledger's lock.
  int64_t next_offset = 0;
  int64_t passes = 0;
  PassProgress pass;
  std::optional<PassSummary> last_pass;
  bool dirty = false;
};

// Where a producer stands, read at one moment.
struct ProducerPosition {
  int64_t next_offset = 0;
  int64_t passes = 0;
  std::optional<PassSummary> last_pass;
};

// A model's learning curve and its report, at one moment.
struct LearningCurve {
  // By ascending revisions. The last is the present state, which the report is too: where examples
  // were judged since the last update it is behind that one's own point, of the same revision.
  std::vector<HistoryPoint> points;
  ConvergenceReport report;
};

// Thread contract: safe for any number of threads. Lock order: Producer::turn, the model's lock,
// the ledger's.
class Ledger {
 public:
  static constexpr size_t kMaxProducers = 10'000;

  // Goes on from what the journal holds. What is retained comes by retention().
  explicit Ledger(const CommittedState& standing, const RetentionSettings& retention = {});

  // The producer of that name, made on first use. It has one of the model's places from its first
  // example or pass on, and before that only while somebody holds it: who is refused takes none.
  // RESOURCE_EXHAUSTED, reason PRODUCER_LIMIT.
  absl::StatusOr<std::shared_ptr<Producer>> FindProducer(absl::string_view id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  ProducerPosition Standing(const Producer& producer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Safe for any number of threads by itself; what is added there outside of these methods is not
  // counted.
  Retention& retention() { return retention_; }
  const Retention& retention() const { return retention_; }
  // Examples judged.
  uint64_t examples() ABSL_LOCKS_EXCLUDED(mutex_);
  // The revision of the latest adoption, 0 if there was none; absent: it is not known.
  std::optional<uint64_t> adopted_revision() ABSL_LOCKS_EXCLUDED(mutex_);
  // Of a composition: see storage.Counters.components.
  std::optional<uint64_t> components() ABSL_LOCKS_EXCLUDED(mutex_);
  // Producers, updates that wait, the window: approximately. O(1).
  size_t memory_bytes() ABSL_LOCKS_EXCLUDED(mutex_);
  // Raises the producer's position to `next_offset`: what lies between was answered before, and
  // correctly.
  void Resume(Producer& producer, int64_t next_offset) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of a stretch's examples those for the sample, and the dictionary of the state they were judged
  // on. With retention().samples() every stretch must bring its own.
  struct Offers {
    std::span<const Retention::Sampled> candidates;
    const Dictionary& names;
  };
  // Takes in a stretch without an update, `rows` of the producer's, judged on `revision`.
  void Add(const Tally& tally, Producer& producer, int64_t rows, uint64_t revision,
           const Offers& offers) ABSL_LOCKS_EXCLUDED(mutex_);
  // What an update was made from and came to.
  struct Update {
    // What it produced.
    uint64_t revision = 0;
    // As mapped into the model's space; no features if no example caused it.
    Row row{kNoIndices, nullptr, 0};
    // 0 if no example caused it.
    int32_t label = 0;
    // The example's own; the class' comes on top.
    float weight = 1;
    // Examples judged before it; absent: the learner does not count them.
    std::optional<uint64_t> age;
    // Names that got weights for it.
    std::span<const absl::string_view> new_names;
    // Of the weights after it, augmented.
    double squared_norm = 0;
    // The name of the class that came up with it; empty: none, or one without a name.
    absl::string_view new_class = {};
    // No example caused it, but the end of a batch.
    bool batch_end = false;
    // What the curves need to know of the model; its margin of interest is not looked at.
    TheoremContext theorem;
    // The row to be retained, null: none is; and its score before.
    RetainedRowPtr retained;
    float score = 0;
  };
  // Takes in a stretch that ends with an update.
  void AddUpdate(const Tally& tally, Producer& producer, int64_t rows, const Update& update,
                 const Offers& offers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes in weights that replaced those learned: update.row holds them.
  void AddWeightReplacement(const Update& update, float offset_weight) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddAnalysis(const ::perceptron::v1::Analysis& analysis) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the producer's pass `number` and returns it. A number ended before gives its summary again
  // if it was the last, else one with nothing but its number.
  PassSummary EndPass(Producer& producer, int64_t number, uint64_t revision, double norm)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What has come since the last cut, for the journal: the updates are taken, counters and
  // positions copied.
  JournalEntry TakePending() ABSL_LOCKS_EXCLUDED(mutex_);

  // The context's sample is filled in.
  ConvergenceReport MakeReport(double squared_norm, TheoremContext context)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The curves: what is held, for a snapshot, and what is read, which ends with the present state,
  // and whose report is as above.
  History history() ABSL_LOCKS_EXCLUDED(mutex_);
  LearningCurve MakeLearningCurve(double squared_norm, TheoremContext context)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // For a model that is being rebuilt: what its snapshot held, and what its records hold behind
  // that.
  void RestoreHistory(History history) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReplayHistory(const HistoryPoint& point) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Move(const Tally& tally, Producer& producer, int64_t rows, uint64_t revision)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddSample(TheoremContext& context) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks a named producer for the next cut.
  void Touch(Producer& producer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(std::shared_ptr<Producer> producer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The record that the next update goes to.
  storage::UpdateRecord& OpenRecord(const Update& update) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Moves with the counters: changed under mutex_, so that what it says of all examples is true of
  // those that are counted.
  Retention retention_;

  Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  History history_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::shared_ptr<Producer>> producers_ ABSL_GUARDED_BY(mutex_);
  size_t producers_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Asked for, but without an example or pass yet.
  absl::flat_hash_map<std::string, std::weak_ptr<Producer>> newcomers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Producer>> dirty_ ABSL_GUARDED_BY(mutex_);
  std::vector<storage::UpdateRecord> records_ ABSL_GUARDED_BY(mutex_);
  size_t records_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
