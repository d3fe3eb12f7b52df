#include "tests/support/reference_learner.h"

namespace perceptrond::testing {

ReferenceRule::ReferenceRule(const v1::Learner& learner)
    : rule(learner.rule_case()),
      multiclass(learner.has_classes()),
      classes(multiclass ? learner.classes().max_classes() : 1),
      tie(learner.tie_rule()),
      bias(learner.has_bias_input() ? learner.bias_input() : 1),
      class_weights(learner.class_weights().begin(), learner.class_weights().end()) {
  const auto set = [](bool has, double value, double& to) {
    if (has) to = value;
  };
  const auto& logistic = learner.logistic_regression();
  const auto& confident = learner.soft_confidence_weighted();
  set(learner.perceptron().has_step_size(), learner.perceptron().step_size(), step);
  set(learner.batch_perceptron().has_step_size(), learner.batch_perceptron().step_size(), step);
  set(logistic.has_step_size(), logistic.step_size(), step);
  set(logistic.has_update_threshold(), logistic.update_threshold(), threshold);
  if (logistic.steps() != v1::LogisticRegression::STEPS_UNSPECIFIED) steps = logistic.steps();
  set(learner.margin_perceptron().has_margin_slack(), learner.margin_perceptron().margin_slack(),
      slack);
  set(learner.arow().has_regularization(), learner.arow().regularization(), regularization);
  set(learner.passive_aggressive_i().has_aggressiveness(),
      learner.passive_aggressive_i().aggressiveness(), aggressiveness);
  set(learner.passive_aggressive_ii().has_aggressiveness(),
      learner.passive_aggressive_ii().aggressiveness(), aggressiveness);
  set(confident.has_aggressiveness(), confident.aggressiveness(), aggressiveness);
  mini_batch = learner.batch_perceptron().mini_batch();
  // The quantile, looked up.
  phi = confident.confidence() == 0.9 ? 1.2815515655446004 : 0.6744897501960817;
  kernel = learner.kernel_perceptron().kernel();
  if (kernel.kernel_case() == v1::Kernel::KERNEL_NOT_SET) kernel.mutable_rbf();
}

// The offsets, which are last, are apart: their product is added.
double ReferenceForgetron::K(const Vector& x, const Vector& z) const {
  double dot = 0;
  double distance = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    dot += x[i] * z[i];
    distance += (x[i] - z[i]) * (x[i] - z[i]);
  }
  const v1::Kernel::Polynomial& polynomial = kernel_.polynomial();
  if (kernel_.has_rbf())
    dot = std::exp(-(kernel_.rbf().has_gamma() ? kernel_.rbf().gamma() : 1) * distance);
  if (kernel_.has_polynomial())
    dot = std::pow((polynomial.has_coef0() ? polynomial.coef0() : 1) + dot,
                   polynomial.has_degree() ? polynomial.degree() : 2);
  return dot + x.back() * z.back();
}

double ReferenceForgetron::Score(const Vector& x, double* scale) const {
  double score = 0;
  for (const Kept& one : kept_) {
    const double term = one.share * one.label * K(one.x, x);
    score += term;
    if (scale != nullptr) *scale += std::abs(term);
  }
  return score;
}

double ReferenceForgetron::SquaredNorm() const {
  double sum = 0;
  for (const Kept& one : kept_) sum += one.share * one.label * Score(one.x);
  return sum;
}

void ReferenceForgetron::Add(const Vector& x, int label) {
  ++mistakes_;
  kept_.push_back({x, label, 1});
  largest_ = std::max(largest_, K(x, x));
  if (kept_.size() <= budget_) return;
  const Kept& oldest = kept_.front();
  const double mu = oldest.label * Score(oldest.x) / largest_;
  const double sigma = oldest.share;
  const auto damage = [&](double phi) {
    return sigma * sigma * phi * phi + 2 * sigma * phi - 2 * sigma * phi * phi * mu;
  };
  // The largest phi in (0, 1] whose damage is within 15/32 of the mistakes, by bisection: the damage
  // crosses the line once, from below.
  const double most = 15.0 / 32 * static_cast<double>(mistakes_);
  double phi = 1;
  if (damage_ + damage(1) > most) {
    double high = 1;
    phi = 0;
    for (int i = 0; i < 200; ++i) {
      const double middle = (phi + high) / 2;
      (damage_ + damage(middle) <= most ? phi : high) = middle;
    }
  }
  damage_ += damage(phi);
  kept_.pop_front();
  for (Kept& one : kept_) one.share *= phi;
}

