// Every learner there is: the one list that the server, the tests and the documents go by.
#pragma once

#include <memory>
#include <span>

#include "absl/strings/string_view.h"
#include "core/learner/learner.h"
#include "core/learner/settings.h"

namespace perceptrond {

struct CatalogueEntry {
  LearnerKind kind;
  // As in `perceptronctl create --learner`.
  absl::string_view name;
  // One line for a person.
  absl::string_view summary;
  // The convergence theorem holds from zero weights: each update adds eta y (x, b) on a mistake,
  // and nothing else does.
  bool convergence_theorem;
  std::unique_ptr<Learner> (*make)(const LearnerSettings& settings, size_t size);
};

// In the order of their enum values.
std::span<const CatalogueEntry> Catalogue();

// The entry of a kind. Every kind has one.
const CatalogueEntry& FindLearner(LearnerKind kind);

}  // namespace perceptrond
