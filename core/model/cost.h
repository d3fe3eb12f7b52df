// What a batch costs, found out before it is worked on, so that no message holds a thread for long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/features/expansion.h"
#include "core/learner/learner.h"
#include "core/settings/settings.h"
#include "core/vector/check.h"
#include "core/vector/row.h"

namespace perceptrond {

struct ModelCore;

// Multiply-adds that mapping and scoring the batch take, or as much time, estimated from above; a
// core of a current machine does about 10^9 a second. `expansion` may be null: the identity. The
// columns must be well formed (CheckColumns). Saturates. O(rows); O(1) where Phi is the identity.
uint64_t EstimateCost(const Expansion* expansion, const ModelSettings& settings,
                      const Learner& learner, size_t max_features, const Batch& batch);
// Estimates from above what learning the batch takes besides: a kernel compares each row with the mistakes before it,
// of which `before` or more may be rows of the same message.
uint64_t EstimateLearningCost(const ModelSettings& settings, const Learner& learner,
                              const Batch& batch, uint64_t before = 0);

// A batch that costs more holds the model's lock for so long that others should not wait for it:
// some 20 ms.
inline constexpr uint64_t kLargeCost = 20'000'000;
// The rows of a batch that is not read yet.
struct BatchShape {
  // Where each sparse row ends.
  std::span<const uint32_t> row_ends;
  // > 0: dense rows of this width instead.
  uint64_t dense_width = 0;
  uint64_t dense_rows = 0;
};
// About EstimateCost or more, without a lock: by the settings instead of what the model has
// learned. Of a composition only what it does itself. Ends once it is above kLargeCost. O(rows);
// O(1) for one weight vector without a feature map.
uint64_t CostBound(const ModelCore& core, const BatchShape& shape);

// Bytes that updates, which take `bytes` as they wait for the journal, take until they are written:
// with their copies in the journal and, where the model stores them, in its stored examples.
size_t UncommittedBytes(const ModelCore& core, size_t bytes);
// The same for all rows of the batch, as if each were an update and new to the sample. O(rows); O(1)
// where Phi is the identity.
uint64_t UncommittedBound(const ModelCore& core, const Batch& batch);

// Marks the model as working on a batch of this cost for as long as it exists, if that is large.
class LargeWork {
 public:
  LargeWork(const ModelCore& core, uint64_t cost);
  ~LargeWork();
  LargeWork(const LargeWork&) = delete;
  LargeWork& operator=(const LargeWork&) = delete;

 private:
  // Null: it is not large.
  std::atomic<int>* const counter_;
};

// Returns what these rows cost if `before` others of the message come before them.
using RowsCost = absl::FunctionRef<uint64_t(const Batch& rows, uint64_t before)>;
// Returns what the batch costs without the rows in `errors`, which ascend. A row that alone costs more than `most` is added
// to them. RESOURCE_EXHAUSTED (MESSAGE_TOO_COSTLY) if the others cost more together. O(rows) calls of `cost_of`, or one if
// the whole batch costs less.
absl::StatusOr<uint64_t> CheckCost(const Batch& batch, uint64_t most, RowsCost cost_of,
                                   std::vector<RowError>& errors);
// RESOURCE_EXHAUSTED (MESSAGE_TOO_COSTLY) for a batch that costs more than `most`.
absl::Status CheckCost(uint64_t cost, uint64_t most);

}  // namespace perceptrond