std::vector<Vector> ReferenceLearner::Start(const v1::Learner& learner) const {
  Weights w(rule_.classes, Vector(dimension_));
  if (learner.starting_weights().vectors().empty()) return w;
  const v1::WeightVector& start = learner.starting_weights().vectors(0);
  for (int i = 0; i < start.indices_size(); ++i) w[0][start.indices(i)] = start.values(i);
  if (rule_.bias > 0) w[0].back() = start.bias() / rule_.bias;
  return w;
}

std::vector<double> ReferenceLearner::Scores(const Weights& w, const std::vector<bool>& exists,
                                             const Vector& x) const {
  std::vector<double> scores;
  for (size_t k = 0; k < w.size(); ++k)
    scores.push_back(exists[k] ? Product(w[k], x) : std::numeric_limits<double>::quiet_NaN());
  return scores;
}

int ReferenceLearner::Greatest(const std::vector<double>& scores, int except) const {
  int greatest = -1;
  for (int k = 0; k < static_cast<int>(scores.size()); ++k) {
    if (k == except || std::isnan(scores[k])) continue;
    if (greatest < 0 || scores[k] > scores[greatest]) greatest = k;
  }
  return greatest;
}

int ReferenceLearner::Label(const std::vector<double>& scores) const {
  if (rule_.multiclass) return Greatest(scores, -1);
  if (scores[0] == 0) return rule_.tie == v1::TIE_RULE_POSITIVE ? 1 : -1;
  return scores[0] > 0 ? 1 : -1;
}

bool ReferenceLearner::IsMistake(double margin, int predicted, int label) const {
  if (rule_.tie == v1::TIE_RULE_CORRECT) return margin < 0;
  return rule_.tie == v1::TIE_RULE_POSITIVE ? predicted != label : margin <= 0;
}

ReferenceView ReferenceLearner::ViewBy(const Weights& w, const Vector& x, int label) const {
  const std::vector<double> scores = Scores(w, exists_, x);
  ReferenceView view;
  view.predicted = Label(scores);
  // Scores of weights that never moved are 0 in any arithmetic.
  std::vector<bool> moved(w.size());
  for (size_t k = 0; k < w.size(); ++k) {
    for (size_t i = 0; i < x.size(); ++i) {
      view.scale += std::abs(w[k][i] * x[i]);
      moved[k] = moved[k] || (moved_[k][i] != 0 && x[i] != 0);
    }
  }
  const auto consider = [&](double distance, bool rounded) {
    if (rounded && distance < view.clearance) view.clearance = distance;
  };
  if (!rule_.multiclass) {
    view.score = scores[0];
    view.mistake = IsMistake(label * scores[0], view.predicted, label);
    consider(std::abs(scores[0]), moved[0]);
    return view;
  }
  view.rival = Greatest(scores, label);
  const bool exists = exists_[label];
  view.score = view.rival < 0 ? std::numeric_limits<double>::infinity()
                              : (exists ? scores[label] : 0) - scores[view.rival];
  view.mistake = !exists || IsMistake(view.score, view.predicted, label);
  // Equal scores are told apart by the numbers of the classes: two that nearly are would be by
  // rounding.
  for (size_t a = 0; a < scores.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      if (!std::isnan(scores[a] - scores[b]))
        consider(std::abs(scores[a] - scores[b]), moved[a] || moved[b]);
    }
  }
  consider(std::abs(view.score),
           (exists && moved[label]) || (view.rival >= 0 && moved[view.rival]));
  return view;
}

