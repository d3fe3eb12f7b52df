// Which models are made of which. Keeps compositions free of cycles, and their components from
// being deleted. A component's header names the compositions that may use it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/journal/journal.h"

namespace perceptrond {

// Thread contract of all: the caller excludes other changes of headers.

// Checks the components of a composition to be created (other models have none), and sets its
// example_space, depth and size in its header. NOT_FOUND (COMPONENT_NOT_FOUND); INVALID_ARGUMENT
// (COMPOSITION_CYCLE; INVALID_FIELD: too deep, too large, or components that take different
// examples). O(components), one read each.
absl::Status CheckComponents(Journal& journal, storage::ModelHeader& header);

// Marks the components as used by `header`. Called before it is created, so that no component can
// be deleted in between. Idempotent.
absl::Status MarkComponents(Journal& journal, const storage::ModelHeader& header);

// Removes the marks, after it was deleted or could not be created.
absl::Status UnmarkComponents(Journal& journal, const storage::ModelHeader& header);

// FAILED_PRECONDITION (MODEL_IN_USE) if there is a composition that the model is a component of.
absl::Status CheckUnused(Journal& journal, const storage::ModelHeader& header);

}  // namespace perceptrond
