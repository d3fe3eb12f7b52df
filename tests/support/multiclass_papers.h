// The rules of several classes as their papers print them, in float64, with whole vectors and plain
// loops: what the product is compared with. Slow on purpose. Uses nothing of core/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "tests/support/papers.h"

namespace perceptrond::testing {

// All classes 0 .. classes - 1 are there from the start. Examples are augmented: the offset's
// coordinate is the last.
class MulticlassPaper {
 public:
  virtual ~MulticlassPaper() = default;
  // Evaluates and learns; says whether another class scored as much as y or more.
  bool Learn(const Vector& x, int y) {
    std::vector<double> scores;
    for (const Vector& w : w_) scores.push_back(Product(w, x));
    int rival = -1;
    for (int k = 0; k < static_cast<int>(w_.size()); ++k) {
      if (k != y && (rival < 0 || scores[k] > scores[rival])) rival = k;
    }
    const double margin = scores[y] - scores[rival];
    if (Move(x, y, rival, margin, scores)) ++updates_;
    AddEvaluation();
    return margin <= 0;
  }
  // What it answers with, by class.
  virtual std::vector<Vector> Answer() const { return w_; }
  int Predict(const Vector& x) const {
    const std::vector<Vector> weights = Answer();
    int best = 0;
    for (int k = 1; k < static_cast<int>(weights.size()); ++k) {
      if (Product(weights[k], x) > Product(weights[best], x)) best = k;
    }
    return best;
  }
  uint64_t updates() const { return updates_; }

 protected:
  MulticlassPaper(size_t classes, size_t dimension) : w_(classes, Vector(dimension)) {}
  virtual bool Move(const Vector& x, int y, int rival, double margin,
                    const std::vector<double>& scores) = 0;
  virtual void AddEvaluation() {}
  void CountUpdate() { ++updates_; }
  void Add(int k, double step, const Vector& x) {
    for (size_t i = 0; i < x.size(); ++i) w_[k][i] += step * x[i];
  }
  std::vector<Vector> w_;

 private:
  uint64_t updates_ = 0;
};

// Crammer, Singer 2003, figure 2, with all of the weight on the best of the wrong classes.
class PaperMulticlassPerceptron : public MulticlassPaper {
 public:
  PaperMulticlassPerceptron(size_t classes, size_t dimension)
      : MulticlassPaper(classes, dimension) {}

 private:
  bool Move(const Vector& x, int y, int rival, double margin,
            const std::vector<double>& /*scores*/) override {
    if (margin > 0) return false;
    Add(y, 1, x);
    Add(rival, -1, x);
    return true;
  }
};

// Collins 2002, with the plain sum of the weights after every example.
class PaperMulticlassAveraged final : public PaperMulticlassPerceptron {
 public:
  PaperMulticlassAveraged(size_t classes, size_t dimension)
      : PaperMulticlassPerceptron(classes, dimension), sum_(w_) {}
  std::vector<Vector> Answer() const override {
    std::vector<Vector> average = sum_;
    for (Vector& w : average) {
      for (double& weight : w) weight /= std::max(1.0, examples_);
    }
    return average;
  }

 private:
  void AddEvaluation() override {
    for (size_t k = 0; k < w_.size(); ++k) {
      for (size_t i = 0; i < w_[k].size(); ++i) sum_[k][i] += w_[k][i];
    }
    examples_ += 1;
  }
  std::vector<Vector> sum_;
  double examples_ = 0;
};

// Gallant 1990 on a winner-take-all group: the pocket has all of its weights at once. kept: the
// latest examples that caused updates, of which the ratchet lets no more become wrong; 0: no
// ratchet.
class PaperMulticlassPocket final : public MulticlassPaper {
 public:
  PaperMulticlassPocket(size_t classes, size_t dimension, size_t kept)
      : MulticlassPaper(classes, dimension), kept_(kept), pocket_(w_) {}
  std::vector<Vector> Answer() const override { return pocket_; }

