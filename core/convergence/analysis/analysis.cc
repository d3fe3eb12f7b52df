#include "core/convergence/analysis/analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/convergence/analysis/bounds.h"
#include "core/convergence/analysis/certificate.h"
#include "core/convergence/analysis/descent.h"
#include "core/convergence/analysis/nearest_point.h"
#include "core/convergence/analysis/scaled_rows.h"
#include "core/convergence/analysis/signed_rows.h"

namespace perceptrond {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The first working rows, and the most that are added in one round of search or refinement.
constexpr size_t kFirstRows = 256;
constexpr size_t kRowsPerRound = 256;
// The search ends with so many: some separator is then found sooner by passes over all rows.
constexpr size_t kMaxSearchRows = 1024;
// What the search leaves to what follows it: violations up to this part of the margin's square, and
// any margin below this part of R.
constexpr double kSearchTolerance = 0.3;
constexpr double kRoughMargin = 1e-3;
// A combination of more rows than this is shortened by descent: a step of the refinement takes the square of their number.
constexpr size_t kManyRows = 500;
// A ceiling below this part of R is worth a try to prove that nothing separates.
constexpr double kVanishingMargin = 1e-7;
// Passes of the search for some separator: few where the margin's own search has found none yet, and
// many where float64 has come to its end without a verdict.
constexpr size_t kQuickPasses = 200;
constexpr size_t kPatientPasses = 100'000;

// One analysis. It solves for the working rows, and adds those that the best combination so far
// violates most: the ceiling of the working rows holds for all rows, and the separator's floor is
// measured over all rows.
class MarginSolver {
 public:
  MarginSolver(std::span<const LabelledRow> examples, const AnalysisOptions& options,
               AnalysisMonitor& monitor)
      : options_(options), monitor_(monitor), rows_(examples, options, monitor) {}

  Analysis Run() {
    if (!monitor_.Ask()) {
      EndStopped();
    } else if (rows_.columns() > options_.max_weights) {
      End(AnalysisEnd::kTooManyWeights);
    } else {
      analysis_.radius = std::sqrt(rows_.squared_radius());
      ChooseFirst();
      if (Search() && Separate(kQuickPasses) && Descend()) Refine();
    }
    return Finish();
  }

 private:
  // Always false, for the caller to return: the analysis is over.
  bool End(AnalysisEnd end) {
    analysis_.end = end;
    return false;
  }

  bool EndStopped() {
    return End(monitor_.late() ? AnalysisEnd::kOutOfTime : AnalysisEnd::kCancelled);
  }

  // Examples at equal distances, with one of their rows each in turn.
  void ChooseFirst() {
    const size_t count = std::min(rows_.rows(), kFirstRows);
    const size_t per_example = rows_.rows_per_example();
    for (size_t k = 0; k < count; ++k)
      AddRow(k * rows_.examples() / count * per_example + k % per_example);
  }
  void AddRow(size_t row) {
    if (in_work_.insert(row).second) working_.push_back(row);
  }
  // Adds the rows that w_ violates most, at most one of each example and `most` of all: of those whose scores are
  // below `threshold`. Returns whether there were any.
  bool AddRowsBelow(double threshold, size_t most = kRowsPerRound) {
    std::vector<std::pair<double, size_t>> violated;
    for (const RowScore& one : lowest_) {
      if (!(one.score < threshold)) continue;
      const RowScore row = in_work_.contains(one.row) ? FindLowestOutside(one.row) : one;
      if (row.score < threshold) violated.emplace_back(row.score, row.row);
    }
    const size_t count = std::min(violated.size(), most);
    std::partial_sort(violated.begin(), violated.begin() + static_cast<std::ptrdiff_t>(count),
                      violated.end());
    for (size_t k = 0; k < count; ++k) AddRow(violated[k].second);
    monitor_.progress.working_rows = working_.size();
    return count > 0;
  }
  // Of the rows of this one's example that are not solved for that of the lowest score.
  RowScore FindLowestOutside(size_t row) const {
    const size_t per_example = rows_.rows_per_example();
    const size_t first = row / per_example * per_example;
    RowScore lowest{row, kInfinity};
    for (size_t other = first; other < first + per_example; ++other) {
      if (in_work_.contains(other)) continue;
      const double score = rows_.Dot(other, w_);
      if (score < lowest.score) lowest = {other, score};
    }
    return lowest;
  }

