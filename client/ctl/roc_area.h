// The area under the ROC curve (AUC): the probability that a positive example has a greater score
// than a negative one, equal scores counting half (Mann and Whitney 1947; Fawcett 2006).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace perceptrond::client {

// Threads: one at a time.
class RocArea {
 public:
  // Scores held; 4 bytes each. With more examples they are counted in 2^20 intervals, each about
  // 0.05 % of its scores wide, in 16 MiB.
  static constexpr size_t kMostExact = size_t{1} << 22;

  explicit RocArea(size_t most_exact = kMostExact) : most_exact_(most_exact) {}

  // Adds an example. NaN is left out.
  void Add(bool positive, float score);
  void Merge(const RocArea& other);

  struct Area {
    double value = 0;
    // What the value may be off by: 0 if all scores are held, else half of the pairs that are in
    // one interval.
    double most_error = 0;
  };
  // Absent unless there are examples of both labels. O(n log n) for n scores held.
  std::optional<Area> value() const;

 private:
  struct Counts {
    uint64_t positive = 0;
    uint64_t negative = 0;
  };
  void Count(bool positive, uint32_t key);
  // Counts the scores held, and holds none from then on.
  void CountAll();
  Area ExactArea() const;
  Area CountedArea() const;

  size_t most_exact_;
  // The scores as integers of the same order.
  std::vector<uint32_t> positives_;
  std::vector<uint32_t> negatives_;
  // By interval; empty while all scores are held.
  std::vector<Counts> counts_;
};

}  // namespace perceptrond::client
