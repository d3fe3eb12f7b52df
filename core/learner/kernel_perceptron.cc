#include "core/learner/kernel_perceptron.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/linear.h"
#include "core/learner/state.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Of the mistakes, what the damage may come to.
constexpr double kDamageShare = 15.0 / 32;

// Psi.
double Damage(double share, double signed_score) {
  return share * share + 2 * share - 2 * share * signed_score;
}

// The largest phi in (0, 1] with Damage(phi share, phi signed_score) <= room: a parabola in phi,
// through 0 with slope 2 share.
double LargestShrinkage(double share, double signed_score, double room) {
  const double a = share * share - 2 * share * signed_score;
  const double b = 2 * share;
  if (a + b <= room) return 1;
  // Where it first reaches room, written so that no a is too small.
  return 2 * room / (b + std::sqrt(std::max(0.0, b * b + 4 * a * room)));
}

// Shares shrunk from -1 or +1, of images within the radius.
bool AreKept(const RowStore& rows, const Kernel& kernel, double squared_radius) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::abs(rows.coefficient(i)) > 1) return false;
    // Summed in another order when it was kept.
    const double squared_norm = kernel.OfItself(Kernel::Example(rows.row(i)));
    if (squared_norm > squared_radius * (1 + 1e-9)) return false;
  }
  return true;
}

}  // namespace

KernelPerceptron::KernelPerceptron(const LearnerSettings& settings, size_t size)
    : tie_rule_(settings.tie_rule), budget_(settings.budget), kernel_(settings), size_(size) {}

double KernelPerceptron::Score(const Kernel::Example& example) const {
  double score = 0;
  for (size_t i = 0; i < rows_.size(); ++i)
    score += rows_.coefficient(i) * kernel_(example, rows_.row(i), squared_norms_[i]);
  return score;
}

double KernelPerceptron::Score(const Row& row) const { return Score(Kernel::Example(row)); }

int32_t KernelPerceptron::Predict(double score) const { return PredictByTieRule(score, tie_rule_); }

Evaluation KernelPerceptron::Evaluate(const Row& row, int32_t label) const {
  Evaluation evaluation;
  evaluation.score = Score(row);
  evaluation.predicted = Predict(evaluation.score);
  evaluation.mistake = IsMistake(evaluation.score, label, tie_rule_);
  evaluation.update = evaluation.mistake;
  evaluation.loss = std::max(0.0, -label * evaluation.score);
  return evaluation;
}

// An image beyond float32's range would drown every other.
bool KernelPerceptron::CanUpdate(const Row& row, const Target& /*target*/,
                                 const Evaluation& /*judgement*/) const {
  return std::sqrt(kernel_.OfItself(Kernel::Example(row))) <= std::numeric_limits<float>::max();
}

void KernelPerceptron::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  const Kernel::Example example(row);
  ++mistakes_;
  squared_norm_ += 2 * target.label * evaluation.score + kernel_.OfItself(example);
  Keep(row, example, target);
  if (rows_.size() > budget_) ShrinkAndForget();
  squared_norm_ = std::max(0.0, squared_norm_);
}

void KernelPerceptron::Keep(const Row& row, const Kernel::Example& example, const Target& target) {
  rows_.Push(row, target.label);
  squared_norms_.push_back(SquaredNorm(rows_.row(rows_.size() - 1)));
  squared_radius_ = std::max(squared_radius_, kernel_.OfItself(example));
}

void KernelPerceptron::ShrinkAndForget() {
  const Kernel::Example oldest(rows_.row(0));
  const double share = std::abs(rows_.coefficient(0));
  const double score = (rows_.coefficient(0) < 0 ? -1 : 1) * Score(oldest);
  // In units of R^2, which is 0 if every image is.
  const double scaled = squared_radius_ > 0 ? score / squared_radius_ : 0;
  const double room = std::max(0.0, kDamageShare * static_cast<double>(mistakes_) - damage_);
  const double phi = LargestShrinkage(share, scaled, room);
  damage_ += Damage(phi * share, phi * scaled);
  // ||phi f - phi a K_r||^2.
  squared_norm_ =
      phi * phi * (squared_norm_ - 2 * share * score + share * share * kernel_.OfItself(oldest));
  rows_.Scale(phi);
  rows_.Pop();
  squared_norms_.erase(squared_norms_.begin());
}

double KernelPerceptron::Answer(const Row& row, uint64_t /*age*/) const { return Score(row); }

// Every update is one more row, and the oldest go first.
std::vector<AnswerTerm> KernelPerceptron::AnswerTerms(const Row& row) const {
  const Kernel::Example example(row);
  std::vector<AnswerTerm> terms;
  terms.reserve(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double share = rows_.coefficient(i);
    const double similarity = kernel_(example, rows_.row(i), squared_norms_[i]);
    // Shares that shrank to 0 keep their sign.
    terms.push_back(
        {rows_.size() - 1 - i, std::signbit(share) ? -1 : 1, similarity, share * similarity});
  }
  return terms;
}

double KernelPerceptron::answer_squared_norm(uint64_t /*age*/) const { return squared_norm(); }

Hypothesis KernelPerceptron::AnswerHypothesis(uint64_t /*age*/) const { return {}; }

void KernelPerceptron::Grow(size_t size) { size_ = std::max(size_, size); }

double KernelPerceptron::squared_norm() const {
  double shares = 0;
  for (size_t i = 0; i < rows_.size(); ++i) shares += rows_.coefficient(i);
  const double offset_weight = kernel_.offset_value() * shares;
  return std::max(0.0, squared_norm_ - offset_weight * offset_weight);
}

LearnerStateView KernelPerceptron::State() const {
  LearnerStateView state;
  Append(static_cast<double>(size_), state);
  Append(static_cast<double>(mistakes_), state);
  Append(damage_, state);
  Append(squared_radius_, state);
  Append(squared_norm_, state);
  Append(rows_, state);
  return state;
}

bool KernelPerceptron::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  const uint64_t size = reader.Count();
  const uint64_t mistakes = reader.Count();
  const double damage = reader.Scalar();
  const double squared_radius = reader.Scalar();
  const double squared_norm = reader.Scalar();
  RowStore rows = reader.Rows(budget_, size);
  if (!reader.Done() || squared_norm < 0 || !AreKept(rows, kernel_, squared_radius)) return false;
  size_ = size;
  mistakes_ = mistakes;
  damage_ = damage;
  squared_radius_ = squared_radius;
  squared_norm_ = squared_norm;
  rows_ = std::move(rows);
  squared_norms_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) squared_norms_.push_back(SquaredNorm(rows_.row(i)));
  return true;
}

}  // namespace perceptrond