  // Makes a round: the bounds that a combination gives, over all rows. False: ended.
  bool MeasureBounds(std::span<const RowMultiplier> combination) {
    ceiling_ = MarginCeiling(rows_, combination);
    if (ceiling_ < monitor_.progress.margin_ceiling) {
      monitor_.progress.margin_ceiling = ceiling_;
      best_combination_.assign(combination.begin(), combination.end());
    }
    w_.assign(rows_.columns(), 0);
    for (const RowMultiplier& one : combination) rows_.AddScaled(one.row, one.multiplier, w_);
    Margins margins = MeasureMargins(rows_, w_, monitor_);
    if (monitor_.stopped()) return EndStopped();
    lowest_ = std::move(margins.lowest);
    if (margins.floor > monitor_.progress.margin_floor) {
      monitor_.progress.margin_floor = margins.floor;
      best_ = w_;
    }
    ++monitor_.progress.round;
    return !Finished();
  }
  bool Finished() {
    const AnalysisProgress& now = monitor_.progress;
    const double gap = now.margin_ceiling - now.margin_floor;
    if (now.margin_floor > 0 && gap <= options_.relative_gap * now.margin_ceiling) {
      End(AnalysisEnd::kGapReached);
      return true;
    }
    if (now.round < options_.max_rounds) return false;
    End(AnalysisEnd::kOutOfRounds);
    return true;
  }

  // Finds most of the support. True: the refinement is to continue from combination_.
  bool Search() {
    monitor_.progress.stage = AnalysisStage::kSearching;
    // What is shorter the refinement solves to the last digits, where few rows are in its way.
    const double least_length = rows_.rows() > kManyRows ? 0 : kRoughMargin * analysis_.radius;
    while (true) {
      if (!Shorten(kSearchTolerance, least_length)) return false;
      if (ceiling_ < least_length) return true;
      if (working_.size() > kMaxSearchRows - kRowsPerRound) return true;
      if (!AddRowsBelow(ceiling_ * ceiling_ * (1 - kSearchTolerance))) return true;
    }
  }
  // A round whose combination_ is found by descent. False: ended.
  bool Shorten(double tolerance, double least_length) {
    combination_ =
        ShortenByDescent(rows_, working_, combination_, tolerance, least_length, monitor_);
    return monitor_.stopped() ? EndStopped() : MeasureBounds(combination_);
  }

  // Finds some separator, if none is known, where the features' scales do not matter. True: go on.
  bool Separate(size_t max_passes) {
    if (monitor_.progress.margin_floor > 0) return true;
    FoundSeparator found = FindSeparator(rows_, max_passes, monitor_);
    if (monitor_.stopped()) return EndStopped();
    if (found.floor == 0) return true;
    monitor_.progress.margin_floor = found.floor;
    best_ = std::move(found.w);
    return !Finished();
  }

  // Brings the bounds together where many rows support the margin. True: few do, or the refinement is to bring them
  // closer, from combination_.
  bool Descend() {
    monitor_.progress.stage = AnalysisStage::kRefining;
    const double least = options_.relative_gap / 4;
    double tolerance = kSearchTolerance;
    while (monitor_.progress.margin_floor > 0 && combination_.size() > kManyRows) {
      if (!Shorten(tolerance, 0)) return false;
      if (AddRowsBelow(ceiling_ * ceiling_ * (1 - tolerance), working_.size())) continue;
      if (tolerance <= least) return true;
      tolerance = std::max(least, tolerance / 10);
    }
    return true;
  }

  // Brings the bounds together, in float64, or proves that nothing separates. Always false.
  bool Refine() {
    NearestPoint nearest(rows_, options_.max_support_rows, monitor_);
    const double tolerance = options_.relative_gap / 4;
    auto outcome = nearest.Start(combination_);
    bool certifying = monitor_.progress.margin_floor == 0;
    while (true) {
      monitor_.progress.stage = AnalysisStage::kRefining;
      if (outcome == NearestPoint::Outcome::kDone) outcome = nearest.Improve(working_, tolerance);
      if (outcome == NearestPoint::Outcome::kCancelled) return EndStopped();
      if (outcome == NearestPoint::Outcome::kTooManyRows)
        return End(AnalysisEnd::kTooManySupportRows);
      if (!MeasureBounds(nearest.support())) return false;
      const bool vanishing =
          ceiling_ <= kVanishingMargin * analysis_.radius || analysis_.radius == 0;
      if (vanishing && certifying) {
        if (!Certify()) return false;
        // Only once more, when all rows that matter are solved for.
        certifying = false;
      }
      if (AddRowsBelow(ceiling_ * ceiling_ * (1 - tolerance))) continue;
      // A verdict needs fewer digits than the margin does.
      if (monitor_.progress.margin_floor == 0 && !(Certify() && Separate(kPatientPasses)))
        return false;
      return End(AnalysisEnd::kPrecision);
    }
  }

