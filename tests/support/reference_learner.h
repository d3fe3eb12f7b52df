// The one reference: every learner of the catalogue as the API and the papers that it cites describe
// it (perceptron/v1/learner.proto), in float64, with whole vectors and plain loops. It takes every
// setting: ties, steps, weights of examples and classes, two labels or several classes that may
// appear later, each rule under each wrapper, kernels on a budget. The tests of the rules and the
// differential fuzzer compare the product with it. Slow on purpose. Uses nothing of core/.
//
//   perceptron                Rosenblatt 1958; of several classes Crammer, Singer 2003, figure 2,
//                             with all of the weight on the best of the wrong classes
//   margin_perceptron         ALMA with p = 2: Gentile 2001, figure 1
//   passive_aggressive, I, II Crammer et al. 2006, figure 1 and section 8
//   arow                      Crammer, Kulesza, Dredze 2009, figure 1, the covariance's diagonal
//   soft_confidence_weighted  Wang, Zhao, Hoi 2012, proposition 1, the covariance's diagonal
//   logistic_regression       gradient descent on -ln P(y); steps of Zinkevich 2003, or of AdaGrad
//                             with a diagonal and delta = 0 (Duchi, Hazan, Singer 2011, figure 1)
//   batch_perceptron          Duda, Hart, Stork 2001, section 5.5
//   kernel_perceptron         the self-tuned Forgetron: Dekel, Shalev-Shwartz, Singer 2008; its
//                             damage in units of the largest K(x, x)
//   averaged, voted           Freund, Schapire 1999, figure 1; the latest budget + 1 hypotheses vote
//   pocket                    Gallant 1990; the ratchet counts errors on the latest examples that
//                             caused updates, so that as many say nothing against a longer run
//
// With several classes a rule learns from the long vector Phi(x, y) - Phi(x, rival), which has twice
// the square of x.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "perceptron/v1/learner.pb.h"
#include "tests/support/svmlight.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

using Vector = std::vector<double>;

