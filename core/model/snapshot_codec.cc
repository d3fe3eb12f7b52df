#include "core/model/snapshot_codec.h"

#include <algorithm>
#include <bit>

#include "core/features/feature_space.h"

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;

// The widest space, and the weight that unknown names share.
constexpr uint64_t kMaxArray = uint64_t{FeatureSpace::kMaxFeatures} + 1;

// By its bits: -0 is kept too.
bool IsZero(float value) { return std::bit_cast<uint32_t>(value) == 0; }

void WriteArray(std::span<const float> array, storage::StateArray& stored) {
  stored.set_size(array.size());
  const size_t non_zero = array.size() - std::count_if(array.begin(), array.end(), IsZero);
  if (2 * non_zero >= array.size()) {
    stored.mutable_values()->Add(array.begin(), array.end());
    return;
  }
  stored.mutable_indices()->Reserve(static_cast<int>(non_zero));
  stored.mutable_values()->Reserve(static_cast<int>(non_zero));
  for (size_t i = 0; i < array.size(); ++i) {
    if (IsZero(array[i])) continue;
    stored.add_indices(static_cast<uint32_t>(i));
    stored.add_values(array[i]);
  }
}

}  // namespace

storage::Snapshot WriteState(const LearnerStateView& state) {
  storage::Snapshot snapshot;
  for (const std::span<const float> array : state.arrays) WriteArray(array, *snapshot.add_arrays());
  for (const double scalar : state.scalars) snapshot.add_scalars(scalar);
  return snapshot;
}

absl::StatusOr<LearnerState> ReadState(const storage::Snapshot& snapshot) {
  LearnerState state;
  for (const storage::StateArray& stored : snapshot.arrays()) {
    if (stored.size() > kMaxArray) return absl::DataLossError("a snapshot's array is too large");
    std::vector<float>& array = state.arrays.emplace_back();
    if (stored.indices().empty() && static_cast<uint64_t>(stored.values_size()) == stored.size()) {
      array.assign(stored.values().begin(), stored.values().end());
      continue;
    }
    if (stored.indices_size() != stored.values_size())
      return absl::DataLossError("a snapshot's array contradicts itself");
    array.resize(stored.size());
    for (int i = 0; i < stored.indices_size(); ++i) {
      if (stored.indices(i) >= array.size())
        return absl::DataLossError("a snapshot's array exceeds its size");
      array[stored.indices(i)] = stored.values(i);
    }
  }
  state.scalars.assign(snapshot.scalars().begin(), snapshot.scalars().end());
  return state;
}

}  // namespace perceptrond
