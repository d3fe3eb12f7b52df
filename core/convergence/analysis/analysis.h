// What a set of labelled examples admits: the largest margin that any separator attains on it,
// between proven bounds; or a proof that nothing separates it; or neither, and why.
//
//   problem   z_i, the signed rows. Two labels: y (x, b), one of each example. Several classes
//             (Kesler's construction): for an example of class y and each other class r the vector
//             over K blocks with (x, b) in block y, -(x, b) in block r and 0 elsewhere, so that
//             W . z = s_y - s_r where ||W|| is the Frobenius norm of the K weight vectors.
//             gamma* = max over unit w of min_i w . z_i = min over the hull of the z_i of ||v||
//             (the two are each other's duals), the margin of the hard-margin support vector
//             machine: min ||w||^2 / 2 subject to w . z_i >= 1, where ||w|| = 1 / gamma*
//   floor     any w: gamma* >= min_i w . z_i / ||w||
//   ceiling   any alpha >= 0, of any of the rows: gamma* <= ||sum alpha_i z_i|| / sum alpha_i
//   refusal   lambda >= 0, not all 0, with sum lambda_i z_i = 0: then no w has w . z_i > 0 for
//             every i (Gordan 1873). Claimed only after it was checked in exact arithmetic
//   updates   a perceptron from zero weights makes at most max ||z_i||^2 / gamma*^2 of them: (R /
//             gamma*)^2 with two labels, 2 (R / gamma*)^2 with several classes
//   source    Boser, Guyon, Vapnik, A Training Algorithm for Optimal Margin Classifiers, 1992;
//             Wolfe, Finding the nearest point in a polytope, 1976; Duda, Hart, Pattern
//             Classification and Scene Analysis, 1973, section 5.12. docs/adr/0011
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/sync/cancellation.h"
#include "core/vector/row.h"

namespace perceptrond {

// The row must have passed CheckRow.
struct LabelledRow {
  Row row;
  // -1 or +1; with several classes the class, from 0 to K - 1.
  int32_t label = 0;
};

enum class AnalysisStage : uint8_t { kReading, kSearching, kRefining, kCertifying };

// The state of a running analysis. The bounds are proven and only get better.
struct AnalysisProgress {
  AnalysisStage stage = AnalysisStage::kReading;
  // Passes over all examples.
  size_t round = 0;
  // Rows that are solved for; the others are only checked.
  size_t working_rows = 0;
  // 0: no separator is known yet.
  double margin_floor = 0;
  // Infinite: nothing is known yet.
  double margin_ceiling = 0;
};

// Called on the thread that analyzes, by amount of work, several times a second. Returns false to
// cancel.
using AnalysisCallback = absl::FunctionRef<bool(const AnalysisProgress&)>;

// How an analysis reports its progress, and finds out whether to go on: by the callback, by the
// thread's cancellation token (core/sync/cancellation.h), and by the clock if there is a deadline.
// Looks once for each kInterval of work, so that the calls are the same on each run. Not
// thread-safe: each analysis has its own.
class AnalysisMonitor {
 public:
  using Clock = CancellationToken::Clock;

  explicit AnalysisMonitor(AnalysisCallback keep_going,
                           Clock::time_point deadline = Clock::time_point::max())
      : keep_going_(keep_going), deadline_(deadline) {}

  // Adds `work` multiplications; false once the analysis was stopped.
  bool Spend(size_t work) {
    spent_ += work;
    return spent_ < kInterval ? !stopped() : Ask();
  }
  // Looks at once: before and after what cannot be interrupted.
  bool Ask() {
    spent_ = 0;
    if (!stopped()) cancelled_ = !keep_going_(progress) || !KeepGoing();
    if (!stopped() && deadline_ != Clock::time_point::max()) late_ = Clock::now() >= deadline_;
    return !stopped();
  }
  bool stopped() const { return cancelled_ || late_; }
  // Stopped by the deadline, and not cancelled.
  bool late() const { return late_; }

  AnalysisProgress progress;

 private:
  // About 10 to 40 ms.
  static constexpr size_t kInterval = 10'000'000;

