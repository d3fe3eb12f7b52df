// Updates that the journal has not been given yet, as the records it will get.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/convergence/curve_points.h"
#include "core/journal/journal.h"
#include "core/learner/learner.h"
#include "core/model/segment.h"

namespace perceptrond {

// Thread contract: not thread-safe; the ledger guards it.
class PendingRecords {
 public:
  // Adds an update. Revisions ascend by one from call to call.
  void Add(const UpdateRow& update);
  // Adds an update without a row that replaced all weights by `vectors`.
  void AddWeightReplacement(const UpdateRow& update, std::span<const ReplacementVector> vectors);
  // Adds a point of the learning curve, at the update added last.
  void AddCurvePoint(const LearningCurvePoint& point);

  // All records, in order; none remains.
  std::vector<storage::UpdateRecord> Take();

  // Approximate. O(1).
  size_t memory_bytes() const { return bytes_; }

 private:
  // The record that the next row of this width belongs to; 0: sparse.
  storage::UpdateRecord& Open(const UpdateRow& update, uint32_t dense_width);

  std::vector<storage::UpdateRecord> records_;
  size_t bytes_ = 0;
};

}  // namespace perceptrond
