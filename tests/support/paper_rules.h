// The one list of rules and their papers: what the tests compare on real data, and what the tables
// of docs/learners.md have rows of. A new learner gets its line here.
#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "perceptron/v1/model.pb.h"
#include "tests/support/papers.h"
#include "tests/support/papers_with_rows.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

// As in `perceptronctl create --learner`: "averaged-perceptron".
inline std::string LearnerName(v1::LearnerKind kind) {
  std::string name = v1::LearnerKind_Name(kind).substr(sizeof("LEARNER_KIND_") - 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c == '_' ? '-' : static_cast<char>(std::tolower(c)); });
  return name;
}

struct PaperRule {
  v1::LearnerKind kind;
  MakePaper paper;
  std::function<void(v1::Learner&)> settings = [](v1::Learner&) {};
  // The settings, for a reader.
  std::string note = {};
};

// exp(-||x - z||^2)
inline double UnitGaussian(std::span<const double> x, std::span<const double> z) {
  double square = 0;
  for (size_t i = 0; i < x.size(); ++i) square += (x[i] - z[i]) * (x[i] - z[i]);
  return std::exp(-square);
}

// (1 + x . z)^2
inline double Quadratic(std::span<const double> x, std::span<const double> z) {
  const double base = 1 + std::inner_product(x.begin(), x.end(), z.begin(), 0.0);
  return base * base;
}

inline void SetQuadratic(v1::Learner& learner) {
  learner.mutable_kernel()->mutable_polynomial()->set_degree(2);
}

inline std::vector<PaperRule> PaperRules() {
  return {
      {v1::LEARNER_KIND_PERCEPTRON, Of<PaperPerceptron>()},
      {v1::LEARNER_KIND_AVERAGED_PERCEPTRON, Of<PaperAveraged>()},
      {v1::LEARNER_KIND_POCKET, Of<PaperPocket>()},
      {v1::LEARNER_KIND_MARGIN_PERCEPTRON, Of<PaperAlma>(0.9)},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE, Of<PaperPassiveAggressive>(0, 1.0)},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_I, Of<PaperPassiveAggressive>(1, 0.1),
       [](v1::Learner& learner) { learner.set_aggressiveness(0.1); }, " (C = 0.1)"},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_II, Of<PaperPassiveAggressive>(2, 0.1),
       [](v1::Learner& learner) { learner.set_aggressiveness(0.1); }, " (C = 0.1)"},
      {v1::LEARNER_KIND_AROW, Of<PaperArow>(1.0)},
      {v1::LEARNER_KIND_LOGISTIC_REGRESSION, Of<PaperLogistic>(0.1),
       [](v1::Learner& learner) { learner.set_step_size(0.1); }, " (eta = 0.1)"},
      {v1::LEARNER_KIND_POCKET, Of<PaperRatchet>(size_t{1000}),
       [](v1::Learner& learner) { learner.set_ratchet_examples(1000); }, " (ratchet over 1000)"},
      {v1::LEARNER_KIND_BATCH_PERCEPTRON, Of<PaperBatch>(uint64_t{0})},
      {v1::LEARNER_KIND_BATCH_PERCEPTRON, Of<PaperBatch>(uint64_t{100}),
       [](v1::Learner& learner) { learner.set_mini_batch(100); }, " (mini-batch 100)"},
      {v1::LEARNER_KIND_SOFT_CONFIDENCE_WEIGHTED, Of<PaperScw>(0.6744897501960817, 1.0)},
      {v1::LEARNER_KIND_SOFT_CONFIDENCE_WEIGHTED, Of<PaperScw>(1.2815515655446004, 0.1),
       [](v1::Learner& learner) {
         learner.set_confidence(0.9);
         learner.set_aggressiveness(0.1);
       },
       " (eta = 0.9, C = 0.1)"},
      {v1::LEARNER_KIND_VOTED_PERCEPTRON, Of<PaperVoted>(size_t{1000})},
      {v1::LEARNER_KIND_KERNEL_PERCEPTRON, Of<PaperForgetron>(&UnitGaussian, size_t{1000}),
       [](v1::Learner&) {}, " (Gaussian, gamma = 1, budget 1000)"},
      {v1::LEARNER_KIND_KERNEL_PERCEPTRON, Of<PaperForgetron>(&Quadratic, size_t{1000}),
       &SetQuadratic, " (polynomial, degree 2, budget 1000)"},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_I, Of<PaperPassiveAggressive>(1, 1.0),
       [](v1::Learner&) {}, " (C = 1, the default)"},
      {v1::LEARNER_KIND_PASSIVE_AGGRESSIVE_II, Of<PaperPassiveAggressive>(2, 1.0),
       [](v1::Learner&) {}, " (C = 1, the default)"},
      {v1::LEARNER_KIND_KERNEL_PERCEPTRON, Of<PaperForgetron>(&UnitGaussian, size_t{100}),
       [](v1::Learner& learner) { learner.set_budget(100); }, " (Gaussian, budget 100)"}};
}

}  // namespace perceptrond::testing
