#include "core/convergence/analysis/analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/convergence/analysis/bounds.h"
#include "core/convergence/analysis/cancellation_token.h"
#include "core/convergence/analysis/exact_combination.h"
#include "core/convergence/analysis/nearest_point.h"
#include "core/convergence/analysis/separator.h"
#include "core/convergence/analysis/signed_rows.h"
#include "core/convergence/analysis/svm_start.h"
#include "core/convergence/analysis/vanishing_vertex.h"

namespace perceptrond {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// The first working rows, and how many join at most in one round.
constexpr size_t kFirstRows = 256;
constexpr size_t kRowsPerRound = 256;
// LIBSVM cannot be interrupted: more rows than this would take it over 0.1 s.
constexpr size_t kMaxSvmRows = 1024;
// What it leaves to the refinement: violations up to this, and any margin below this part of R.
constexpr double kRoughTolerance = 1e-2;
constexpr double kRoughMargin = 1e-3;
// A ceiling below this part of R is worth a try to prove that nothing separates.
constexpr double kVanishingMargin = 1e-7;

// One analysis. The working rows grow by those that the best combination so far violates: their
// ceiling is one of all rows, and their separator's floor is taken over all rows.
class MarginSolver {
 public:
  MarginSolver(std::span<const LabelledRow> rows, const AnalysisOptions& options,
               CancellationToken& cancellation)
      : options_(options),
        cancellation_(cancellation),
        rows_(rows, options.bias_input, cancellation) {}

  Analysis Run() {
    if (cancellation_.cancelled()) {
      End(AnalysisEnd::kCancelled);
    } else {
      analysis_.radius = std::sqrt(rows_.squared_radius());
      ChooseFirst();
      if (Search()) Refine();
    }
    return Finish();
  }

 private:
  // Always false, for the caller to return: there is no going on.
  bool End(AnalysisEnd end) {
    analysis_.end = end;
    return false;
  }

  void ChooseFirst() {
    const size_t count = std::min(rows_.rows(), kFirstRows);
    in_work_.resize(rows_.rows());
    for (size_t k = 0; k < count; ++k) TakeIn(k * rows_.rows() / count);
  }
  void TakeIn(size_t row) {
    in_work_[row] = true;
    working_.push_back(row);
  }
  // Takes in the rows that w violates most: those whose scores, of the round before, lie below
  // `threshold`. Says whether there were any.
  bool TakeInBelow(double threshold) {
    std::vector<std::pair<double, size_t>> violated;
    for (size_t i = 0; i < scores_.size(); ++i)
      if (!in_work_[i] && scores_[i] < threshold) violated.emplace_back(scores_[i], i);
    const size_t count = std::min(violated.size(), kRowsPerRound);
    std::partial_sort(violated.begin(), violated.begin() + static_cast<std::ptrdiff_t>(count),
                      violated.end());
    for (size_t k = 0; k < count; ++k) TakeIn(violated[k].second);
    cancellation_.progress.working_rows = working_.size();
    return count > 0;
  }

  // Takes the bounds that a combination gives, over all rows. False: ended.
  bool GetSummary(std::span<const SupportVector> support) {
    ceiling_ = MarginCeiling(rows_, support);
    if (ceiling_ < cancellation_.progress.margin_ceiling) {
      cancellation_.progress.margin_ceiling = ceiling_;
      analysis_.support.assign(support.begin(), support.end());
    }
    std::vector<double> w(rows_.columns());
    for (const SupportVector& one : support) rows_.AddScaled(one.row, one.multiplier, w);
    Margins margins = MeasureMargins(rows_, w, cancellation_);
    if (cancellation_.cancelled()) return End(AnalysisEnd::kCancelled);
    scores_ = std::move(margins.scores);
    if (margins.floor > cancellation_.progress.margin_floor) {
      cancellation_.progress.margin_floor = margins.floor;
      best_ = std::move(w);
    }
    ++cancellation_.progress.round;
    return !Finished();
  }
  bool Finished() {
    const AnalysisProgress& now = cancellation_.progress;
    const double gap = now.margin_ceiling - now.margin_floor;
    if (now.margin_floor > 0 && gap <= options_.relative_gap * now.margin_ceiling) {
      End(AnalysisEnd::kGapReached);
      return true;
    }
    if (now.round < options_.max_rounds) return false;
    End(AnalysisEnd::kOutOfRounds);
    return true;
  }

