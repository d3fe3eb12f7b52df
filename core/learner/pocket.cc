// The pocket wrapper: keeps in its pocket the weights that had the longest run of examples without
// an update, and predicts with those. For data that no weights separate. The rule learns as without
// it.
//
//   predict   by the scores of the pocket's weights, or of the newest once they qualify for it
//   pocket    when a run ends that was longer than the pocket's, its weights, those of all vectors,
//             replace the pocket's: O(K features), as often as the record is broken. A class that
//             appears later has weights of zero there
//   ratchet   with ratchet_examples = N: only if they also err on no more of the latest N examples
//             that caused updates. These are kept and scored at each update: O(K N row.size). So
//             luck alone wins no place. Gallant asks for fewer errors, but of all examples, where
//             as many is no improvement. Of the N kept it says that they cannot tell the two apart,
//             and the longer run decides as it does without a ratchet; otherwise weights that
//             separate everything would stay outside once those in the pocket are right on the N
//   bound     over the perceptron: its bound, on its updates; the pocket converges in probability
//             to the weights with the fewest errors when examples are drawn at random, for several
//             classes too, since by Kesler's construction their run is one over one long vector
//   source    Gallant: Perceptron-Based Learning Algorithms, IEEE Trans. Neural Networks 1, 1990
//             (winner-take-all groups for several classes)
//
// Memory: as much again as the weights, and the N rows.
#include <memory>
#include <utility>

#include "core/learner/linear_predictor.h"

namespace perceptrond {
namespace {

class Pocket final : public LinearPredictor, public PredictionWeights {
 public:
  Pocket(const LearnerSettings& settings, const ScoreVectors& learned)
      : Pocket(settings.ratchet_examples, learned, learned) {}

  void Score(const Row& row, uint64_t age, std::span<double> scores) const override;
  double squared_norm(uint64_t age) const override { return SquaredNorm(Best(age)); }
  std::vector<ScoreTerm> Terms(uint64_t age) const override { return TermsOf(Best(age)); }
  PredictionWeights* weights() override { return this; }
  Hypothesis MakeHypothesis(size_t k, uint64_t age) const override {
    return perceptrond::MakeHypothesis(Best(age), k);
  }
  double FeatureWeight(size_t k, uint32_t index, uint64_t age) const override {
    return Best(age)[k].weights[index];
  }
  // 0 for updates after the weights in the pocket.
  std::optional<double> PartOfUpdate(uint64_t update_age, uint64_t age) const override;
  // The pocket holds the new weights too, without a run.
  void WeightsReplaced(uint64_t age) override;
  void BeforeUpdate(const LinearUpdate& update) override;
  void AfterUpdate(const LinearUpdate& update) override;
  void Resize() override;
  size_t arrays_per_vector() const override { return 1; }
  void AppendTo(LearnerStateView& state) const override;
  std::unique_ptr<LinearPredictor> Read(StateReader& state,
                                        const ScoreVectors& read) const override;
  void Restored() override { Compare(); }

 private:
  Pocket(size_t ratchet, const ScoreVectors& learned, ScoreVectors pocket)
      : LinearPredictor(learned), ratchet_(ratchet), pocket_(std::move(pocket)) {}

  // The weights that predict. Their scale is 1: no rule that allows the pocket changes it.
  const ScoreVectors& Best(uint64_t age) const;
  // Whether the newest weights qualify for the pocket after a run.
  bool Wins(uint64_t run) const { return run > best_run_ && ratchet_turns_; }
  // The mistakes of these weights on the ratchet's rows.
  size_t Errors(const ScoreVectors& weights) const;
  // Sets ratchet_turns_.
  void Compare();

