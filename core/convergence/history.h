// A model's curves: how it stood at revisions spread evenly over its life, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace perceptrond {

// How a model stood right after the update that made `revision`. See perceptron.v1.HistoryPoint.
struct HistoryPoint {
  uint64_t revision = 0;
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  // ||theta||, augmented.
  double weight_norm = 0;
  // Absent is not known, or not applicable.
  std::optional<double> margin_ceiling;
  std::optional<double> margin_floor;
  std::optional<double> window_error;
  // When that was, in microseconds since 1970.
  int64_t unix_micros = 0;
};

// Holds a point at each multiple of its spacing, from the first that was added. The spacing is a
// power of two, 1 at first: when more than kMaxPoints are held, every second one goes and it
// doubles. So which revisions are held depends on how many there were, and on nothing else: not on
// messages, commits or restarts.
//
// A plain value; not thread-safe: core/model/ledger.h guards it.
class History {
 public:
  // Enough for a picture of any size; at most kMaxPoints * sizeof(HistoryPoint) = 48 KiB a model.
  static constexpr size_t kMaxPoints = 512;

  History() = default;
  // Goes on from what was held. Nothing, if that is no history: spacing not a power of two,
  // revisions that do not ascend or are no multiples of it, more points than kMaxPoints, figures
  // that are not finite or below 0.
  static std::optional<History> From(uint64_t spacing, std::vector<HistoryPoint> points);

  // Whether a point at this revision would be held: what is not needs not be made. O(1).
  bool Wants(uint64_t revision) const;
  // Adds a point, if it is sound and wanted. False, and nothing changed, if not. O(1) amortized.
  bool Add(const HistoryPoint& point);

  uint64_t spacing() const { return spacing_; }
  // By ascending revisions.
  const std::vector<HistoryPoint>& points() const { return points_; }
  size_t memory_bytes() const { return points_.capacity() * sizeof(HistoryPoint); }

 private:
  uint64_t spacing_ = 1;
  std::vector<HistoryPoint> points_;
};

// Whether each figure is finite and not negative, and its counts fit together.
bool IsSound(const HistoryPoint& point);

}  // namespace perceptrond