  // Tries to prove that nothing separates the working rows. True: it could not, and the analysis
  // may continue.
  bool Certify() {
    monitor_.progress.stage = AnalysisStage::kCertifying;
    std::vector<size_t> chosen = working_;
    std::sort(chosen.begin(), chosen.end());
    const std::vector<size_t> vertex = FindVanishingVertex(rows_, chosen, monitor_);
    if (vertex.size() > options_.max_certificate_rows)
      return End(AnalysisEnd::kCertificateTooLarge);
    analysis_.certificate = FindExactCombination(rows_, vertex, monitor_);
    if (monitor_.stopped()) return EndStopped();
    return analysis_.certificate.empty() || End(AnalysisEnd::kCertified);
  }

  Analysis Finish() {
    const AnalysisProgress& now = monitor_.progress;
    analysis_.rounds = now.round;
    analysis_.update_bound = kInfinity;
    if (!analysis_.certificate.empty()) {
      analysis_.separability = Separability::kNotSeparable;
      return std::move(analysis_);
    }
    analysis_.margin_floor = now.margin_floor;
    analysis_.margin_ceiling = now.margin_ceiling;
    std::sort(best_combination_.begin(), best_combination_.end(),
              [](const auto& a, const auto& b) { return a.row < b.row; });
    for (const RowMultiplier& one : best_combination_) {
      if (one.multiplier > 0)
        analysis_.support.push_back({rows_.example(one.row), rows_.rival(one.row), one.multiplier});
    }
    if (analysis_.margin_floor > 0) FinishSeparable();
    return std::move(analysis_);
  }
  void FinishSeparable() {
    analysis_.separability = Separability::kSeparable;
    analysis_.separator = RoundSeparator(rows_, best_);
    // Rounding may improve the weights.
    if (analysis_.separator)
      analysis_.margin_floor = std::max(analysis_.margin_floor, analysis_.separator->margin_floor);
    const double ratio = analysis_.radius / analysis_.margin_floor;
    analysis_.update_bound = rows_.squared_norm_ratio() * ratio * ratio;
  }

  const AnalysisOptions& options_;
  AnalysisMonitor& monitor_;
  const SignedRows rows_;
  Analysis analysis_;
  // Rows solved for, in the order they were added.
  std::vector<size_t> working_;
  absl::flat_hash_set<size_t> in_work_;
  // What the search ended with.
  std::vector<RowMultiplier> combination_;
  // Of the last round: the ceiling of its combination, the combination itself, and each example's
  // row of the lowest score by it.
  double ceiling_ = kInfinity;
  std::vector<double> w_;
  std::vector<RowScore> lowest_;
  // The combination of the lowest ceiling, and the weights of the highest floor.
  std::vector<RowMultiplier> best_combination_;
  std::vector<double> best_;
};

}  // namespace

Analysis Analyze(std::span<const LabelledRow> examples, const AnalysisOptions& options,
                 AnalysisCallback keep_going) {
  AnalysisMonitor monitor(keep_going, options.deadline);
  monitor.progress.margin_ceiling = kInfinity;
  Analysis nothing;
  nothing.margin_ceiling = nothing.update_bound = kInfinity;
  if (examples.empty() || options.classes == 1) return nothing;
  return MarginSolver(examples, options, monitor).Run();
}

const char* ToString(AnalysisEnd end) {
  switch (end) {
    case AnalysisEnd::kGapReached:
      return "the bounds of the margin are as close as requested";
    case AnalysisEnd::kCertified:
      return "a positive combination of the examples is exactly 0, which proves that nothing "
             "separates them";
    case AnalysisEnd::kNoRows:
      return "there is nothing to separate: no examples, or only one class";
    case AnalysisEnd::kCancelled:
      return "cancelled";
    case AnalysisEnd::kOutOfRounds:
      return "the limit on rounds is reached";
    case AnalysisEnd::kOutOfTime:
      return "the time limit is reached";
    case AnalysisEnd::kTooManySupportRows:
      return "more examples support the margin than the refinement may combine";
    case AnalysisEnd::kCertificateTooLarge:
      return "nothing seems to separate the examples, but the proof combines more of them than the "
             "limit allows";
    case AnalysisEnd::kPrecision:
      return "float64 brings the bounds of the margin no closer";
    case AnalysisEnd::kTooManyWeights:
      return "features times classes are more weights than an analysis may have";
  }
  return "";
}

}  // namespace perceptrond