inline double Product(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The example as a whole vector, the constant input b last.
inline Vector Augmented(const SvmExample& example, size_t dimension, double b) {
  Vector x(dimension + 1);
  for (size_t i = 0; i < example.indices.size(); ++i) {
    if (example.indices[i] < dimension) x[example.indices[i]] = example.values[i];
  }
  x.back() = b;
  return x;
}

// An example before it is learned.
struct ReferenceView {
  // The score; of several classes the margin, infinity without another class.
  double score = 0;
  int predicted = -1;
  int rival = -1;
  bool mistake = false;
  bool update = false;
  // How far scores and margins are from a value at which the learner does something else: another
  // prediction, another rival, an update or none.
  double clearance = std::numeric_limits<double>::infinity();
  // Its counterpart where learning is continuous: a margin that calls for an update of almost 0.
  double update_clearance = std::numeric_limits<double>::infinity();
  // The sum of the sizes of the terms that the scores are sums of: what rounding is relative to.
  double scale = 0;
};

// A rule with all its numbers.
struct ReferenceRule {
  explicit ReferenceRule(const v1::Learner& learner);

  v1::Learner::RuleCase rule;
  bool multiclass;
  size_t classes;
  v1::TieRule tie;
  double bias;
  double step = 1;
  double aggressiveness = 1;
  double slack = 0.9;
  double regularization = 1;
  double phi = 0;
  double threshold = 0;
  v1::LogisticRegression::Steps steps = v1::LogisticRegression::STEPS_CONSTANT;
  uint64_t mini_batch = 0;
  std::vector<double> class_weights;
  // The kernel perceptron's.
  v1::Kernel kernel;
};

// A kernel perceptron's function: the sum over the examples kept.
class ReferenceForgetron {
 public:
  ReferenceForgetron(const v1::Kernel& kernel, size_t budget) : kernel_(kernel), budget_(budget) {}

  // `scale`: the sum of the terms' sizes.
  double Score(const Vector& x, double* scale = nullptr) const;
  void Add(const Vector& x, int label);
  // ||f||^2, by its definition.
  double SquaredNorm() const;
  // True if whole numbers have whole scores: nothing is kept, or none was forgotten, which shrinks the
  // others.
  bool IsExact() const {
    return kept_.empty() || (!kernel_.has_rbf() && mistakes_ == kept_.size());
  }

 private:
  struct Kept {
    Vector x;
    int label;
    double share;
  };
  double K(const Vector& x, const Vector& z) const;

  const v1::Kernel kernel_;
  const size_t budget_;
  std::deque<Kept> kept_;
  uint64_t mistakes_ = 0;
  double damage_ = 0;
  double largest_ = 0;
};

class ReferenceLearner {
 public:
  ReferenceLearner(const v1::Learner& learner, size_t features)
      : rule_(learner),
        wrapper_(learner.prediction_case()),
        budget_(learner.voted().has_budget() ? learner.voted().budget() : 1000),
        ratchet_(learner.pocket().ratchet_examples()),
        dimension_(features + 1),
        w_(Start(learner)),
        moved_(w_),
        variance_(rule_.classes, Vector(dimension_, 1)),
        squares_(rule_.classes, Vector(dimension_)),
        batch_(squares_),
        sum_(squares_),
        pocket_(w_),
        exists_(rule_.classes, !rule_.multiclass || learner.classes().new_classes() <=
                                                        v1::Classes::NEW_CLASSES_NONE),
        voters_({{w_, exists_, 0}}),
        forgetron_(rule_.kernel, learner.kernel_perceptron().has_budget()
                                     ? learner.kernel_perceptron().budget()
                                     : 1000) {}

  // x: the features with the constant input's value last.
  ReferenceView View(const Vector& x, int label) const;
  // Evaluates and learns. Returns what it saw before.
  ReferenceView Learn(const Vector& x, int label, double weight);
  void EndPass() { EndBatch(); }
  // By class, or of +1; NaN for a class that does not exist. `clearance`: how far the decisions
  // that made them are from others.
  std::vector<double> PredictedScores(const Vector& x, double& clearance) const;
  int Predict(const std::vector<double>& scores) const { return Label(scores); }

  uint64_t updates() const { return updates_; }
  const ReferenceForgetron& forgetron() const { return forgetron_; }
  // The least clearance of the comparisons that the ratchet made: they show in no row.
  double ratchet_clearance() const { return ratchet_clearance_; }

 private:
  using Weights = std::vector<Vector>;
  struct Voter {
    Weights w;
    std::vector<bool> exists;
    double votes;
  };

  bool has_kernel() const { return rule_.rule == v1::Learner::kKernelPerceptron; }
  // The weights that a learner of two labels starts from.
  Weights Start(const v1::Learner& learner) const;
  std::vector<double> Scores(const Weights& w, const std::vector<bool>& exists,
                             const Vector& x) const;
  int Greatest(const std::vector<double>& scores, int except) const;
  int Label(const std::vector<double>& scores) const;
  bool IsMistake(double margin, int predicted, int label) const;
  ReferenceView ViewBy(const Weights& w, const Vector& x, int label) const;
  double SquaredNorm(const Vector& x) const { return (rule_.multiclass ? 2 : 1) * Product(x, x); }
  double Variance(const Vector& x, int label, int rival) const;
  void SetUpdate(const Vector& x, int label, ReferenceView& view) const;
  void Update(const Vector& x, int label, double weight, const ReferenceView& view);
  void MoveAllClasses(const Vector& x, int label, double weight);
  void Move(Weights& w, size_t k, double length, const Vector& x) {
    for (size_t i = 0; i < x.size(); ++i) {
      w[k][i] += length * x[i];
      if (length * x[i] != 0) moved_[k][i] = 1;
    }
  }
  // Along a negative gradient, by the steps of logistic regression.
  void MoveByGradient(size_t k, double coefficient, const Vector& x);
  void MoveAlongVariance(size_t k, double length, double shrink, const Vector& x);
  void EndBatch();
  void LimitNorm();
  size_t Errors(const Weights& w);
  void AfterExample(bool updated);

  const ReferenceRule rule_;
  const v1::Learner::PredictionCase wrapper_;
  const size_t budget_;
  const size_t ratchet_;
  const size_t dimension_;
  Weights w_;
  // 1 for every weight that ever moved.
  Weights moved_;
  Weights variance_;
  // Logistic regression: the sums of squared gradients, and the updates that moved weights.
  Weights squares_;
  double steps_made_ = 0;
  // The batch perceptron: the mistakes since its last step.
  Weights batch_;
  bool pending_ = false;
  // The margin perceptron's.
  double k_ = 1;
  // The sum of the weights after each example; the pocket's weights, and their run.
  Weights sum_;
  Weights pocket_;
  std::vector<bool> exists_;
  uint64_t best_ = 0;
  uint64_t run_ = 0;
  bool in_pocket_ = false;
  std::deque<std::pair<Vector, int>> kept_;
  std::deque<Voter> voters_;
  ReferenceForgetron forgetron_;
  uint64_t examples_ = 0;
  uint64_t updates_ = 0;
  double ratchet_clearance_ = std::numeric_limits<double>::infinity();
};

}  // namespace perceptrond::testing
