// A linear update rule, written once for two labels and for several classes.
//
// Kesler's construction makes both one problem. It turns an example into a vector z in the space of
// theta, all K score vectors in a row, and asks for a margin m = theta . z > 0:
//
//   two labels        K = 1, z = y (x, b);  m = y s,  ||z||^2 = ||(x, b)||^2
//   several classes   z has (x, b) in the block of the example's class y, -(x, b) in that of its
//                     rival r, the best-scoring other class, and 0 elsewhere;
//                     m = s_y - s_r,  ||z||^2 = 2 ||(x, b)||^2
//
// A rule says from m, and where it needs them ||z||^2 or the variance of z, whether it calls for an
// update and how far theta goes along z. Ties, new classes, limits, saving and predicting are
// RuleLearner's (core/learner/rule_learner.h).
//
// A class that does not exist yet scores 0. Its first example is a mistake and makes it exist;
// while it is the only one it has no rival, and nothing moves.
//
// Sources: Kesler's construction: Nilsson, Learning Machines, 1965; Duda, Hart, Pattern
// Classification and Scene Analysis, 1973, section 5.12.1. With the best-scoring rival alone: the
// ultraconservative rules of Crammer, Singer, JMLR 3, 2003, section 4.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/learner/decision.h"
#include "core/learner/score_vectors.h"

namespace perceptrond {

// An example as a rule sees it: z.
struct SignedExample {
  // theta . z; infinity if there is no rival.
  double margin = 0;
  // The prediction is wrong, by the tie rule.
  bool mistake = false;
  // ||z||^2, and z' S z for a rule that keeps variances S; each only where the rule asks for it.
  double squared_norm = 0;
  double variance = 0;
};

// What of a SignedExample a rule reads besides the margin.
enum class Needs : uint8_t { kMarginOnly, kSquaredNorm, kVariance };

// theta += length z, or length S z for a rule that keeps variances, which then shrink by `shrink`.
struct Step {
  double length = 0;
  double shrink = 0;
};

// The part of a step that one score vector takes: along (x, b).
struct Move {
  size_t vector = 0;
  double length = 0;
  double shrink = 0;
};
using Moves = absl::InlinedVector<Move, 2>;

// An update in progress.
struct LinearUpdate {
  const Row& row;
  const Target& target;
  const Moves& moves;
};

// Base of every linear rule: what a rule that adds multiples of z does and remembers. A rule has
//
//   double Loss(const SignedExample& z) const;
//   bool CallsForUpdate(const SignedExample& z) const;        true for every mistake
//   Step MakeStep(const SignedExample& z, double weight) const;
//
// and hides of the members below what it does otherwise. None of them is virtual: RuleLearner
// compiles a rule into its loop over rows.
class LinearRule {
 public:
  // What Loss and CallsForUpdate read, and what MakeStep reads.
  static constexpr Needs kEvaluationNeeds = Needs::kMarginOnly;
  static constexpr Needs kStepNeeds = Needs::kMarginOnly;
  // Several classes: an update moves every class by a coefficient of its own
  // (core/learner/logistic_regression.h) instead of the example's class and its rival.
  static constexpr bool kMovesAllClasses = false;
  // What an update adds stays part of theta as it is, so that it has a dual coefficient.
  static constexpr bool kHasDual = true;
  // Arrays in Memory for each score vector.
  static constexpr size_t kArraysPerVector = 0;

  // What the rule remembers besides the weights.
  struct Memory {
    void Resize(size_t /*vectors*/, size_t /*size*/) {}
    void AppendTo(const ScoreVectors& /*vectors*/, LearnerStateView& /*state*/) const {}
    // Reads what AppendTo appended. May set the scale of `vectors`. False: it does not fit.
    bool Read(StateReader& /*state*/, ScoreVectors& /*vectors*/) { return true; }
  };
  Memory memory;

  // The variance of (x, b) in one vector.
  double Variance(const ScoreVectors& /*vectors*/, size_t /*k*/, const Row& /*row*/) const {
    return 0;
  }
  double Variance(const ScoreVectors& /*vectors*/, double /*of_features*/) const { return 0; }
  std::span<const float> FeatureVariances() const { return {}; }
  // Whether a move leaves every weight within float32.
  bool CanMove(const ScoreVectors& vectors, const Move& move, const Row& row) const {
    return vectors.StaysFinite(move.vector, move.length, row);
  }
  void MakeMove(ScoreVectors& vectors, const Move& move, const Row& row) {
    vectors[move.vector].Add(move.length, row, vectors.bias_input());
  }
  // After all moves of an update, if there were any.
  void FinishUpdate(ScoreVectors& /*vectors*/, const Target& /*target*/) {}
  // After the weights were replaced.
  void WeightsReplaced(ScoreVectors& /*vectors*/) {}
  // The dual coefficient of an update that moved a vector by `length` after `age` examples.
  double DualCoefficient(double length, uint64_t /*age*/) const { return length; }
};

// The Memory of a rule that keeps a figure for each weight, never below 0; each begins at kInitial.
template <int kInitial>
struct WeightFigures {
  // Of one score vector; the bias weight's is a float32 value too.
  struct Figures {
    FloatArray features;
    double bias = kInitial;
  };
  std::vector<Figures> vectors;

  void Resize(size_t count, size_t size) {
    if (vectors.size() < count) vectors.resize(count);
    for (Figures& one : vectors) {
      if (one.features.size() < size) one.features.resize(size, static_cast<float>(kInitial));
    }
  }
  void AppendTo(const ScoreVectors& /*scores*/, LearnerStateView& state) const {
    for (const Figures& one : vectors) {
      Append(one.features, state);
      Append(one.bias, state);
    }
  }
  bool Read(StateReader& state, ScoreVectors& scores) {
    bool sound = true;
    for (size_t k = 0; k < scores.count(); ++k) {
      FloatArray features = state.Array();
      vectors.push_back({std::move(features), state.Scalar()});
      const Figures& read = vectors.back();
      sound = sound && read.bias >= 0 &&
              std::all_of(read.features.begin(), read.features.end(),
                          [](float figure) { return figure >= 0; });
    }
    return sound;
  }
};

}  // namespace perceptrond