  AnalysisCallback keep_going_;
  const Clock::time_point deadline_;
  size_t spent_ = 0;
  bool cancelled_ = false;
  bool late_ = false;
};

struct AnalysisOptions {
  // b: each example gets one more coordinate of this value, if it is not 0. Finite.
  double bias_input = 1;
  // K, at least 2, classes without an example among them; 0: the two labels -1 and +1.
  uint32_t classes = 0;
  // The analysis is done once (ceiling - floor) / ceiling is at most this. In (0, 1); below 1e-10
  // it may not be reached in float64.
  double relative_gap = 1e-6;
  // Passes over all examples. More rounds, a smaller gap.
  size_t max_rounds = 1000;
  // Rows that the refinement may combine. Memory grows with the square: 4000 take 64 MB.
  size_t max_support_rows = 4000;
  // Rows that a proof of inseparability may combine. Time grows with the cube and more: 500 take
  // seconds.
  size_t max_certificate_rows = 500;
  // Weights of a separator: the features that some example has, and the bias, times K. Each takes
  // 40 bytes: 2^25 take 1.3 GB.
  size_t max_weights = size_t{1} << 25;
  // When the analysis ends, with what is proven by then.
  AnalysisMonitor::Clock::time_point deadline = AnalysisMonitor::Clock::time_point::max();
};

enum class Separability : uint8_t { kUndecided, kSeparable, kNotSeparable };

// Why an analysis ended.
enum class AnalysisEnd : uint8_t {
  kGapReached,
  kCertified,
  // There are no examples, or of K classes only one.
  kNoRows,
  kCancelled,
  kOutOfRounds,
  // AnalysisOptions::deadline has passed.
  kOutOfTime,
  kTooManySupportRows,
  kCertificateTooLarge,
  // float64 does not distinguish gamma* from 0, or brings the bounds no closer.
  kPrecision,
  // Of AnalysisOptions::max_weights; nothing was computed.
  kTooManyWeights,
};

// A sentence's part for a person, without a full stop.
const char* ToString(AnalysisEnd end);

struct FeatureWeight {
  uint32_t index = 0;
  float weight = 0;
};

// The weights of one score.
struct WeightVector {
  // By ascending index; features left out have weight 0.
  std::vector<FeatureWeight> weights;
  // w_b, the weight of the constant input; its product with b is the score's bias.
  float bias_weight = 0;
};

// Of unit length but for rounding. w . z_i >= margin_floor ||w|| holds of exactly these float32
// numbers.
struct Separator {
  // One; with several classes one a class, by number.
  std::vector<WeightVector> vectors;
  double margin_floor = 0;
};

// ||sum multiplier_i z_i|| / sum multiplier_i <= margin_ceiling. The multipliers add up to about 1;
// those of the quadratic program are multiplier / gamma*^2.
struct SupportVector {
  // The example's position in the examples given.
  size_t example = 0;
  // The other class r of the row; -1 with two labels.
  int32_t rival = -1;
  double multiplier = 0;
};

// The combination sum multiplier_i z_i is exactly 0.
struct CertificateEntry {
  // See SupportVector.
  size_t example = 0;
  int32_t rival = -1;
  // A positive integer, in decimal: it may have thousands of digits.
  std::string multiplier;
};

struct Analysis {
  // kSeparable iff margin_floor > 0; kNotSeparable iff certificate is not empty.
  Separability separability = Separability::kUndecided;
  AnalysisEnd end = AnalysisEnd::kNoRows;
  // margin_floor <= gamma* <= margin_ceiling, rounding accounted for. 0: no separator is known.
  double margin_floor = 0;
  // 0 if not separable; infinite if nothing is known.
  double margin_ceiling = 0;
  // R: the largest ||(x, b)||, rounded to nearest.
  double radius = 0;
  // Most updates of a perceptron from zero weights over these examples. Infinite: not known.
  double update_bound = 0;
  // Absent if not separable, or if no float32 weights near the best ones separate. Its own floor
  // may be a rounding of the weights below margin_floor, which weights in float64 attain.
  std::optional<Separator> separator;
  // Ascending by example, then by rival. Empty if not separable.
  std::vector<SupportVector> support;
  // Ascending likewise. Empty unless not separable.
  std::vector<CertificateEntry> certificate;
  size_t rounds = 0;

  // (ceiling - floor) / ceiling; 1 if there is no floor.
  double relative_gap() const {
    return margin_floor > 0 ? (margin_ceiling - margin_floor) / margin_ceiling : 1;
  }
};

// Analyzes the examples, which must not change meanwhile. Contradictions, repetitions and zero rows
// are allowed. A cancelled or otherwise unfinished analysis returns what was proven by then.
//
// A pure function, but for the deadline: any number of threads may call it at once, and equal
// arguments give equal results, bit for bit. Between two calls of the callback lies work for at most about 0.1 s, for
// examples of up to a thousand nonzero values. Memory: 12 bytes a nonzero value and 28 an example;
// 40 bytes a weight (AnalysisOptions::max_weights); 4 n^2 for n rows of the refinement. The K - 1 rows
// of an example are never stored. A round costs O(nonzeros K).
Analysis Analyze(std::span<const LabelledRow> examples, const AnalysisOptions& options,
                 AnalysisCallback keep_going);

}  // namespace perceptrond
