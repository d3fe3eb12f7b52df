#include "tests/bench/table_rules.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace perceptrond {
namespace {

using testing::PaperRule;
namespace v1 = ::perceptron::v1;

// exp(-||x - z||^2 / 64): as wide as images of hundreds of pixels are apart.
double WideGaussian(std::span<const double> x, std::span<const double> z) {
  double square = 0;
  for (size_t i = 0; i < x.size(); ++i) square += (x[i] - z[i]) * (x[i] - z[i]);
  return std::exp(-square / 64);
}

}  // namespace

std::vector<PaperRule> TableRules(const DataSet& data) {
  std::vector<PaperRule> rules = testing::PaperRules();
  // No test compares it: at its default step, far too long for pixels, float32 and float64 part
  // ways.
  rules.push_back({"logistic-regression", testing::Of<testing::PaperLogistic>(1.0),
                   [](v1::Learner&) {}, " (eta = 1, the default)"});
  if (data.name == "mnist38") {
    rules.push_back(
        {"kernel-perceptron", testing::Of<testing::PaperForgetron>(&WideGaussian, size_t{1000}),
         [](v1::Learner& learner) {
           learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_rbf()->set_gamma(1.0 /
                                                                                           64);
         },
         " (Gaussian, gamma = 1/64, budget 1000)"});
  }
  // The settings of one learner together, in the order of the learners' first rows.
  const std::vector<PaperRule> order = rules;
  const auto first = [&order](const PaperRule& rule) {
    return std::find_if(order.begin(), order.end(),
                        [&](const PaperRule& one) { return one.learner == rule.learner; });
  };
  std::stable_sort(rules.begin(), rules.end(),
                   [&](const PaperRule& a, const PaperRule& b) { return first(a) < first(b); });
  return rules;
}

std::string NameOf(const PaperRule& rule) { return rule.learner + rule.note; }

}  // namespace perceptrond