 private:
  bool Move(const Vector& x, int y, int rival, double margin,
            const std::vector<double>& /*scores*/) override {
    if (margin > 0) {
      // A run whose weights are in the pocket only gets longer there.
      if (++run_ > best_ && (in_pocket_ || Errors(w_) <= Errors(pocket_))) {
        best_ = run_;
        pocket_ = w_;
        in_pocket_ = true;
      }
      return false;
    }
    Add(y, 1, x);
    Add(rival, -1, x);
    run_ = 0;
    in_pocket_ = false;
    examples_.emplace_back(x, y);
    if (examples_.size() > kept_) examples_.pop_front();
    return true;
  }
  size_t Errors(const std::vector<Vector>& weights) const {
    size_t errors = 0;
    for (const auto& [x, y] : examples_) {
      bool wrong = false;
      for (int k = 0; k < static_cast<int>(weights.size()); ++k)
        wrong = wrong || (k != y && Product(weights[k], x) >= Product(weights[y], x));
      errors += wrong ? 1 : 0;
    }
    return errors;
  }
  const size_t kept_;
  std::vector<Vector> pocket_;
  std::deque<std::pair<Vector, int>> examples_;
  uint64_t run_ = 0;
  uint64_t best_ = 0;
  bool in_pocket_ = false;
};

// Crammer et al. 2006, section 8: Phi(x, y) - Phi(x, r) has twice the square of x. variant: 0 (PA),
// 1 or 2.
class PaperMulticlassPassiveAggressive final : public MulticlassPaper {
 public:
  PaperMulticlassPassiveAggressive(size_t classes, size_t dimension, int variant, double c)
      : MulticlassPaper(classes, dimension), variant_(variant), c_(c) {}

 private:
  bool Move(const Vector& x, int y, int rival, double margin,
            const std::vector<double>& /*scores*/) override {
    const double loss = std::max(0.0, 1 - margin);
    if (loss == 0) return false;
    const double square = 2 * Product(x, x);
    const double tau = variant_ == 0   ? loss / square
                       : variant_ == 1 ? std::min(c_, loss / square)
                                       : loss / (square + 1 / (2 * c_));
    Add(y, tau, x);
    Add(rival, -tau, x);
    return true;
  }
  const int variant_;
  const double c_;
};

// Crammer, Kulesza, Dredze 2009, figure 1, on the long vector Phi(x, y) - Phi(x, r), keeping the
// diagonal of its covariance.
class PaperMulticlassArow final : public MulticlassPaper {
 public:
  PaperMulticlassArow(size_t classes, size_t dimension, double r)
      : MulticlassPaper(classes, dimension), sigma_(classes, Vector(dimension, 1)), r_(r) {}

 private:
  bool Move(const Vector& x, int y, int rival, double margin,
            const std::vector<double>& /*scores*/) override {
    if (margin >= 1) return false;
    std::vector<Vector> phi(w_.size(), Vector(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      phi[y][i] += x[i];
      phi[rival][i] -= x[i];
    }
    double variance = 0;
    for (size_t k = 0; k < phi.size(); ++k) {
      for (size_t i = 0; i < x.size(); ++i) variance += phi[k][i] * sigma_[k][i] * phi[k][i];
    }
    const double beta = 1 / (variance + r_);
    for (size_t k = 0; k < phi.size(); ++k) {
      for (size_t i = 0; i < x.size(); ++i) {
        const double moved = sigma_[k][i] * phi[k][i];
        w_[k][i] += (1 - margin) * beta * moved;
        sigma_[k][i] -= beta * moved * moved;
      }
    }
    return true;
  }
  std::vector<Vector> sigma_;
  const double r_;
};

// Gentile 2001, figure 1 with p = 2, on Kesler's vectors of norm 1.
class PaperMulticlassAlma final : public MulticlassPaper {
 public:
  PaperMulticlassAlma(size_t classes, size_t dimension, double alpha)
      : MulticlassPaper(classes, dimension), alpha_(alpha) {}

 private:
  bool Move(const Vector& x, int y, int rival, double margin,
            const std::vector<double>& /*scores*/) override {
    const double norm = std::sqrt(2 * Product(x, x));
    const double gamma = std::sqrt(8.0) / alpha_ / std::sqrt(k_);
    if (margin / norm > (1 - alpha_) * gamma) return false;
    Add(y, std::sqrt(2.0) / std::sqrt(k_) / norm, x);
    Add(rival, -std::sqrt(2.0) / std::sqrt(k_) / norm, x);
    double square = 0;
    for (const Vector& w : w_) square += Product(w, w);
    for (Vector& w : w_) {
      for (double& weight : w) weight /= std::max(1.0, std::sqrt(square));
    }
    k_ += 1;
    return true;
  }
  const double alpha_;
  double k_ = 1;
};

// Gradient descent on the perceptron risk, a step for every `batch` examples.
class PaperMulticlassBatch final : public MulticlassPaper {
 public:
  PaperMulticlassBatch(size_t classes, size_t dimension, uint64_t batch)
      : MulticlassPaper(classes, dimension), batch_(batch), sum_(w_) {}

