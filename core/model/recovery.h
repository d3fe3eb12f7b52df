// Applies snapshots and records of the journal to a model's state, each checked against what it says of
// itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/learner/catalogue.h"
#include "core/ledger/stored_examples.h"
#include "core/model/model_core.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// True if the model has the weight vector of this number, so that a record may replace it: several classes
// have one for each class that exists.
bool HasVector(const ModelCore& core, const ModelState& state, size_t number);

// Errors of every method: DATA_LOSS, and the state is of no use; StoppedError likewise; UNAVAILABLE
// (NEWER_ARITHMETIC). Not thread-safe: the caller holds the state exclusively.
class Recovery {
 public:
  Recovery(ModelCore& core, ModelState& state)
      : core_(core),
        state_(state),
        counts_examples_(FindLearner(core.settings.learner).counts_examples) {}

  // Called after each update that a row makes.
  using OnUpdate = std::function<void(const Row& row, const Target& target)>;
  void Watch(OnUpdate on_update) { on_update_ = std::move(on_update); }

  absl::Status RestoreSnapshot(const storage::Snapshot& snapshot);
  // Applies the rows of a record that the state does not have. Without `whole` the record is the
  // beginning of one, and the norm that it ends with is not known.
  absl::Status Replay(const storage::UpdateRecord& record, bool whole = true);

 private:
  absl::Status RestoreLearner(const storage::Snapshot& snapshot);
  absl::Status RestoreNames(const storage::Snapshot& snapshot);
  absl::Status RestoreStoredExamples(const storage::StoredRows& stored);
  absl::Status AddNames(const storage::UpdateRecord& record);
  absl::Status ReplayRows(const storage::UpdateRecord& record, const Batch& batch);
  absl::Status ReplayUpdate(const storage::UpdateRecord& record, const Batch& batch, size_t i);
  absl::Status ReplayBatchEnd(const Row& row, int32_t label);
  absl::Status ReplayWeightReplacement(const storage::UpdateRecord& record, const Batch& batch);
  absl::Status ReplayRestoredState(const storage::UpdateRecord& record);
  absl::Status ReplayCurve(const storage::UpdateRecord& record);
  void StoreExample(const StoredUpdate& update);

  bool AddClassNames(const google::protobuf::RepeatedPtrField<std::string>& names);
  bool HasLabel(int32_t label) const;
  size_t classes() const;
  // Whether the row's features have weights. Index 0 of a named space stands for every unknown
  // name, and has none.
  bool HasWeights(const Row& row) const;
  // The weight of unknown names is 0.
  bool UnknownNamesHaveNoWeight() const;
  // DATA_LOSS.
  absl::Status Inconsistent(absl::string_view what) const;

  ModelCore& core_;
  ModelState& state_;
  const bool counts_examples_;
  OnUpdate on_update_;
};

}  // namespace perceptrond
