#include "core/model/cost.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/features/name_table.h"
#include "core/learner/kernel_perceptron.h"
#include "core/learner/weighted_majority.h"
#include "core/model/model_core.h"

namespace perceptrond {
namespace {

// Far below where sums of a message's rows overflow.
constexpr uint64_t kMost = uint64_t{1} << 62;

uint64_t Add(uint64_t a, uint64_t b) {
  return std::min(kMost, std::min(a, kMost) + std::min(b, kMost));
}

uint64_t FeaturesOf(const Batch& batch) {
  return batch.dense_width > 0 ? batch.values.size() : batch.indices.size();
}

// The most different features that the batch may have.
uint64_t DistinctOf(const Batch& batch, const ModelSettings& settings) {
  const uint64_t all =
      batch.names != nullptr ? batch.names->end() - batch.names->begin() : settings.space.size;
  return std::min(all, FeaturesOf(batch));
}

// A row of a batch as a batch of its own. It has only what costs are estimated from.
class OneRow {
 public:
  OneRow(const Batch& batch, size_t i) : size_(static_cast<uint32_t>(batch.row(i).size)) {
    const size_t begin = batch.row_begin(i);
    if (!batch.values.empty()) batch_.values = batch.values.subspan(begin, size_);
    if (!batch.indices.empty()) batch_.indices = batch.indices.subspan(begin, size_);
    batch_.names = batch.names;
    batch_.dense_width = batch.dense_width;
    if (batch.dense_width == 0) batch_.row_ends = {&size_, 1};
  }
  OneRow(const OneRow&) = delete;
  OneRow& operator=(const OneRow&) = delete;

  const Batch& batch() const { return batch_; }