 private:
  bool Move(const Vector& x, int y, int rival, double margin,
            const std::vector<double>& /*scores*/) override {
    if (margin > 0) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      sum_[y][i] += x[i];
      sum_[rival][i] -= x[i];
    }
    pending_ = true;
    return true;
  }
  void AddEvaluation() override {
    if (++examples_ % batch_ != 0 || !pending_) return;
    CountUpdate();
    for (size_t k = 0; k < w_.size(); ++k) {
      for (size_t i = 0; i < w_[k].size(); ++i) w_[k][i] += sum_[k][i];
      std::fill(sum_[k].begin(), sum_[k].end(), 0.0);
    }
    pending_ = false;
  }
  const uint64_t batch_;
  std::vector<Vector> sum_;
  uint64_t examples_ = 0;
  bool pending_ = false;
};

// Wang, Zhao, Hoi 2012, proposition 1, on the long vector Phi(x, y) - Phi(x, r), keeping the
// diagonal of its covariance.
class PaperMulticlassScw final : public MulticlassPaper {
 public:
  PaperMulticlassScw(size_t classes, size_t dimension, double phi, double c)
      : MulticlassPaper(classes, dimension),
        sigma_(classes, Vector(dimension, 1)),
        phi_(phi),
        c_(c) {}

 private:
  bool Move(const Vector& x, int y, int rival, double margin,
            const std::vector<double>& /*scores*/) override {
    double v = 0;
    for (const int k : {y, rival}) {
      for (size_t i = 0; i < x.size(); ++i) v += x[i] * sigma_[k][i] * x[i];
    }
    if (phi_ * std::sqrt(v) - margin <= 0) return false;
    const double psi = 1 + phi_ * phi_ / 2;
    const double zeta = 1 + phi_ * phi_;
    const double root = std::sqrt(margin * margin * std::pow(phi_, 4) / 4 + v * phi_ * phi_ * zeta);
    const double alpha = std::min(c_, std::max(0.0, (-margin * psi + root) / (v * zeta)));
    const double a = alpha * v * phi_;
    const double u = std::pow(-a + std::sqrt(a * a + 4 * v), 2) / 4;
    const double beta = alpha * phi_ / (std::sqrt(u) + a);
    for (const int k : {y, rival}) {
      for (size_t i = 0; i < x.size(); ++i) {
        const double moved = sigma_[k][i] * x[i];
        w_[k][i] += (k == y ? alpha : -alpha) * moved;
        sigma_[k][i] -= beta * moved * moved;
      }
    }
    return true;
  }
  std::vector<Vector> sigma_;
  const double phi_;
  const double c_;
};

// Gradient descent on -ln P(y), one example at a time (Bishop 2006, equation 4.109).
class PaperSoftmax : public MulticlassPaper {
 public:
  PaperSoftmax(size_t classes, size_t dimension, double eta)
      : MulticlassPaper(classes, dimension), eta_(eta) {}

 protected:
  // Along the negative gradient.
  virtual void Step(int k, double coefficient, const Vector& x) { Add(k, eta_ * coefficient, x); }
  virtual void EndStep() {}

 private:
  bool Move(const Vector& x, int y, int /*rival*/, double /*margin*/,
            const std::vector<double>& scores) override {
    const double greatest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - greatest);
    for (int k = 0; k < static_cast<int>(scores.size()); ++k)
      Step(k, (k == y ? 1 : 0) - std::exp(scores[k] - greatest) / sum, x);
    EndStep();
    return true;
  }
  const double eta_;
};

// The same with steps of eta / sqrt(t), t = 1, 2, ... (Zinkevich 2003).
class PaperSoftmaxZinkevich final : public PaperSoftmax {
 public:
  using PaperSoftmax::PaperSoftmax;

 private:
  void Step(int k, double coefficient, const Vector& x) override {
    PaperSoftmax::Step(k, coefficient / std::sqrt(t_), x);
  }
  void EndStep() override { t_ += 1; }
  double t_ = 1;
};

// AdaGrad with a diagonal, delta = 0 (Duchi, Hazan, Singer 2011, figure 1).
class PaperSoftmaxAdaGrad final : public PaperSoftmax {
 public:
  PaperSoftmaxAdaGrad(size_t classes, size_t dimension, double eta)
      : PaperSoftmax(classes, dimension, eta), squares_(classes, Vector(dimension)) {}

 private:
  void Step(int k, double coefficient, const Vector& x) override {
    Vector scaled(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      squares_[k][i] += std::pow(coefficient * x[i], 2);
      if (squares_[k][i] > 0) scaled[i] = x[i] / std::sqrt(squares_[k][i]);
    }
    PaperSoftmax::Step(k, coefficient, scaled);
  }
  std::vector<Vector> squares_;
};

}  // namespace perceptrond::testing
