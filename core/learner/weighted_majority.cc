#include "core/learner/weighted_majority.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/catalogue.h"
#include "core/learner/member_settings.h"
#include "core/vector/check.h"

namespace perceptrond {
namespace {

constexpr double kBeta = 0.8;

// beta^mistakes, by multiplication alone: the same bits on every machine.
double VoteOf(uint64_t mistakes) {
  double vote = 1;
  for (double power = kBeta; mistakes > 0; mistakes /= 2, power *= power)
    if (mistakes % 2 == 1) vote *= power;
  return vote;
}

std::span<double> SpanOf(ClassScores& scores) { return {scores.data(), scores.size()}; }

// The numbers of a saved state, one by one.
class Scalars {
 public:
  explicit Scalars(const std::vector<double>& scalars) : left_(scalars) {}

  // A whole number; 0 if there is none, after which sound() is false.
  uint64_t Count() {
    const double count = left_.empty() ? -1 : left_[0];
    sound_ = sound_ && count >= 0 && count < 0x1p53 && count == std::floor(count);
    if (!sound_) return 0;
    left_ = left_.subspan(1);
    return static_cast<uint64_t>(count);
  }
  std::span<const double> Take(uint64_t count) {
    sound_ = sound_ && count <= left_.size();
    if (!sound_) return {};
    const std::span<const double> taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  bool sound() const { return sound_; }
  bool Done() const { return sound_ && left_.empty(); }

 private:
  std::span<const double> left_;
  bool sound_ = true;
};

// Whether both have room for the same features and the same classes.
bool HaveOneShape(const Predictor& a, const Predictor& b) {
  if (a.size() != b.size() || a.scores() != b.scores()) return false;
  for (size_t k = 0; k < a.scores(); ++k) {
    const auto label = static_cast<int32_t>(k);
    if (a.HasLabel(label) != b.HasLabel(label)) return false;
  }
  return true;
}

}  // namespace

WeightedMajority::WeightedMajority(const LearnerSettings& settings, size_t size)
    : decision_{settings.is_multiclass(), settings.tie_rule} {
  for (size_t m = 0; m < kMembers; ++m) {
    settings_[m] = MemberSettings(m, settings);
    members_[m].learner = MakeLearner(settings_[m], size);
    // A restored learner has its own weights.
    settings_[m].start = {};
    max_arrays_ += members_[m].learner->max_arrays();
  }
}

const Learner& WeightedMajority::first() const {
  size_t m = 0;
  while (members_[m].learner == nullptr) ++m;
  return *members_[m].learner;
}

void WeightedMajority::AddVote(std::span<const double> scores, double vote,
                               std::span<double> votes) const {
  if (!decision_.is_multiclass) {
    if (scores[0] != 0) votes[scores[0] > 0 ? 1 : 0] += vote;
    return;
  }
  const int32_t greatest = GreatestScore(scores);
  if (greatest < 0) return;
  const auto k = static_cast<size_t>(greatest);
  const int32_t second = GreatestScore(scores, greatest);
  if (second >= 0 && scores[static_cast<size_t>(second)] == scores[k]) return;
  votes[k] += vote;
}

void WeightedMajority::ToScores(std::span<const double> votes, std::span<double> scores) const {
  double all = 0;
  for (const MemberState& member : members_) all += member.learner != nullptr ? member.vote : 0;
  if (!decision_.is_multiclass) {
    scores[0] = (votes[1] - votes[0]) / all;
    return;
  }
  for (size_t k = 0; k < scores.size(); ++k)
    scores[k] = HasLabel(static_cast<int32_t>(k)) ? votes[k] / all
                                                  : std::numeric_limits<double>::quiet_NaN();
}

void WeightedMajority::Score(const Row& row, uint64_t /*age*/, std::span<double> scores) const {
  ClassScores votes(vote_sums(), 0.0);
  ClassScores room(this->scores());
  for (const MemberState& member : members_) {
    if (member.learner == nullptr) continue;
    member.learner->predictor().Score(row, updates_, SpanOf(room));
    AddVote(SpanOf(room), member.vote, SpanOf(votes));
  }
  ToScores(SpanOf(votes), scores);
}

std::vector<ScoreTerm> WeightedMajority::Terms(uint64_t /*age*/) const {
  std::vector<ScoreTerm> terms;
  for (const MemberState& member : members_) {
    if (member.learner == nullptr) continue;
    std::vector<ScoreTerm> own = member.learner->predictor().Terms(updates_);
    if (own.empty()) continue;
    own.front().first_of_member = true;
    own.back().votes = member.vote;
    terms.insert(terms.end(), own.begin(), own.end());
  }
  return terms;
}

uint64_t WeightedMajority::ScoreCost(uint64_t features) const {
  uint64_t cost = 0;
  for (size_t m = 0; m < kMembers; ++m) {
    if (members_[m].learner == nullptr) continue;
    cost += (IsAveraged(m) ? 2 : 1) * members_[m].learner->predictor().ScoreCost(features);
  }
  return cost;
}

double WeightedMajority::augmented_squared_norm() const {
  double sum = 0;
  for (const MemberState& member : members_)
    sum += member.learner != nullptr ? member.learner->augmented_squared_norm() : 0;
  return sum;
}

WeightedMajority::Opinion WeightedMajority::Ask(size_t m, const Row& row, int32_t label,
                                                std::span<double> votes) const {
  const Learner& learner = *members_[m].learner;
  Opinion opinion{learner.Evaluate(row, label)};
  ClassScores room(scores());
  if (IsAveraged(m) || decision_.is_multiclass) {
    learner.predictor().Score(row, updates_, SpanOf(room));
    opinion.mistake = decision_.Evaluate(SpanOf(room), label).mistake;
  } else {
    room[0] = opinion.evaluation.score;
    opinion.mistake = opinion.evaluation.mistake;
  }
  AddVote(SpanOf(room), members_[m].vote, votes);
  return opinion;
}

Evaluation WeightedMajority::EvaluateVotes(std::span<const double> votes, int32_t label) const {
  ClassScores shares(scores());
  ToScores(votes, SpanOf(shares));
  Evaluation evaluation = decision_.Evaluate(SpanOf(shares), label);
  evaluation.loss = std::max(0.0, -decision_.MarginSign(label) * evaluation.score);
  return evaluation;
}

Evaluation WeightedMajority::Evaluate(const Row& row, int32_t label) const {
  ClassScores votes(vote_sums(), 0.0);
  bool update = false;
  for (size_t m = 0; m < kMembers; ++m) {
    if (members_[m].learner == nullptr) continue;
    const Opinion opinion = Ask(m, row, label, SpanOf(votes));
    update |= opinion.mistake || opinion.evaluation.update;
  }
  Evaluation evaluation = EvaluateVotes(SpanOf(votes), label);
  evaluation.update = update;
  return evaluation;
}

void WeightedMajority::EvaluateRows(const Batch& batch, size_t first, size_t max_features,
                                    std::span<EvaluatedRow> evaluated) const {
  const size_t rows = evaluated.size();
  std::vector<EvaluatedRow> of_member(rows);
  std::vector<ValidationCode> codes(rows);
  std::vector<double> scores(rows);
  std::vector<std::array<double, 2>> votes(rows);
  std::vector<bool> updates(rows);
  for (size_t m = 0; m < kMembers; ++m) {
    if (members_[m].learner == nullptr) continue;
    const Learner& learner = *members_[m].learner;
    learner.batch_evaluation()->EvaluateRows(batch, first, max_features, of_member);
    if (IsAveraged(m))
      learner.predictor().ScoreRows(batch, first, max_features, updates_, codes, scores);
    for (size_t i = 0; i < rows; ++i) {
      const Evaluation& evaluation = of_member[i].evaluation;
      const double score = IsAveraged(m) ? scores[i] : evaluation.score;
      AddVote({&score, 1}, members_[m].vote, votes[i]);
      updates[i] = updates[i] || evaluation.update ||
                   IsMistake(score, batch.labels[first + i], decision_.tie_rule);
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    evaluated[i] = of_member[i];
    evaluated[i].evaluation = EvaluateVotes(votes[i], batch.labels[first + i]);
    evaluated[i].evaluation.update = updates[i];
  }
}

bool WeightedMajority::CanUpdate(const Row& row, const Target& target,
                                 const Evaluation& /*evaluation*/) const {
  const Target counted{target.label, target.weight, updates_};
  for (const MemberState& member : members_) {
    if (member.learner == nullptr) continue;
    const Evaluation evaluation = member.learner->Evaluate(row, target.label);
    if (evaluation.update && !member.learner->CanUpdate(row, counted, evaluation)) return false;
  }
  return true;
}

void WeightedMajority::Update(const Row& row, const Target& target,
                              const Evaluation& /*evaluation*/) {
  const Target counted{target.label, target.weight, updates_};
  ClassScores votes(vote_sums(), 0.0);
  std::array<Opinion, kMembers> opinions;
  // All before the first update, which may add a class.
  for (size_t m = 0; m < kMembers; ++m) {
    if (members_[m].learner != nullptr) opinions[m] = Ask(m, row, target.label, SpanOf(votes));
  }
  for (size_t m = 0; m < kMembers; ++m) {
    MemberState& member = members_[m];
    if (member.learner == nullptr) continue;
    if (opinions[m].mistake) ++member.mistakes;
    if (opinions[m].evaluation.update) member.learner->Update(row, counted, opinions[m].evaluation);
  }
  ++updates_;
  CountVotes(members_);
}

uint64_t WeightedMajority::FewestMistakes(const MemberStates& members) {
  uint64_t fewest = std::numeric_limits<uint64_t>::max();
  for (const MemberState& member : members)
    if (member.learner != nullptr) fewest = std::min(fewest, member.mistakes);
  return fewest;
}

bool WeightedMajority::IsBeaten(uint64_t excess, uint64_t fewest) {
  return static_cast<double>(excess) > 62 + 2 * std::sqrt(static_cast<double>(fewest));
}

void WeightedMajority::CountVotes(MemberStates& members) {
  const uint64_t fewest = FewestMistakes(members);
  for (MemberState& member : members) {
    if (member.learner == nullptr) continue;
    const uint64_t excess = member.mistakes - fewest;
    if (IsBeaten(excess, fewest)) {
      member.learner.reset();
    } else {
      member.vote = VoteOf(excess);
    }
  }
}

void WeightedMajority::Grow(size_t size) {
  for (MemberState& member : members_)
    if (member.learner != nullptr) member.learner->Grow(size);
}

LearnerStateView WeightedMajority::State() const {
  LearnerStateView state;
  Append(static_cast<double>(updates_), state);
  for (const MemberState& member : members_) {
    Append(static_cast<double>(member.mistakes), state);
    Append(member.learner != nullptr ? 1.0 : 0.0, state);
    if (member.learner == nullptr) continue;
    const LearnerStateView own = member.learner->State();
    Append(static_cast<double>(own.arrays.size()), state);
    Append(static_cast<double>(own.scalars.size()), state);
    state.arrays.insert(state.arrays.end(), own.arrays.begin(), own.arrays.end());
    state.scalars.insert(state.scalars.end(), own.scalars.begin(), own.scalars.end());
  }
  return state;
}

bool WeightedMajority::Restore(LearnerState state) {
  Scalars scalars(state.scalars);
  size_t next_array = 0;
  MemberStates read;
  const Learner* some = nullptr;
  const uint64_t updates = scalars.Count();
  for (size_t m = 0; m < kMembers; ++m) {
    read[m].mistakes = scalars.Count();
    const uint64_t votes = scalars.Count();
    if (!scalars.sound() || votes > 1) return false;
    if (votes == 0) continue;
    LearnerState own;
    const uint64_t arrays = scalars.Count();
    const std::span<const double> numbers = scalars.Take(scalars.Count());
    if (!scalars.sound() || arrays > state.arrays.size() - next_array) return false;
    for (uint64_t i = 0; i < arrays; ++i)
      own.arrays.push_back(std::move(state.arrays[next_array++]));
    own.scalars.assign(numbers.begin(), numbers.end());
    read[m].learner = MakeLearner(settings_[m], 0);
    if (!read[m].learner->Restore(std::move(own))) return false;
    if (some == nullptr) some = read[m].learner.get();
    if (!HaveOneShape(some->predictor(), read[m].learner->predictor())) return false;
  }
  if (some == nullptr || !scalars.Done() || next_array != state.arrays.size()) return false;
  if (!state.rows.empty()) return false;
  const uint64_t fewest = FewestMistakes(read);
  for (const MemberState& member : read)
    if (member.learner != nullptr && IsBeaten(member.mistakes - fewest, fewest)) return false;
  CountVotes(read);
  members_ = std::move(read);
  updates_ = updates;
  return true;
}

bool WeightedMajority::AreZero() const {
  return std::all_of(members_.begin(), members_.end(), [](const MemberState& member) {
    return member.learner == nullptr || member.learner->learned_weights()->AreZero();
  });
}

bool WeightedMajority::AreZero(uint32_t index) const {
  return std::all_of(members_.begin(), members_.end(), [&](const MemberState& member) {
    return member.learner == nullptr || member.learner->learned_weights()->AreZero(index);
  });
}

std::vector<MemberVotes::Member> WeightedMajority::Members() const {
  double all = 0;
  for (const MemberState& member : members_) all += member.learner != nullptr ? member.vote : 0;
  std::vector<Member> members;
  for (size_t m = 0; m < kMembers; ++m) {
    const bool retired = members_[m].learner == nullptr;
    members.push_back({MemberName(m), settings_[m], members_[m].mistakes,
                       retired ? 0 : members_[m].vote / all, retired});
  }
  return members;
}

}  // namespace perceptrond
