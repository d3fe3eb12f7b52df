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
#include "tests/support/learners.h"
#include "tests/support/papers.h"
#include "tests/support/papers_with_rows.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

struct PaperRule {
  // As in `perceptronctl create --learner`.
  std::string learner;
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
  learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial()->set_degree(2);
}

inline std::vector<PaperRule> PaperRules() {
  return {
      {"perceptron", Of<PaperPerceptron>()},
      {"averaged-perceptron", Of<PaperAveraged>()},
      {"pocket-perceptron", Of<PaperPocket>()},
      {"margin-perceptron", Of<PaperAlma>(0.9)},
      {"passive-aggressive", Of<PaperPassiveAggressive>(0, 1.0)},
      {"passive-aggressive-i", Of<PaperPassiveAggressive>(1, 0.1),
       [](v1::Learner& learner) { SetNumber(learner, "aggressiveness", 0.1); }, " (C = 0.1)"},
      {"passive-aggressive-ii", Of<PaperPassiveAggressive>(2, 0.1),
       [](v1::Learner& learner) { SetNumber(learner, "aggressiveness", 0.1); }, " (C = 0.1)"},
      {"arow", Of<PaperArow>(1.0)},
      {"logistic-regression", Of<PaperLogistic>(0.1),
       [](v1::Learner& learner) { SetNumber(learner, "step_size", 0.1); }, " (eta = 0.1)"},
      {"pocket-perceptron", Of<PaperRatchet>(size_t{1000}),
       [](v1::Learner& learner) { SetCount(learner, "ratchet_examples", 1000); },
       " (ratchet over 1000)"},
      {"batch-perceptron", Of<PaperBatch>(uint64_t{0})},
      {"batch-perceptron", Of<PaperBatch>(uint64_t{100}),
       [](v1::Learner& learner) { SetCount(learner, "mini_batch", 100); }, " (mini-batch 100)"},
      {"soft-confidence-weighted", Of<PaperScw>(0.6744897501960817, 1.0)},
      {"soft-confidence-weighted", Of<PaperScw>(1.2815515655446004, 0.1),
       [](v1::Learner& learner) {
         SetNumber(learner, "confidence", 0.9);
         SetNumber(learner, "aggressiveness", 0.1);
       },
       " (eta = 0.9, C = 0.1)"},
      {"voted-perceptron", Of<PaperVoted>(size_t{1000})},
      {"kernel-perceptron", Of<PaperForgetron>(&UnitGaussian, size_t{1000}), [](v1::Learner&) {},
       " (Gaussian, gamma = 1, budget 1000)"},
      {"kernel-perceptron", Of<PaperForgetron>(&Quadratic, size_t{1000}), &SetQuadratic,
       " (polynomial, degree 2, budget 1000)"},
      {"passive-aggressive-i", Of<PaperPassiveAggressive>(1, 1.0), [](v1::Learner&) {},
       " (C = 1, the default)"},
      {"passive-aggressive-ii", Of<PaperPassiveAggressive>(2, 1.0), [](v1::Learner&) {},
       " (C = 1, the default)"},
      {"kernel-perceptron", Of<PaperForgetron>(&UnitGaussian, size_t{100}),
       [](v1::Learner& learner) { SetCount(learner, "budget", 100); }, " (Gaussian, budget 100)"}};
}

}  // namespace perceptrond::testing
