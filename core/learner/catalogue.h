// Every learner there is: the one list that the server, the tests and the documents go by.
#pragma once

#include <memory>
#include <span>

#include "absl/strings/string_view.h"
#include "core/learner/learner.h"
#include "core/learner/settings.h"

namespace perceptrond {

// What a rule is told besides what every rule is: each bit a setting of LearnerSettings.
enum LearnerOption : uint16_t {
  kTakesStepSize = 1,
  kTakesAggressiveness = 2,
  kTakesMarginSlack = 4,
  kTakesRegularization = 8,
  kTakesUpdateThreshold = 16,
  // It learns by batches.
  kTakesMiniBatch = 32,
  kTakesBudget = 64,
  kTakesKernel = 128,
  kTakesRatchet = 256,
};

// What a learner answers by.
enum class Form : uint8_t {
  // One vector of weights.
  kLinear,
  // The votes of several.
  kVotes,
  // Kernels with examples: it has no weights, and none to start from.
  kKernel,
};

struct CatalogueEntry {
  LearnerKind kind;
  // As in `perceptronctl create --learner`.
  absl::string_view name;
  // One line for a person.
  absl::string_view summary;
  // LearnerOption bits: the settings it has.
  uint16_t options;
  // It learns with the plain perceptron's weights: each update adds eta y (x, b) on a mistake, and
  // nothing else does. So the convergence theorem holds from zero weights.
  bool convergence_theorem;
  // It looks at Target::age.
  bool counts_examples;
  // Its rule defines what an example's weight means.
  bool takes_weights;
  std::unique_ptr<Learner> (*make)(const LearnerSettings& settings, size_t size);
  // The rule of several classes; null: the literature has none.
  std::unique_ptr<Learner> (*make_multiclass)(const LearnerSettings& settings,
                                              size_t size) = nullptr;
  Form form = Form::kLinear;
  // Why its answer cannot be told by past updates (Learner::AnswerShare and AnswerTerms); empty: it
  // can.
  absl::string_view no_past = "";
  // It answers with other weights than those it learns with: what is known of these, a run of right
  // answers or a pass without a change, is not known of its answers.
  bool separate_prediction_weights = false;
};

// In the order of their enum values.
std::span<const CatalogueEntry> Catalogue();

// The entry of a kind. Every kind has one.
const CatalogueEntry& FindLearner(LearnerKind kind);

// The learner of these settings, with room for `size` features. settings.classes.max > 0 asks for
// one of several classes, which its entry must have.
std::unique_ptr<Learner> MakeLearner(const LearnerSettings& settings, size_t size);

}  // namespace perceptrond
