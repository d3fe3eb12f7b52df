// A model's learning curve: points at revisions spread evenly over its life, in bounded memory.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "perceptron/storage/v1/journal.pb.h"
#include "perceptron/v1/report.pb.h"

namespace perceptrond {

using ::perceptron::v1::LearningCurvePoint;

// The point of the learning curve that a report is: each figure that both have, as far as it is
// valid. The error over the window is left out while that is too short to mean much. O(figures).
LearningCurvePoint MakePoint(const ::perceptron::v1::ConvergenceReport& report, absl::Time time);

// Whether each figure is finite and not negative, and the counts fit together.
bool IsSound(const LearningCurvePoint& point);

// Holds a point at each multiple of its spacing, from the first that was added. The spacing is a
// power of two, 1 at first: when more than kMaxPoints are held, every second one is dropped and the
// spacing doubles. Which revisions are held depends on how many there were, and on nothing else:
// not on messages, commits or restarts.
//
// A plain value; not thread-safe: core/ledger/ledger.h guards it.
class CurvePoints {
 public:
  // Enough for a picture of any size; at most about 75 KiB a model.
  static constexpr size_t kMaxPoints = 512;

  CurvePoints() = default;
  // Continues from stored points. Absent if they cannot be a curve's: the spacing is not a power of
  // two, revisions do not ascend or are no multiples of it, there are more points than kMaxPoints,
  // or figures are not finite or below 0.
  static std::optional<CurvePoints> From(const ::perceptron::storage::v1::LearningCurve& stored);
  ::perceptron::storage::v1::LearningCurve ToStorage() const;

  // Whether a point at this revision would be held, so that others need not be made. O(1).
  bool Wants(uint64_t revision) const;
  // Adds a point, if it is sound and wanted. False, and nothing changed, if not. O(1) amortized.
  bool Add(LearningCurvePoint point);

  uint64_t spacing() const { return spacing_; }
  // By ascending revisions.
  const std::vector<LearningCurvePoint>& points() const { return points_; }
  size_t memory_bytes() const {
    return points_.capacity() * sizeof(LearningCurvePoint) +
           points_.size() * sizeof(google::protobuf::Timestamp);
  }

 private:
  uint64_t spacing_ = 1;
  std::vector<LearningCurvePoint> points_;
};

}  // namespace perceptrond
