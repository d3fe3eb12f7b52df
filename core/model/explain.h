// Scores taken apart: what each feature contributes. See perceptron.v1.Explanation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/features/feature_part.h"
#include "core/model/model.h"

namespace perceptrond {

struct Contribution {
  FeaturePart part;
  double weight = 0;
  // weight x value.
  double contribution = 0;
};

struct PastMistake {
  uint64_t revision = 0;
  int32_t label = 0;
  // x_i . x + b^2, or the kernel's K(x_i, x).
  double similarity = 0;
  double contribution = 0;
};

struct Explanation {
  double score = 0;
  int32_t label = 0;
  // The constant in the score.
  double offset = 0;
  // The largest by their size first.
  std::vector<Contribution> contributions;
  // The sum of those that are left out, and how many they are.
  double rest = 0;
  uint32_t rest_features = 0;
  // Why there are none; empty: there are, if any is not zero.
  std::string contributions_absent;
  // The same by past mistakes, of learners whose answer is their sum; see explain_mistakes.h.
  std::vector<PastMistake> mistakes;
  double other_mistakes = 0;
  uint32_t other_mistakes_count = 0;
  bool mistakes_complete = false;
  // What the weights contribute that it started from or, if the revision is above 0, adopted then;
  // absent: they are zero, or what they contribute is not known.
  std::optional<double> origin;
  uint64_t origin_revision = 0;
  // Why there are none; empty: there are, if there were any.
  std::string mistakes_absent;
};

struct ExplainOutcome {
  uint64_t revision = 0;
  // One a row, up to the first that was refused.
  std::vector<Explanation> explanations;
  // At most one.
  std::vector<RowError> row_errors;
  // Of a composition: one an input, at which its model was asked.
  std::vector<uint64_t> component_revisions;
};

}  // namespace perceptrond