double ReferenceLearner::Variance(const Vector& x, int label, int rival) const {
  double variance = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!rule_.multiclass) variance += x[i] * variance_[0][i] * x[i];
    if (rule_.multiclass && rival >= 0)
      variance += x[i] * (variance_[label][i] + variance_[rival][i]) * x[i];
  }
  return variance;
}

// The margin that the rule asks for: a smaller one calls for an update, besides every mistake.
void ReferenceLearner::SetUpdate(const Vector& x, int label, ReferenceView& view) const {
  const double margin = rule_.multiclass ? view.score : label * view.score;
  view.update = view.mistake;
  if (rule_.multiclass && view.rival < 0) return;
  double asked = 0;
  switch (rule_.rule) {
    case v1::Learner::kMarginPerceptron:
      asked = (1 - rule_.slack) * std::sqrt(8.0) / rule_.slack / std::sqrt(k_) *
              std::sqrt(SquaredNorm(x));
      view.update |= margin <= asked;
      view.clearance = std::min(view.clearance, std::abs(margin - asked));
      return;
    case v1::Learner::kPassiveAggressive:
    case v1::Learner::kPassiveAggressiveI:
    case v1::Learner::kPassiveAggressiveIi:
      view.update |= margin < 1;
      view.update_clearance = std::abs(margin - 1);
      return;
    case v1::Learner::kArow:
      view.update |= margin < 1;
      // The variances shrink, by however little the weights move.
      view.clearance = std::min(view.clearance, std::abs(margin - 1));
      return;
    case v1::Learner::kSoftConfidenceWeighted:
      asked = rule_.phi * std::sqrt(Variance(x, label, view.rival));
      view.update |= margin < asked;
      view.update_clearance = std::abs(margin - asked);
      return;
    case v1::Learner::kLogisticRegression: {
      double others = std::exp(-margin);
      if (rule_.multiclass) {
        const std::vector<double> scores = Scores(w_, exists_, x);
        const double own = exists_[label] ? scores[label] : 0;
        others = 0;
        for (int k = 0; k < static_cast<int>(scores.size()); ++k)
          others += k == label || std::isnan(scores[k]) ? 0 : std::exp(scores[k] - own);
      }
      const double wrong = others / (1 + others);
      view.update |= wrong > rule_.threshold;
      view.clearance = std::min(view.clearance, std::abs(wrong - rule_.threshold));
      return;
    }
    default:
      return;
  }
}

ReferenceView ReferenceLearner::View(const Vector& x, int label) const {
  if (has_kernel()) {
    ReferenceView view;
    view.score = forgetron_.Score(x, &view.scale);
    view.predicted = Label({view.score});
    view.update = view.mistake = IsMistake(label * view.score, view.predicted, label);
    if (!forgetron_.IsExact()) view.clearance = std::abs(view.score);
    return view;
  }
  ReferenceView view = ViewBy(w_, x, label);
  SetUpdate(x, label, view);
  view.update |= !exists_[rule_.multiclass ? label : 0];
  return view;
}

ReferenceView ReferenceLearner::Learn(const Vector& x, int label, double weight) {
  const ReferenceView view = View(x, label);
  if (!rule_.class_weights.empty())
    weight *= rule_.class_weights[rule_.multiclass ? label : (label > 0 ? 1 : 0)];
  if (view.update) {
    ++updates_;
    if (rule_.multiclass) exists_[label] = true;
    Update(x, label, weight, view);
    if (ratchet_ > 0) kept_.emplace_back(x, label);
    if (kept_.size() > ratchet_) kept_.pop_front();
  }
  AfterExample(view.update);
  return view;
}

