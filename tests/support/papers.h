// The update rules as their papers print them, in float64, with whole vectors and plain loops: what
// the product is compared with. Slow on purpose. Uses nothing of core/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/svmlight.h"

namespace perceptrond::testing {

using Vector = std::vector<double>;

inline double Product(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Examples are augmented: the offset's coordinate is the last.
class Paper {
 public:
  virtual ~Paper() = default;
  // Evaluates and learns; says whether the prediction was wrong (y s <= 0).
  bool Learn(const Vector& x, int y) {
    const double signed_score = y * Score(x);
    if (Move(x, y, signed_score)) ++updates_;
    AddEvaluation();
    return signed_score <= 0;
  }
  // A pass over the data ends.
  virtual void EndPass() {}
  // What it learns by.
  virtual double Score(const Vector& x) const { return Product(w_, x); }
  // What it answers with, if that is one vector.
  virtual Vector Answer() const { return w_; }
  // What it answers, as it stands now.
  virtual std::function<double(const Vector&)> Answers() const {
    return [answer = Answer()](const Vector& x) { return Product(answer, x); };
  }
  uint64_t updates() const { return updates_; }

 protected:
  explicit Paper(size_t dimension) : w_(dimension) {}
  virtual bool Move(const Vector& x, int y, double signed_score) = 0;
  virtual void AddEvaluation() {}
  void Add(double step, const Vector& x) {
    for (size_t i = 0; i < x.size(); ++i) w_[i] += step * x[i];
  }
  Vector w_;
  uint64_t updates_ = 0;
};

// Makes a paper's rule for vectors of a dimension; `offset` says whether their last coordinate is
// the offset's.
using MakePaper = std::function<std::unique_ptr<Paper>(size_t dimension, bool offset)>;

template <typename P, typename... Args>
MakePaper Of(Args... args) {
  return [=](size_t dimension, bool offset) -> std::unique_ptr<Paper> {
    if constexpr (std::is_constructible_v<P, size_t, bool, Args...>)
      return std::make_unique<P>(dimension, offset, args...);
    else
      return std::make_unique<P>(dimension, args...);
  };
}

// Rosenblatt 1958.
class PaperPerceptron final : public Paper {
 public:
  explicit PaperPerceptron(size_t dimension) : Paper(dimension) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score > 0) return false;
    Add(y, x);
    return true;
  }
};

// Freund, Schapire 1999, figure 1, with the average in place of the vote: every example's weights
// are summed as they stand.
class PaperAveraged final : public Paper {
 public:
  explicit PaperAveraged(size_t dimension) : Paper(dimension), sum_(dimension) {}
  Vector Answer() const override {
    Vector average = sum_;
    for (double& weight : average) weight /= static_cast<double>(examples_);
    return average;
  }

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score > 0) return false;
    Add(y, x);
    return true;
  }
  void AddEvaluation() override {
    for (size_t i = 0; i < w_.size(); ++i) sum_[i] += w_[i];
    ++examples_;
  }
  Vector sum_;
  uint64_t examples_ = 0;
};

// Gallant 1990, the pocket algorithm without ratchet.
class PaperPocket final : public Paper {
 public:
  explicit PaperPocket(size_t dimension) : Paper(dimension), pocket_(dimension) {}
  Vector Answer() const override { return pocket_; }

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score > 0) {
      // A run's weights go to the pocket as soon as it is the longest.
      if (++run_ > best_) {
        best_ = run_;
        pocket_ = w_;
      }
      return false;
    }
    Add(y, x);
    run_ = 0;
    return true;
  }
  Vector pocket_;
  uint64_t run_ = 0;
  uint64_t best_ = 0;
};

// Gentile 2001, figure 1 with p = 2: examples and weights of norm at most 1.
class PaperAlma final : public Paper {
 public:
  PaperAlma(size_t dimension, double alpha) : Paper(dimension), alpha_(alpha) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    const double norm = std::sqrt(Product(x, x));
    const double gamma = std::sqrt(8.0) / alpha_ / std::sqrt(k_);
    if (signed_score / norm > (1 - alpha_) * gamma) return false;
    Add(y * std::sqrt(2.0) / std::sqrt(k_) / norm, x);
    const double length = std::sqrt(Product(w_, w_));
    for (double& weight : w_) weight /= std::max(1.0, length);
    k_ += 1;
    return true;
  }
  const double alpha_;
  double k_ = 1;
};