  // N, the rows that the ratchet compares weights on; 0 if there is no ratchet.
  const size_t ratchet_;
  ScoreVectors pocket_;
  // The run that the pocket's weights had.
  uint64_t best_run_ = 0;
  // Examples evaluated when the pocket's weights were superseded: the updates before made them. 0:
  // they were not, or, with a run, it is not known.
  uint64_t pocket_end_ = 0;
  // Examples evaluated when the newest weights came to be.
  uint64_t run_start_ = 0;
  // The latest N examples that caused updates; coefficients: their labels.
  RowStore kept_;
  // The newest weights err on no more of them than the pocket's; always so without a ratchet.
  bool ratchet_turns_ = true;
};

const ScoreVectors& Pocket::Best(uint64_t age) const {
  return age > run_start_ && Wins(age - run_start_) ? learned() : pocket_;
}

void Pocket::Score(const Row& row, uint64_t age, std::span<double> scores) const {
  Best(age).Scores(row, scores);
}

std::optional<double> Pocket::PartOfUpdate(uint64_t update_age, uint64_t age) const {
  const bool newest = &Best(age) == &learned();
  if (!newest && best_run_ > 0 && pocket_end_ == 0) return std::nullopt;
  return newest || update_age < pocket_end_ ? 1 : 0;
}

void Pocket::BeforeUpdate(const LinearUpdate& update) {
  const uint64_t run = update.target.age - run_start_;
  if (!Wins(run)) return;
  pocket_ = learned();
  best_run_ = run;
  pocket_end_ = update.target.age;
}

void Pocket::AfterUpdate(const LinearUpdate& update) {
  run_start_ = update.target.age + 1;
  if (ratchet_ == 0) return;
  kept_.Push(update.row, update.target.label);
  if (kept_.size() > ratchet_) kept_.Pop();
  Compare();
}

size_t Pocket::Errors(const ScoreVectors& weights) const {
  ClassScores room(weights.count());
  const std::span<double> scores(room.data(), room.size());
  size_t errors = 0;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const auto label = static_cast<int32_t>(kept_.coefficient(i));
    weights.Scores(kept_.row(i), scores);
    errors += weights.decision().Evaluate(scores, label).mistake ? 1 : 0;
  }
  return errors;
}

void Pocket::Compare() { ratchet_turns_ = ratchet_ == 0 || Errors(learned()) <= Errors(pocket_); }

void Pocket::WeightsReplaced(uint64_t age) {
  pocket_ = learned();
  best_run_ = 0;
  pocket_end_ = 0;
  run_start_ = age;
}

// A class that the newest weights have exists in the pocket too, with weights of zero there.
void Pocket::Resize() { pocket_.GrowLike(learned()); }

void Pocket::AppendTo(LearnerStateView& state) const {
  AppendWeights(pocket_, state);
  Append(static_cast<double>(best_run_), state);
  Append(static_cast<double>(run_start_), state);
  Append(kept_, state);
  // Left out at 0; older states do not have it.
  if (pocket_end_ > 0) Append(static_cast<double>(pocket_end_), state);
}

std::unique_ptr<LinearPredictor> Pocket::Read(StateReader& state, const ScoreVectors& read) const {
  std::unique_ptr<Pocket> restored(new Pocket(ratchet_, learned(), ReadWeights(state, read)));
  restored->best_run_ = state.Count();
  restored->run_start_ = state.Count();
  restored->kept_ = state.Rows(ratchet_, read.size());
  if (state.HasMoreScalars()) {
    restored->pocket_end_ = state.Count();
    // Zero is left out, and without a run nothing was superseded.
    if (restored->pocket_end_ == 0 || restored->best_run_ == 0) return nullptr;
  }
  for (size_t i = 0; i < restored->kept_.size(); ++i) {
    const double label = restored->kept_.coefficient(i);
    if (!(label >= -1 && label < static_cast<double>(read.max_count()) + 1) ||
        !read.Has(static_cast<int32_t>(label)))
      return nullptr;
  }
  return restored;
}

}  // namespace

std::unique_ptr<LinearPredictor> MakePocket(const LearnerSettings& settings,
                                            const ScoreVectors& learned) {
  return std::make_unique<Pocket>(settings, learned);
}

}  // namespace perceptrond