 private:
  const uint32_t size_;
  Batch batch_;
};

}  // namespace

uint64_t EstimateCost(const Expansion* expansion, const ModelSettings& settings,
                      const Learner& learner, size_t max_features, const Batch& batch) {
  const Predictor& predictor = learner.predictor();
  const size_t rows = batch.rows();
  if (rows == 0) return 0;
  if (expansion == nullptr) {
    // Linear in the features, but for what each row costs.
    const uint64_t row = predictor.ScoreCost(0);
    return Add(predictor.ScoreCost(FeaturesOf(batch)), row > kMost / rows ? kMost : rows * row);
  }
  uint64_t cost = expansion->CostOfDistinct(FeaturesOf(batch), DistinctOf(batch, settings));
  for (size_t i = 0; i < rows; ++i) {
    const MapCost row = expansion->CostOf(batch.row(i).size, max_features);
    cost = Add(cost, Add(row.work, predictor.ScoreCost(row.features)));
  }
  return cost;
}

uint64_t EstimateLearningCost(const ModelSettings& settings, const Learner& learner,
                              const Batch& batch, uint64_t before) {
  const size_t rows = batch.rows();
  if (learner.support_expansion() == nullptr || rows == 0) return 0;
  // On average half of the batch's own rows come before a row.
  before = std::min<uint64_t>(before + (rows + 1) / 2, settings.learner.budget);
  const uint64_t size = FeaturesOf(batch) / rows + 1;
  return std::min(kMost, rows * before * Kernel::Work(size, size, learner.size()));
}

uint64_t CostBound(const ModelCore& core, const BatchShape& shape) {
  const LearnerSettings& learner = core.settings.learner;
  const bool keeps_rows =
      learner.rule == RuleKind::kKernelPerceptron || learner.wrapper == WrapperKind::kVoted;
  const uint64_t members = learner.rule == RuleKind::kAuto ? WeightedMajority::kScores : 1;
  const uint64_t scores = members * std::max<uint64_t>(2, learner.classes.max);
  const bool dense = shape.dense_width > 0;
  const uint64_t rows = dense ? shape.dense_rows : shape.row_ends.size();
  if (rows == 0) return 0;
  const uint64_t features = dense ? rows * shape.dense_width : shape.row_ends.back();
  if (core.expansion == nullptr && !keeps_rows) return scores * (features + rows);
  uint64_t cost =
      core.expansion == nullptr ? 0 : core.expansion->CostOfDistinct(features, features);
  uint64_t begin = 0;
  for (uint64_t i = 0; i < rows && cost <= kLargeCost; ++i) {
    const uint64_t end = dense ? shape.dense_width : shape.row_ends[i];
    MapCost row{0, end - std::min(begin, end)};
    if (!dense) begin = end;
    if (core.expansion != nullptr)
      row = core.expansion->CostOf(row.features, core.limits.max_example_features);
    // As if the kept rows were as long as this one.
    const uint64_t kept = keeps_rows ? learner.budget * Kernel::Work(row.features, row.features,
                                                                     core.weight_space.size)
                                     : 0;
    cost = Add(cost, Add(row.work, Add(kept, scores * (row.features + 1))));
  }
  return cost;
}

size_t UncommittedBytes(const ModelCore& core, size_t bytes) {
  const bool stored = core.ledger.stored_examples().keeps_updates();
  return bytes * (PendingRecords::kCopies + (stored ? 1 : 0));
}

uint64_t UncommittedBound(const ModelCore& core, const Batch& batch) {
  uint64_t features = core.expansion == nullptr ? FeaturesOf(batch) : 0;
  for (size_t i = 0; core.expansion != nullptr && i < batch.rows(); ++i)
    features +=
        core.expansion->CostOf(batch.row(i).size, core.limits.max_example_features).features;
  const uint64_t bytes = features * (sizeof(uint32_t) + sizeof(float));
  return UncommittedBytes(core, bytes) + (core.ledger.stored_examples().samples() ? bytes : 0);
}

LargeWork::LargeWork(const ModelCore& core, uint64_t cost)
    : counter_(cost > kLargeCost ? &core.large_work : nullptr) {
  if (counter_ != nullptr) counter_->fetch_add(1, std::memory_order_relaxed);
}

LargeWork::~LargeWork() {
  if (counter_ != nullptr) counter_->fetch_sub(1, std::memory_order_relaxed);
}

absl::StatusOr<uint64_t> CheckCost(const Batch& batch, uint64_t most, RowsCost cost_of,
                                   std::vector<RowError>& errors) {
  const uint64_t cost = cost_of(batch, 0);
  if (cost <= most) return cost;
  std::vector<RowError> all;
  auto known = errors.begin();
  uint64_t rest = 0;
  uint64_t before = 0;
  for (size_t i = 0; i < batch.rows(); ++i) {
    if (known != errors.end() && known->row == i) {
      all.push_back(std::move(*known++));
      continue;
    }
    const OneRow row(batch, i);
    if (const uint64_t alone = cost_of(row.batch(), 0); alone > most) {
      all.push_back(
          {static_cast<uint32_t>(i),
           {ValidationCode::kTooCostly, batch.dense_width > 0 ? "values" : "indices",
            absl::StrCat("the row would take about ", alone, " multiply-adds, of at most ", most,
                         " (--max-message-cost): give it fewer features, or the "
                         "model a smaller feature map or budget")}});
      continue;
    }
    rest = Add(rest, cost_of(row.batch(), before++));
  }
  errors = std::move(all);
  if (absl::Status status = CheckCost(rest, most); !status.ok()) return status;
  return rest;
}

absl::Status CheckCost(uint64_t cost, uint64_t most) {
  if (cost <= most) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_COSTLY",
      absl::StrCat("the message would take about ", cost, " multiply-adds, of at most ", most,
                   " (--max-message-cost): send fewer rows at once, or choose a smaller feature "
                   "map or budget for the model"),
      {{"cost", absl::StrCat(cost)}, {"max_message_cost", absl::StrCat(most)}});
}

}  // namespace perceptrond
