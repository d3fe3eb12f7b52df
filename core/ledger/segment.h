// A segment: consecutive rows of one producer and their effect on the model; and the journal's
// records of its updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/convergence/curve_points.h"
#include "core/convergence/tally.h"
#include "core/features/document_frequencies.h"
#include "core/journal/journal.h"
#include "core/learner/learner.h"
#include "core/ledger/stored_examples.h"

namespace perceptrond {

// Rows of a segment that left the weights as they were: correct rows, replayed rows and rows with
// errors. They need no more than a tally.
struct UnchangedRows {
  // The revision that they were evaluated on.
  uint64_t revision = 0;
  Tally tally;
};

// An update, with everything that replay needs to repeat it.
struct UpdateRow {
  // The revision that it produced.
  uint64_t revision = 0;
  // Counts the row, and rows just before it that changed nothing and were evaluated on the same
  // revision. Of a batch's end: no example.
  Tally tally;
  // The example in the space of the weights, with its label. Null: the update is the end of a
  // batch, which no single example caused.
  StoredRowPtr row;
  // The example's own weight, without that of its class.
  float weight = 1;
  // The score before the update.
  float score = 0;
  // Examples evaluated before it; absent for learners that do not count them
  // (CatalogueEntry::counts_examples).
  std::optional<uint64_t> age;
  // Evaluation::rival. Not journaled: replay finds it again, as it does the score.
  int32_t rival = -1;
  // Feature names that this update gave their first weight, in the order of their indices.
  std::vector<std::string> new_names;
  // The class that this row introduced by its name; empty: none.
  std::string new_class;
  // The squared norm of the augmented weights after the update. Replay must reach it to the bit.
  double squared_norm = 0;
};

// A row of a message that names a prediction which the journal keeps (KeptPrediction::number).
struct PredictionOfRow {
  size_t row = 0;
  uint64_t number = 0;
};

// What a session hands to the ledger (Ledger::Apply): the rows since its last segment, before it
// releases the lock of the state that it evaluated the latest of them on. It owns what it holds, so
// that it can be sent to another machine; what it refers to are the indices of features, which are
// those of the model's dictionary at the segment's last revision.
//
// Contract: first_offset is the producer's position; the rows of `unchanged` and `updates` are
// together rows first_offset to first_offset + rows - 1; both lists ascend by revision. Rows
// evaluated on a revision come before the update that replaced it.
struct Segment {
  // Producer::id; empty for a stream without a name.
  std::string producer;
  int64_t first_offset = 0;
  int64_t rows = 0;
  std::vector<UnchangedRows> unchanged;
  std::vector<UpdateRow> updates;
  // Of a composition: the fingerprint of the components whose outputs these rows are.
  std::optional<uint64_t> components;
  // Candidates for the sample of examples, by hash.
  std::vector<SampledRow> sample;
  // KeptPrediction::number of the kept predictions that these rows name.
  std::vector<uint64_t> predictions;
  // > 0: the producer's pass of this number ends after the segment, at `revision`, with weights of
  // the augmented norm `weight_norm`; 0 for a norm whose rounding is not bounded, which gives the
  // pass no margin.
  int64_t completed_pass = 0;
  uint64_t revision = 0;
  double weight_norm = 0;
};

// As the journal keeps them.
storage::DocumentFrequencies ToStorage(const DocumentCounts& counts);
// DATA_LOSS if they are inconsistent, or have a slot at or above `slots`.
absl::StatusOr<DocumentCounts> FromStorage(const storage::DocumentFrequencies& stored,
                                           uint32_t slots);

// Updates that the journal has not been given yet, as the records it will get.
//
// Thread contract: not thread-safe; the ledger guards it.
class PendingRecords {
 public:
  // How often an update is in memory while it is written: as a record, and in RocksDB's batch and
  // table.
  static constexpr size_t kCopies = 3;

  // Adds an update. Revisions ascend by one from call to call.
  void Add(const UpdateRow& update);
  // Adds an update without a row that replaced all weights by `vectors`.
  void AddWeightReplacement(const UpdateRow& update, std::span<const ReplacementVector> vectors);
  // Adds an update without a row that put document frequencies into force.
  void AddFrequencyChange(const UpdateRow& update, const DocumentCounts& counts);
  // Adds a point of the learning curve, at the update added last.
  void AddCurvePoint(const LearningCurvePoint& point);

  // All records, in order; none remains.
  std::vector<storage::UpdateRecord> Take();

  bool empty() const { return records_.empty(); }
  // Approximate. O(1).
  size_t memory_bytes() const { return bytes_; }

 private:
  // The record that the next row of this width belongs to; 0: sparse.
  storage::UpdateRecord& Open(const UpdateRow& update, uint32_t dense_width);

  std::vector<storage::UpdateRecord> records_;
  size_t bytes_ = 0;
};

}  // namespace perceptrond
