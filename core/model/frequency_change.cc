// How document frequencies come into force, when they are learned and when the journal is replayed:
// weights stay, and all examples have other features.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/model_core.h"
#include "core/sync/cancellation.h"

namespace perceptrond {

absl::Status ChangeFrequencies(ModelCore& core) {
  const Guarded<ModelState>::Writer state(core.state);
  if (absl::Status open = core.CheckOpen(*state); !open.ok()) return open;
  // Another stream may have done it a moment ago.
  if (core.documents == nullptr || core.documents->UntilDue() > 0) return absl::OkStatus();
  const TornByException torn(core.ledger);
  const CancellationScope whole(nullptr);
  state->frequencies = std::make_shared<const InverseDocumentFrequencies>(core.settings.space.size,
                                                                          core.documents->Copy());
  const DocumentCounts& counts = state->frequencies->counts();
  core.documents->SetInForce(counts.documents);
  UpdateRow update;
  update.revision = ++state->revision;
  update.age = core.CountedExamples();
  update.squared_norm = state->learner->augmented_squared_norm();
  AddFrequencyChange(update, counts, core.ledger);
  return absl::OkStatus();
}

bool RestoreFrequencies(const storage::Snapshot& snapshot, ModelCore& core, ModelState& state) {
  if (core.documents == nullptr) return true;
  const uint32_t slots = core.settings.space.size;
  absl::StatusOr<DocumentCounts> in_force = FromStorage(snapshot.document_frequencies(), slots);
  const absl::StatusOr<DocumentCounts> counted = FromStorage(snapshot.document_counts(), slots);
  if (!in_force.ok() || !counted.ok()) return false;
  core.documents->Restore(*counted, in_force->documents);
  if (snapshot.has_document_frequencies())
    state.frequencies =
        std::make_shared<const InverseDocumentFrequencies>(slots, *std::move(in_force));
  return true;
}

absl::Status ReplayFrequencyChange(const storage::UpdateRecord& record, ModelCore& core,
                                   ModelState& state) {
  // A snapshot covers it.
  if (record.first_revision() <= state.revision) return absl::OkStatus();
  storage::Snapshot now;
  *now.mutable_document_frequencies() = record.document_frequencies();
  *now.mutable_document_counts() = record.document_frequencies();
  if (record.labels_size() != 1 || core.documents == nullptr ||
      state.learner->augmented_squared_norm() != record.squared_norm() ||
      !RestoreFrequencies(now, core, state)) {
    return absl::DataLossError(absl::StrCat("the journal of \"", core.name,
                                            "\" is inconsistent at revision ", state.revision,
                                            ": document frequencies are wrong"));
  }
  core.ledger.stored_examples().DropAll();
  ++state.revision;
  return absl::OkStatus();
}

}  // namespace perceptrond