  // Finds most of the support, by LIBSVM. True: the refinement is to go on from support_.
  bool Search() {
    cancellation_.progress.stage = AnalysisStage::kSearching;
    while (true) {
      support_ = SolveWithSvm(rows_, working_, cancellation_);
      if (cancellation_.cancelled()) return End(AnalysisEnd::kCancelled);
      if (!GetSummary(support_)) return false;
      if (ceiling_ < kRoughMargin * analysis_.radius) return true;
      if (working_.size() > kMaxSvmRows - kRowsPerRound) return true;
      if (!TakeInBelow(ceiling_ * ceiling_ * (1 - kRoughTolerance))) return true;
    }
  }

  // Brings the bounds together, in float64, or proves that nothing separates. Always false.
  bool Refine() {
    NearestPoint nearest(rows_, options_.max_support_rows, cancellation_);
    const double tolerance = options_.relative_gap / 4;
    auto outcome = nearest.Start(support_);
    bool certifying = true;
    while (true) {
      cancellation_.progress.stage = AnalysisStage::kRefining;
      if (outcome == NearestPoint::Outcome::kDone) outcome = nearest.Improve(working_, tolerance);
      if (outcome == NearestPoint::Outcome::kCancelled) return End(AnalysisEnd::kCancelled);
      if (outcome == NearestPoint::Outcome::kTooManyRows)
        return End(AnalysisEnd::kTooManySupportRows);
      if (!GetSummary(nearest.support())) return false;
      const bool vanishing =
          ceiling_ <= kVanishingMargin * analysis_.radius || analysis_.radius == 0;
      if (vanishing && certifying) {
        if (!Certify()) return false;
        // Only once more, when all rows that matter are in.
        certifying = false;
      }
      if (TakeInBelow(ceiling_ * ceiling_ * (1 - tolerance))) continue;
      if (vanishing && !Certify()) return false;
      return End(AnalysisEnd::kPrecision);
    }
  }

  // Tries to prove that nothing separates the working rows. True: it could not, and the analysis
  // may go on.
  bool Certify() {
    cancellation_.progress.stage = AnalysisStage::kCertifying;
    std::vector<size_t> chosen = working_;
    std::sort(chosen.begin(), chosen.end());
    const std::vector<size_t> vertex = FindVanishingVertex(rows_, chosen, cancellation_);
    if (vertex.size() > options_.max_certificate_rows)
      return End(AnalysisEnd::kCertificateTooLarge);
    analysis_.certificate = FindExactCombination(rows_, vertex, cancellation_);
    if (cancellation_.cancelled()) return End(AnalysisEnd::kCancelled);
    return analysis_.certificate.empty() || End(AnalysisEnd::kCertified);
  }

  Analysis Finish() {
    analysis_.rounds = cancellation_.progress.round;
    if (!analysis_.certificate.empty()) {
      analysis_.separability = Separability::kNotSeparable;
      analysis_.support.clear();
      return std::move(analysis_);
    }
    analysis_.margin_floor = cancellation_.progress.margin_floor;
    analysis_.margin_ceiling = cancellation_.progress.margin_ceiling;
    std::erase_if(analysis_.support, [](const auto& one) { return !(one.multiplier > 0); });
    std::sort(analysis_.support.begin(), analysis_.support.end(),
              [](const auto& a, const auto& b) { return a.row < b.row; });
    if (analysis_.margin_floor > 0) {
      analysis_.separability = Separability::kSeparable;
      analysis_.separator = RoundSeparator(rows_, best_);
      // Rounding may even better the weights.
      if (analysis_.separator)
        analysis_.margin_floor =
            std::max(analysis_.margin_floor, analysis_.separator->margin_floor);
    }
    return std::move(analysis_);
  }

  const AnalysisOptions& options_;
  CancellationToken& cancellation_;
  const SignedRows rows_;
  Analysis analysis_;
  // Rows solved for, in the order they came in.
  std::vector<size_t> working_;
  std::vector<bool> in_work_;
  // Of the last round: the combination, its ceiling, and all rows' scores by it.
  std::vector<SupportVector> support_;
  double ceiling_ = kInfinity;
  std::vector<double> scores_;
  // Weights of the highest floor.
  std::vector<double> best_;
};

}  // namespace

Analysis Analyze(std::span<const LabelledRow> rows, const AnalysisOptions& options,
                 AnalysisCallback keep_going) {
  CancellationToken cancellation(keep_going);
  cancellation.progress.margin_ceiling = kInfinity;
  Analysis nothing;
  nothing.margin_ceiling = kInfinity;
  if (rows.empty()) return nothing;
  return MarginSolver(rows, options, cancellation).Run();
}

}  // namespace perceptrond