void ReferenceLearner::Update(const Vector& x, int label, double weight,
                              const ReferenceView& view) {
  if (has_kernel()) return forgetron_.Add(x, label);
  if (rule_.multiclass && rule_.rule == v1::Learner::kLogisticRegression)
    return MoveAllClasses(x, label, weight);
  // Nothing moves against a class that is alone.
  if (rule_.multiclass && view.rival < 0) return;
  const double margin = rule_.multiclass ? view.score : label * view.score;
  const double norm = SquaredNorm(x);
  double length = 0;
  double shrink = 0;
  switch (rule_.rule) {
    case v1::Learner::kMarginPerceptron:
      length = norm > 0 ? std::sqrt(2.0) / std::sqrt(norm * k_) : 0;
      break;
    case v1::Learner::kPassiveAggressive:
      length = norm > 0 ? std::max(0.0, 1 - margin) / norm : 0;
      break;
    case v1::Learner::kPassiveAggressiveI:
      length =
          norm > 0 ? std::min(weight * rule_.aggressiveness, std::max(0.0, 1 - margin) / norm) : 0;
      break;
    case v1::Learner::kPassiveAggressiveIi:
      length = std::max(0.0, 1 - margin) / (norm + 1 / (2 * weight * rule_.aggressiveness));
      break;
    case v1::Learner::kArow:
      shrink = 1 / (Variance(x, label, view.rival) + rule_.regularization);
      length = std::max(0.0, 1 - margin) * shrink;
      break;
    case v1::Learner::kSoftConfidenceWeighted: {
      const double v = Variance(x, label, view.rival);
      if (v == 0) return;
      const double psi = 1 + rule_.phi * rule_.phi / 2;
      const double zeta = 1 + rule_.phi * rule_.phi;
      const double root = std::sqrt(margin * margin * std::pow(rule_.phi, 4) / 4 +
                                    v * rule_.phi * rule_.phi * zeta);
      length = std::min(weight * rule_.aggressiveness,
                        std::max(0.0, (root - margin * psi) / (v * zeta)));
      const double a = length * v * rule_.phi;
      const double u = std::pow(-a + std::sqrt(a * a + 4 * v), 2) / 4;
      shrink = length * rule_.phi / (std::sqrt(u) + a);
      break;
    }
    case v1::Learner::kLogisticRegression:
      MoveByGradient(0, label * weight / (1 + std::exp(margin)), x);
      ++steps_made_;
      return;
    case v1::Learner::kBatchPerceptron:
      length = weight;
      break;
    default:
      length = rule_.step * weight;
  }
  Weights& target = rule_.rule == v1::Learner::kBatchPerceptron ? batch_ : w_;
  const bool second_order =
      rule_.rule == v1::Learner::kArow || rule_.rule == v1::Learner::kSoftConfidenceWeighted;
  const auto move = [&](size_t k, double signed_length) {
    if (second_order) return MoveAlongVariance(k, signed_length, shrink, x);
    Move(target, k, signed_length, x);
  };
  if (rule_.multiclass) {
    move(static_cast<size_t>(label), length);
    move(static_cast<size_t>(view.rival), -length);
  } else {
    move(0, label * length);
  }
  pending_ |= rule_.rule == v1::Learner::kBatchPerceptron;
  if (rule_.rule == v1::Learner::kMarginPerceptron) LimitNorm();
}

void ReferenceLearner::MoveByGradient(size_t k, double coefficient, const Vector& x) {
  if (rule_.steps != v1::LogisticRegression::STEPS_ADAPTIVE) {
    const bool decreases = rule_.steps == v1::LogisticRegression::STEPS_DECREASING;
    const double step = rule_.step / (decreases ? std::sqrt(1 + steps_made_) : 1);
    return Move(w_, k, step * coefficient, x);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double gradient = coefficient * x[i];
    squares_[k][i] += gradient * gradient;
    if (gradient == 0) continue;
    w_[k][i] += rule_.step * gradient / std::sqrt(squares_[k][i]);
    moved_[k][i] = 1;
  }
}

void ReferenceLearner::MoveAllClasses(const Vector& x, int label, double weight) {
  const std::vector<double> scores = Scores(w_, exists_, x);
  double sum = 0;
  for (const double score : scores) sum += std::isnan(score) ? 0 : std::exp(score);
  size_t classes = 0;
  for (size_t k = 0; k < scores.size(); ++k) {
    if (std::isnan(scores[k])) continue;
    const double own = static_cast<int>(k) == label ? 1 : 0;
    MoveByGradient(k, weight * (own - std::exp(scores[k]) / sum), x);
    ++classes;
  }
  // The gradient of a class that is alone is 0.
  if (classes > 1) ++steps_made_;
}

