// The state of learners, written and read in one order: what State() appends, Restore() reads.
#pragma once

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "core/learner/row_store.h"
#include "core/vector/arithmetic.h"
#include "core/vector/float_array.h"
#include "core/vector/kernels.h"

namespace perceptrond {

// Everything that makes up a learner's state, in the learner's own fixed order.
struct LearnerState {
  std::vector<FloatArray> arrays;
  std::vector<double> scalars;
  RowStore rows;
};

// A learner's state without a copy. Valid until the learner changes.
struct LearnerStateView {
  std::vector<std::span<const float>> arrays;
  std::vector<double> scalars;
  // Null: the learner keeps no rows.
  const RowStore* rows = nullptr;
};

inline void Append(const FloatArray& array, LearnerStateView& state) {
  state.arrays.emplace_back(array);
}

inline void Append(double scalar, LearnerStateView& state) { state.scalars.push_back(scalar); }

inline void Append(const RowStore& rows, LearnerStateView& state) { state.rows = &rows; }

inline void Append(const CompensatedSum& sum, LearnerStateView& state) {
  Append(sum.sum, state);
  Append(sum.carry, state);
}

// Reads a state part by part. A part that is missing reads as empty or 0, and Done returns false.
// A plain value; not thread-safe.
class StateReader {
 public:
  explicit StateReader(LearnerState state)
      : state_(std::move(state)), sound_(AllFinite(state_.scalars)) {}

  FloatArray Array() {
    if (next_array_ == state_.arrays.size()) return Missing<FloatArray>();
    FloatArray array = std::move(state_.arrays[next_array_++]);
    sound_ &= AllFinite(array);
    // Every array has one entry per feature.
    if (next_array_ == 1) size_ = array.size();
    sound_ &= array.size() == size_;
    return array;
  }
  double Scalar() {
    if (next_scalar_ == state_.scalars.size()) return Missing<double>();
    return state_.scalars[next_scalar_++];
  }
  bool HasMoreScalars() const { return next_scalar_ < state_.scalars.size(); }
  // A whole number, at least 0.
  uint64_t Count() {
    const double count = Scalar();
    sound_ &= count >= 0 && count < 0x1p63 && count == std::floor(count);
    return sound_ ? static_cast<uint64_t>(count) : 0;
  }
  CompensatedSum Sum() {
    const double sum = Scalar();
    return {sum, Scalar()};
  }
  // At most `most` rows, with features below `features`.
  RowStore Rows(size_t most, size_t features) {
    RowStore rows = std::exchange(state_.rows, {});
    sound_ &= rows.size() <= most && rows.IsSound(features);
    return rows;
  }
  // Every part was there, none is left over, all numbers are finite and all arrays of one size.
  bool Done() const {
    return sound_ && next_array_ == state_.arrays.size() && next_scalar_ == state_.scalars.size() &&
           state_.rows.empty();
  }

 private:
  template <typename T>
  T Missing() {
    sound_ = false;
    return T();
  }

  LearnerState state_;
  bool sound_;
  size_t next_array_ = 0;
  size_t next_scalar_ = 0;
  size_t size_ = 0;
};

}  // namespace perceptrond
