// A model made of other models: it learns from what they predict for each example, one feature a
// component. So one perceptron can learn what no single one can, such as XOR (Minsky, Papert:
// Perceptrons, 1969). Compositions are kept free of cycles, and their components from being
// deleted: a component's header names the compositions that may use it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/journal/journal.h"
#include "core/model/model.h"

namespace perceptrond {

// The predictions of all components for a batch, as a dense batch.
struct ComposedBatch {
  std::vector<float> values;
  // Rows with errors, found earlier or by a component, ascending. They are zeros in the batch.
  std::vector<RowError> row_errors;
  // One a component: the revision it predicted on.
  std::vector<uint64_t> revisions;
  // Views `values`, and the labels and weights of the batch it was made of.
  Batch batch;
  // Of all components, in the states they predicted from.
  StateFingerprint fingerprint = 0;
};

// Learns like any model, in the dense space of its components' predictions. Components predict each
// on one revision of their own, and never change with it.
//
// Thread contract: as Model. Takes the components' locks one after the other, before its own.
class Composition final : public Model {
 public:
  Composition(std::unique_ptr<ModelCore> core, ComponentSource components)
      : Model(std::move(core)), components_(std::move(components)) {}

  absl::Status Learn(const LearnCall& call, LearnOutcome& outcome) override;
  absl::Status Predict(const Batch& batch, std::span<const RowError> row_errors,
                       uint64_t min_revision, PredictOutcome& outcome,
                       bool include_class_scores) const override;
  // Contributions are named after the components.
  absl::Status Explain(const Batch& batch, std::span<const RowError> row_errors,
                       const ExplainOptions& options, ExplainOutcome& outcome) const override;
  uint64_t EstimateCost(const Batch& batch) const override;
  std::optional<StateFingerprint> Fingerprint(ComponentAccess access) const override;
  std::optional<StateFingerprint> ComponentsFingerprint(ComponentAccess access) const override;

 private:
  // Asks every component for the whole batch. INVALID_ARGUMENT for malformed columns;
  // RESOURCE_EXHAUSTED (MESSAGE_TOO_COSTLY) if all of them together cost too much; an error of the
  // source or of a component if one cannot be asked.
  absl::Status Compose(const Batch& batch, std::span<const RowError> row_errors,
                       ComponentAccess access, ComposedBatch& composed) const;

  const ComponentSource components_;
};

// Thread contract of all: the caller excludes other changes of headers by this process.

// Checks the components of a composition to be created (other models have none), and sets its
// example_space, depth and size in its header. Caller::CheckRead's errors for those that the current
// caller may not read; NOT_FOUND (COMPONENT_NOT_FOUND); INVALID_ARGUMENT (COMPOSITION_CYCLE;
// INVALID_FIELD: too deep, too large, or components that take different examples). O(components), one
// read each.
absl::Status CheckComponents(Journal& journal, storage::ModelHeader& header);

// Marks the components as used by `header`. Called before it is created, so that no component can
// be deleted in between. Idempotent.
absl::Status MarkComponents(Journal& journal, const storage::ModelHeader& header);

// Removes the marks, after it was deleted or could not be created.
absl::Status UnmarkComponents(Journal& journal, const storage::ModelHeader& header);

// FAILED_PRECONDITION (MODEL_IN_USE) if there is a composition that the model is a component of.
absl::Status CheckUnused(Journal& journal, const storage::ModelHeader& header);

// What another server may have changed since the above, for a ModelGuard. NOT_FOUND
// (COMPONENT_NOT_FOUND).
absl::Status CheckComponentsExist(const ModelsNow& models, const storage::ModelHeader& header);
// FAILED_PRECONDITION (MODEL_IN_USE).
absl::Status CheckUnusedNow(const ModelsNow& models, absl::string_view name);

}  // namespace perceptrond
