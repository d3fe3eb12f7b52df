// Passes over a data set: a producer marks their ends, and a pass without an update is convergence.
#pragma once

#include <cstdint>

#include "core/convergence/tally.h"
#include "perceptron/storage/v1/journal.pb.h"
#include "perceptron/v1/report.pb.h"

namespace perceptrond {

using ::perceptron::v1::PassSummary;

// A pass in progress, kept in the form in which the journal stores it. Not thread-safe.
class PassProgress {
 public:
  using Stored = ::perceptron::storage::v1::PassProgress;

  PassProgress() = default;
  explicit PassProgress(const Stored& stored) : stored_(stored) {}

  // Adds a stretch of examples that was evaluated on `revision`.
  void Add(const Tally& tally, uint64_t revision);
  // The pass cannot converge any more.
  void SetChanged() { stored_.set_changed(true); }
  // Ends the pass when the model is at `revision` with an augmented norm of `norm`.
  PassSummary End(int64_t number, uint64_t revision, double norm) const;

  const Stored& stored() const { return stored_; }
  // Whether nothing was added yet.
  bool IsEmpty() const {
    const PassSummary& summary = stored_.summary();
    return summary.examples() == 0 && summary.row_errors() == 0 && !stored_.changed();
  }

 private:
  Stored stored_;
};

}  // namespace perceptrond
