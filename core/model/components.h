// Which models are made of which: what keeps compositions free of cycles, and their components from
// being deleted. A component's header names the compositions that may use it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/journal/journal.h"

namespace perceptrond {

// Thread contract of all: the caller lets nobody else change headers meanwhile.

// Checks the components of a composition that is to be created (another model has none), and
// notes in its header its example_space, depth and size. NOT_FOUND (COMPONENT_NOT_FOUND);
// INVALID_ARGUMENT (COMPOSITION_CYCLE; INVALID_FIELD: too deep, too large, or components that take
// different examples). O(components), a read each.
absl::Status CheckComponents(Journal& journal, storage::ModelHeader& header);

// Notes in the components' headers that `header` is made of them; before it is created, so that
// none is ever deleted unnoticed. Twice is no error.
absl::Status MarkComponents(Journal& journal, const storage::ModelHeader& header);

// Takes those notes back, once it is deleted or was not created.
absl::Status UnmarkComponents(Journal& journal, const storage::ModelHeader& header);

// FAILED_PRECONDITION (MODEL_IN_USE) if there is a composition that the model is a component of.
absl::Status CheckUnused(Journal& journal, const storage::ModelHeader& header);

}  // namespace perceptrond
