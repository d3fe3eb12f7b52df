// Every learner there is: the one list that the server, the tests and the documents read.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "core/learner/learner.h"
#include "core/learner/settings.h"

namespace perceptrond {

// The learners that the API names: perceptron.v1.LearnerKind less 1. Each is a rule, or a rule in a
// wrapper.
enum class LearnerKind : uint8_t {
  kPerceptron,
  kAveragedPerceptron,
  kPocket,
  kMarginPerceptron,
  kPassiveAggressive,
  kPassiveAggressiveI,
  kPassiveAggressiveII,
  kArow,
  kLogisticRegression,
  kBatchPerceptron,
  kVotedPerceptron,
  kKernelPerceptron,
  kSoftConfidenceWeighted,
};

// The settings that a learner has besides those that all have: each bit a field of LearnerSettings.
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
  kTakesConfidence = 512,
};

// What makes a learner's predictions.
enum class Form : uint8_t {
  // One vector of weights for each score.
  kLinear,
  // The votes of several.
  kVotes,
  // Kernels with examples: there are no weights, and none to start from.
  kKernel,
};

// One learner: a rule with a wrapper that it allows.
struct CatalogueEntry {
  RuleKind rule = RuleKind::kPerceptron;
  WrapperKind wrapper = WrapperKind::kNone;
  // Absent: the API has no name for the pair yet.
  std::optional<LearnerKind> kind;
  // As in `perceptronctl create --learner`.
  std::string name;
  // One line for a person.
  std::string summary;
  // LearnerOption bits: the settings it has.
  uint16_t options = 0;
  // It learns with the plain perceptron's weights: each update adds eta z on a mistake, and nothing
  // else does. So the convergence theorem holds from zero weights.
  bool convergence_theorem = false;
  // It reads Target::age.
  bool counts_examples = false;
  // Its rule defines what an example's weight means.
  bool takes_weights = false;
  // Why it has two labels only; empty: it has several classes too.
  absl::string_view two_labels_only;
  Form form = Form::kLinear;
  // Why its scores are no sum over the examples it learned from (Explainable); empty: they are.
  absl::string_view no_dual;
  // It predicts with other weights than those it learns with: what is known of these, a run of
  // correct predictions or a pass without a change, is not known of its predictions.
  bool separate_prediction_weights = false;

  bool has_classes() const { return two_labels_only.empty(); }
};

// The learners that the API names, in the order of LearnerKind.
std::span<const CatalogueEntry> Catalogue();
// Every rule with every wrapper that it allows, those of Catalogue() first.
std::span<const CatalogueEntry> AllLearners();

// The entry of a kind, or of a rule and its wrapper, which it must allow.
const CatalogueEntry& FindLearner(LearnerKind kind);
const CatalogueEntry& FindLearner(const LearnerSettings& settings);

// Makes the learner of these settings, with room for `size` features. Its entry must have several
// classes if the settings do.
std::unique_ptr<Learner> MakeLearner(const LearnerSettings& settings, size_t size);

}  // namespace perceptrond