// Crammer et al. 2006, figure 1. variant: 0 (PA), 1 or 2.
class PaperPassiveAggressive final : public Paper {
 public:
  PaperPassiveAggressive(size_t dimension, int variant, double c)
      : Paper(dimension), variant_(variant), c_(c) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    const double loss = std::max(0.0, 1 - signed_score);
    if (loss == 0) return false;
    const double square = Product(x, x);
    const double tau = variant_ == 0   ? loss / square
                       : variant_ == 1 ? std::min(c_, loss / square)
                                       : loss / (square + 1 / (2 * c_));
    Add(tau * y, x);
    return true;
  }
  const int variant_;
  const double c_;
};

// Crammer, Kulesza, Dredze 2009, figure 1, keeping the diagonal of the covariance.
class PaperArow final : public Paper {
 public:
  PaperArow(size_t dimension, double r) : Paper(dimension), sigma_(dimension, 1), r_(r) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score >= 1) return false;
    double variance = 0;
    for (size_t i = 0; i < x.size(); ++i) variance += x[i] * sigma_[i] * x[i];
    const double beta = 1 / (variance + r_);
    const double alpha = std::max(0.0, 1 - signed_score) * beta;
    for (size_t i = 0; i < x.size(); ++i) w_[i] += alpha * y * sigma_[i] * x[i];
    for (size_t i = 0; i < x.size(); ++i) sigma_[i] -= beta * sigma_[i] * x[i] * x[i] * sigma_[i];
    return true;
  }
  Vector sigma_;
  const double r_;
};

// Wang, Zhao, Hoi 2012, algorithm 1 with proposition 1, keeping the diagonal of the covariance. phi
// is the quantile, looked up.
class PaperScw final : public Paper {
 public:
  PaperScw(size_t dimension, double phi, double c)
      : Paper(dimension), sigma_(dimension, 1), phi_(phi), c_(c) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    double upsilon = 0;
    for (size_t i = 0; i < x.size(); ++i) upsilon += x[i] * sigma_[i] * x[i];
    if (phi_ * std::sqrt(upsilon) - signed_score <= 0) return false;
    const double psi = 1 + phi_ * phi_ / 2;
    const double zeta = 1 + phi_ * phi_;
    const double m = signed_score;
    const double alpha =
        std::min(c_, std::max(0.0, 1 / (upsilon * zeta) *
                                       (-m * psi + std::sqrt(m * m * std::pow(phi_, 4) / 4 +
                                                             upsilon * phi_ * phi_ * zeta))));
    const double u = std::pow(-alpha * upsilon * phi_ +
                                  std::sqrt(std::pow(alpha * upsilon * phi_, 2) + 4 * upsilon),
                              2) /
                     4;
    const double beta = alpha * phi_ / (std::sqrt(u) + upsilon * alpha * phi_);
    for (size_t i = 0; i < x.size(); ++i) w_[i] += alpha * y * sigma_[i] * x[i];
    for (size_t i = 0; i < x.size(); ++i) sigma_[i] -= beta * sigma_[i] * x[i] * x[i] * sigma_[i];
    return true;
  }
  Vector sigma_;
  const double phi_;
  const double c_;
};

// Gradient descent on ln(1 + e^(-y s)), one example at a time.
class PaperLogistic final : public Paper {
 public:
  PaperLogistic(size_t dimension, double eta) : Paper(dimension), eta_(eta) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    Add(eta_ * y / (1 + std::exp(signed_score)), x);
    return true;
  }
  const double eta_;
};

// The same with steps of eta / sqrt(t), t = 1, 2, ... (Zinkevich 2003).
class PaperZinkevich final : public Paper {
 public:
  PaperZinkevich(size_t dimension, double eta) : Paper(dimension), eta_(eta) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    Add(eta_ / std::sqrt(++t_) * y / (1 + std::exp(signed_score)), x);
    return true;
  }
  const double eta_;
  double t_ = 0;
};

// AdaGrad with a diagonal, delta = 0 (Duchi, Hazan, Singer 2011, figure 1).
class PaperAdaGrad final : public Paper {
 public:
  PaperAdaGrad(size_t dimension, double eta) : Paper(dimension), eta_(eta), squares_(dimension) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    Vector step(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double gradient = -y * x[i] / (1 + std::exp(signed_score));
      squares_[i] += gradient * gradient;
      if (gradient != 0) step[i] = -eta_ * gradient / std::sqrt(squares_[i]);
    }
    Add(1, step);
    return true;
  }
  const double eta_;
  Vector squares_;
};

// The example as a whole vector, the constant 1 last if `offset`.
inline Vector Augmented(const SvmExample& example, size_t dimension, bool offset) {
  Vector x(dimension + (offset ? 1 : 0));
  for (size_t i = 0; i < example.indices.size(); ++i) {
    if (example.indices[i] < dimension) x[example.indices[i]] = example.values[i];
  }
  if (offset) x.back() = 1;
  return x;
}

}  // namespace perceptrond::testing
