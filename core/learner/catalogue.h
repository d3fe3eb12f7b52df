// Every learner there is: the one list that the server, the tests and the documents read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "core/learner/learner.h"
#include "core/learner/settings.h"

namespace perceptrond {

// What makes a learner's predictions.
enum class Form : uint8_t {
  // One vector of weights for each score (Learner::feature_weights).
  kLinear,
  // The votes of several.
  kVotes,
  // Kernels with examples (Learner::support_expansion): there are no weights, and none to start
  // from.
  kKernel,
};

// One learner: a rule with a wrapper that it allows.
struct CatalogueEntry {
  RuleKind rule = RuleKind::kPerceptron;
  WrapperKind wrapper = WrapperKind::kNone;
  // "arow", "averaged-perceptron": the fields of perceptron.v1.Learner that are set, the wrapper's
  // first. As in `perceptronctl create --learner`.
  std::string name;
  // One line for a person.
  std::string summary;
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
  // Why its scores are no sum over the examples it learned from (Learner::dual_form and
  // support_expansion); empty: they are.
  absl::string_view no_dual;
  // Why the scores of several classes are no such sum although those of two labels are; empty:
  // they are.
  absl::string_view no_class_dual;
  // It predicts with other weights than those it learns with: what is known of these, a run of
  // correct predictions or a pass without a change, is not known of its predictions.
  bool separate_prediction_weights = false;

  bool has_classes() const { return two_labels_only.empty(); }
};

// Every rule, in the order of RuleKind, each followed by the wrappers that it allows.
std::span<const CatalogueEntry> Catalogue();

// The entry of a name; null if there is none.
const CatalogueEntry* FindLearner(absl::string_view name);

// The entry of a rule and its wrapper, which it must allow.
const CatalogueEntry& FindLearner(const LearnerSettings& settings);

// How many bytes of weights the learner of these settings has with room for `size` features, but for
// starting weights: found with small ones, and without making it. O(classes).
uint64_t EstimateWeightBytes(const LearnerSettings& settings, uint64_t size);

// Makes the learner of these settings, with room for `size` features. Its entry must have several
// classes if the settings do.
std::unique_ptr<Learner> MakeLearner(const LearnerSettings& settings, size_t size);

}  // namespace perceptrond
