// Explanations: scores decomposed into what each feature, or each example learned, contributes. See
// perceptron.v1.Explanation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/features/mapper.h"
#include "core/model/model.h"

namespace perceptrond {

struct Contribution {
  FeaturePart part;
  double weight = 0;
  // weight x value.
  double contribution = 0;
};

// The contribution of an example that caused an update.
struct SupportContribution {
  // The revision that the update produced.
  uint64_t revision = 0;
  int32_t label = 0;
  // K(x_i, x): x_i . x + b^2, or the kernel's.
  double kernel = 0;
  double dual_coefficient = 0;
  // dual_coefficient * kernel.
  double contribution = 0;
};

struct Explanation {
  double score = 0;
  // The predicted label; of several classes the class whose score is explained.
  int32_t label = 0;
  // The constant in the score.
  double bias = 0;
  // The contributions of largest magnitude, largest first.
  std::vector<Contribution> contributions;
  // The sum of the contributions that are left out.
  double other_contributions = 0;
  // The number of contributions that are left out.
  uint32_t other_features = 0;
  // Why there are no contributions of features; empty: there are, if any is not zero.
  std::string contributions_absent;
  // The support examples of largest contribution, largest first: the score in its dual form.
  std::vector<SupportContribution> support;
  // The sum of the support examples' contributions that are left out.
  double other_support = 0;
  // The number of support examples that are left out.
  uint32_t other_support_count = 0;
  // All support examples since the start are known.
  bool support_complete = false;
  // The contribution of the weights that learning began from: the starting weights, or those that
  // replaced the weights at start_revision. Absent: they are zero, or it is not known.
  std::optional<double> start_contribution;
  // 0: the starting weights.
  uint64_t start_revision = 0;
  // Why there are no support examples; empty: there are, if any caused an update.
  std::string support_absent;
};

struct ExplainOptions {
  // The state to explain is at this revision or later.
  uint64_t min_revision = 0;
  // The most contributions of features, and of support examples, that are listed for a row.
  size_t max_features = 20;
  // Of several classes: the class whose score is explained. Absent: the predicted class.
  std::optional<int32_t> label;
  // The most bytes that the listed contributions of all rows may take, with their names: above it RESOURCE_EXHAUSTED
  // (ANSWER_TOO_LARGE).
  size_t max_bytes = size_t{16} << 20;
};

struct ExplainOutcome {
  // As PredictOutcome's.
  uint64_t revision = 0;
  int64_t epoch = 0;
  // As PredictOutcome::age.
  uint64_t age = 0;
  // One a row, up to the first invalid one.
  std::vector<Explanation> explanations;
  // The first invalid row, if there is one.
  std::vector<RowError> row_errors;
  // Of a composition, one an input: the revision of the component that computed it.
  std::vector<uint64_t> component_revisions;
};

}  // namespace perceptrond
