// What a set of labelled rows admits: the largest margin that any separator attains on it, between
// proven bounds; or a proof that nothing separates it; or neither, and why.
//
//   problem   z_i = y_i (x_i, b), the augmented rows with their labels multiplied in.
//             gamma* = max over unit w of min_i w . z_i = min over the hull of the z_i of ||v||
//             (the two are each other's duals), the margin of the hard-margin support vector
//             machine: min ||w||^2 / 2 subject to w . z_i >= 1, where ||w|| = 1 / gamma*
//   floor     any w: gamma* >= min_i w . z_i / ||w||
//   ceiling   any alpha >= 0, of any of the rows: gamma* <= ||sum alpha_i z_i|| / sum alpha_i
//   refusal   lambda >= 0, not all 0, with sum lambda_i z_i = 0: then no w has w . z_i > 0 for
//             every i (Gordan 1873). Claimed only after it was checked in exact arithmetic
//   source    seeds 002, 004; Wolfe, Finding the nearest point in a polytope, 1976. docs/adr/0011
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/vector/row.h"

namespace perceptrond {

// The row must have passed CheckRow; the label is -1 or +1.
struct LabelledRow {
  Row row;
  int32_t label = 0;
};

struct AnalysisOptions {
  // b: each row gets one more coordinate of this value. 0: none. Finite.
  double bias_input = 1;
  // The analysis is done once (ceiling - floor) / ceiling is at most this. In (0, 1); below 1e-10
  // it may not be reached in float64.
  double relative_gap = 1e-6;
  // How often all rows are looked through. More rounds, a smaller gap.
  size_t max_rounds = 1000;
  // Rows that may support the margin, of which memory grows with the square: 4000 take 64 MB.
  size_t max_support_rows = 4000;
  // Rows that a proof of inseparability may combine. Time grows with its cube and more: 500 take
  // seconds.
  size_t max_certificate_rows = 500;
};

enum class AnalysisStage : uint8_t { kReading, kSearching, kRefining, kCertifying };

// Where an analysis stands. The bounds are proven and only get better.
struct AnalysisProgress {
  AnalysisStage stage = AnalysisStage::kReading;
  // Times that all rows were looked through.
  size_t round = 0;
  // Rows that are solved for; the others are only looked through.
  size_t working_rows = 0;
  // 0: no separator is known yet.
  double margin_floor = 0;
  // Infinite: nothing is known yet.
  double margin_ceiling = 0;
};

// Called on the thread that analyzes, by amount of work, several times a second. False cancels.
using AnalysisCallback = absl::FunctionRef<bool(const AnalysisProgress&)>;

enum class Separability : uint8_t { kUndecided, kSeparable, kNotSeparable };

// Why an analysis ended.
enum class AnalysisEnd : uint8_t {
  kGapReached,
  kCertified,
  kNoRows,
  kCancelled,
  kOutOfRounds,
  kTooManySupportRows,
  kCertificateTooLarge,
  // float64 does not tell gamma* from 0, or brings the bounds no nearer.
  kPrecision,
};

// In words for a person.
const char* EndInWords(AnalysisEnd end);

struct FeatureWeight {
  uint32_t index = 0;
  float weight = 0;
};

// Of unit length but for rounding. y (w . x + w_b b) >= margin_floor ||(w, w_b)|| holds of exactly
// these float32 numbers.
struct Separator {
  // By ascending index; features left out weigh 0.
  std::vector<FeatureWeight> weights;
  // w_b; its product with b is the score's offset.
  float offset_weight = 0;
  double margin_floor = 0;
};

// ||sum multiplier_i z_i|| / sum multiplier_i <= margin_ceiling. The multipliers add up to about 1;
// those of the quadratic program are multiplier / gamma*^2.
struct SupportVector {
  // A place in the rows given.
  size_t row = 0;
  double multiplier = 0;
};

// The combination sum multiplier_i z_i is exactly 0.
struct CertificateEntry {
  size_t row = 0;
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
  // R: the largest ||z_i||, rounded to nearest.
  double radius = 0;
  // Absent if not separable, or if no float32 weights near the best ones separate. Its own floor
  // may be a rounding of the weights below margin_floor, which weights in float64 attain.
  std::optional<Separator> separator;
  // Ascending by row. Empty if not separable.
  std::vector<SupportVector> support;
  // Ascending by row. Empty unless not separable.
  std::vector<CertificateEntry> certificate;
  size_t rounds = 0;

  // (ceiling - floor) / ceiling; 1 if there is no floor.
  double relative_gap() const {
    return margin_floor > 0 ? (margin_ceiling - margin_floor) / margin_ceiling : 1;
  }
};

// Analyzes the rows, which must stay as they are meanwhile. Contradictions, repetitions and zero
// rows are welcome; of no rows nothing is said. A cancelled or otherwise unfinished analysis gives
// what was proven by then.
//
// A pure function: any number of threads may call it at once, and equal arguments give equal
// results, bit for bit. Between two calls of the callback lies work for at most about 0.1 s, for
// rows of up to a thousand nonzero values. Memory: 12 bytes a nonzero value, and 4 n^2 for n
// rows of the support.
Analysis Analyze(std::span<const LabelledRow> rows, const AnalysisOptions& options,
                 AnalysisCallback keep_going);

}  // namespace perceptrond
