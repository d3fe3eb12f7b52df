// A model in a file of its own: perceptron/storage/v1/model_file.proto has the format.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/journal/journal.h"
#include "core/model/model_core.h"

namespace perceptrond {

struct ModelFile {
  // With settings alone.
  storage::ModelHeader header;
  storage::Snapshot state;
  CommittedState committed;
};

// The bytes of the file. O(its size).
absl::StatusOr<std::string> WriteModelFile(const storage::ModelHeader& header,
                                           const storage::Snapshot& state,
                                           const CommittedState& committed);
// Checks the file as a model is checked that is loaded from the journal. INVALID_ARGUMENT
// (BAD_MODEL_FILE), saying what is wrong; RESOURCE_EXHAUSTED. O(its size).
absl::StatusOr<ModelFile> ReadModelFile(absl::string_view file, const ModelLimits& limits);

}  // namespace perceptrond