void ReferenceLearner::MoveAlongVariance(size_t k, double length, double shrink, const Vector& x) {
  if (length == 0) return;
  for (size_t i = 0; i < x.size(); ++i) {
    const double moved = variance_[k][i] * x[i];
    w_[k][i] += length * moved;
    if (moved != 0) moved_[k][i] = 1;
    variance_[k][i] -= shrink * moved * moved;
  }
}

void ReferenceLearner::LimitNorm() {
  double square = 0;
  for (const Vector& w : w_) square += Product(w, w);
  for (Vector& w : w_) {
    for (double& weight : w) weight /= std::max(1.0, std::sqrt(square));
  }
  k_ += 1;
}

void ReferenceLearner::EndBatch() {
  if (!pending_) return;
  pending_ = false;
  ++updates_;
  for (size_t k = 0; k < w_.size(); ++k) {
    Move(w_, k, rule_.step, batch_[k]);
    std::fill(batch_[k].begin(), batch_[k].end(), 0.0);
  }
}

size_t ReferenceLearner::Errors(const Weights& w) {
  size_t errors = 0;
  for (const auto& [x, label] : kept_) {
    const ReferenceView view = ViewBy(w, x, label);
    errors += view.mistake ? 1 : 0;
    ratchet_clearance_ = std::min(ratchet_clearance_, view.clearance);
  }
  return errors;
}

void ReferenceLearner::AfterExample(bool updated) {
  ++examples_;
  if (rule_.mini_batch > 0 && examples_ % rule_.mini_batch == 0) EndBatch();
  if (wrapper_ == v1::Learner::kAveraged) {
    for (size_t k = 0; k < w_.size(); ++k) Move(sum_, k, 1, w_[k]);
  }
  if (updated) {
    run_ = 0;
    in_pocket_ = false;
    if (wrapper_ == v1::Learner::kVoted) voters_.push_back({w_, exists_, 1});
    if (voters_.size() > budget_ + 1) voters_.pop_front();
    return;
  }
  voters_.back().votes += 1;
  if (++run_ <= best_) return;
  // A run whose weights are in the pocket only gets longer there.
  if (!in_pocket_ && ratchet_ > 0 && Errors(w_) > Errors(pocket_)) return;
  pocket_ = w_;
  best_ = run_;
  in_pocket_ = true;
}

std::vector<double> ReferenceLearner::PredictedScores(const Vector& x, double& clearance) const {
  clearance = std::numeric_limits<double>::infinity();
  if (has_kernel()) return {forgetron_.Score(x)};
  const auto of = [&](const Weights& w) { return Scores(w, exists_, x); };
  if (wrapper_ == v1::Learner::kPocket) return of(pocket_);
  if (wrapper_ == v1::Learner::kAveraged && examples_ > 0) {
    std::vector<double> scores = of(sum_);
    for (double& score : scores) score /= static_cast<double>(examples_);
    return scores;
  }
  if (wrapper_ != v1::Learner::kVoted) return of(w_);
  std::vector<double> votes(w_.size());
  double all = 0;
  for (const Voter& voter : voters_) {
    const std::vector<double> scores = Scores(voter.w, voter.exists, x);
    const int label = Label(scores);
    if (rule_.multiclass && label < 0) continue;
    for (size_t a = 0; a < scores.size(); ++a) {
      if (!rule_.multiclass) clearance = std::min(clearance, std::abs(scores[0]));
      for (size_t b = 0; b < a; ++b) {
        if (!std::isnan(scores[a] - scores[b]))
          clearance = std::min(clearance, std::abs(scores[a] - scores[b]));
      }
    }
    votes[rule_.multiclass ? static_cast<size_t>(label) : 0] +=
        rule_.multiclass ? voter.votes : voter.votes * label;
    all += voter.votes;
  }
  for (size_t k = 0; k < votes.size(); ++k) {
    if (!exists_[k]) votes[k] = std::numeric_limits<double>::quiet_NaN();
    if (all > 0) votes[k] /= all;
  }
  return votes;
}

}  // namespace perceptrond::testing
