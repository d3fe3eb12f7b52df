// Explanations: scores decomposed into what each feature, or each example learned, contributes. See
// perceptron.v1.Explanation.
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

// The contribution of an example that caused an update.
struct SupportContribution {
  // The revision that the update produced.
  uint64_t revision = 0;
  int32_t label = 0;
  // x_i . x + b^2, or the kernel's K(x_i, x).
  double similarity = 0;
  // Its dual coefficient times the similarity.
  double contribution = 0;
};

struct Explanation {
  double score = 0;
  int32_t label = 0;
  // The constant in the score.
  double offset = 0;
  // The contributions of largest magnitude, largest first.
  std::vector<Contribution> contributions;
  // The sum of the contributions that are left out.
  double rest = 0;
  // The number of contributions that are left out.
  uint32_t rest_features = 0;
  // Why there are no contributions of features; empty: there are, if any is not zero.
  std::string contributions_absent;
  // The support examples of largest contribution, largest first (core/model/support_examples.h).
  std::vector<SupportContribution> support;
  // The sum of the support examples' contributions that are left out.
  double other_support = 0;
  // The number of support examples that are left out.
  uint32_t other_support_count = 0;
  // All support examples since the origin are known.
  bool support_complete = false;
  // The contribution of the weights that learning began from: the starting weights, or those that
  // replaced the weights at origin_revision. Absent: they are zero, or it is not known.
  std::optional<double> origin;
  // 0: the starting weights.
  uint64_t origin_revision = 0;
  // Why there are no support examples; empty: there are, if any caused an update.
  std::string support_absent;
};

struct ExplainOutcome {
  uint64_t revision = 0;
  // One a row, up to the first invalid one.
  std::vector<Explanation> explanations;
  // The first invalid row, if there is one.
  std::vector<RowError> row_errors;
  // Of a composition, one an input: the revision of the component that computed it.
  std::vector<uint64_t> component_revisions;
};

}  // namespace perceptrond
