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
#include "core/convergence/progress.h"
#include "core/journal/journal.h"
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
  // The stream that speaks for it: an older one is superseded.
  uint64_t owner = 0;
};

// Where a producer stands, read at one moment.
struct ProducerStanding {
  int64_t next_offset = 0;
  int64_t passes = 0;
  std::optional<PassSummary> last_pass;
};

// Thread contract: safe for any number of threads. Lock order: Producer::turn, the model's lock,
// the ledger's.
class Ledger {
 public:
  static constexpr size_t kMaxProducers = 10'000;

  // Goes on from what the journal holds.
  explicit Ledger(const JournalStanding& standing);

  // The producer of that name, made on first use, now spoken for by `owner`; 0 leaves the speaker
  // as it is. RESOURCE_EXHAUSTED, reason PRODUCER_LIMIT.
  absl::StatusOr<std::shared_ptr<Producer>> FindProducer(absl::string_view id, uint64_t owner)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether `owner` may go on speaking for the producer. It may if no newer stream has claimed it.
  bool Speaks(Producer& producer, uint64_t owner) ABSL_LOCKS_EXCLUDED(mutex_);
  ProducerStanding Standing(const Producer& producer) ABSL_LOCKS_EXCLUDED(mutex_);
  // Raises the producer's position to `next_offset`: what lies between was answered before, and
  // correctly.
  void Resume(Producer& producer, int64_t next_offset) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes in a stretch without an update, `rows` of the producer's, judged on `revision`.
  void Add(const Tally& tally, Producer& producer, int64_t rows, uint64_t revision)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What an update was made from and came to.
  struct Update {
    // What it produced.
    uint64_t revision = 0;
    // As mapped into the model's space.
    Row row;
    int32_t label = 0;
    // Names that got weights for it.
    std::span<const absl::string_view> new_names;
    // Of the weights after it, augmented.
    double squared_norm = 0;
  };
  // Takes in a stretch that ends with an update.
  void AddUpdate(const Tally& tally, Producer& producer, int64_t rows, const Update& update)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the producer's pass `number` and returns it. A number ended before gives its summary again
  // if it was the last, else one with nothing but its number.
  PassSummary EndPass(Producer& producer, int64_t number, uint64_t revision, double norm)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What has come since the last cut, for the journal: the updates are taken, counters and
  // positions copied.
  JournalEntry Cut() ABSL_LOCKS_EXCLUDED(mutex_);

  Report MakeReport(double squared_norm, const TheoremContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  // Changes whenever the report may have.
  uint64_t version() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Move(const Tally& tally, Producer& producer, int64_t rows, uint64_t revision)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The record that the next update goes to.
  storage::UpdateRecord& OpenRecord(const Update& update) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  Progress progress_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, std::shared_ptr<Producer>> producers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Producer>> dirty_ ABSL_GUARDED_BY(mutex_);
  std::vector<storage::UpdateRecord> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
