#include "core/model/model_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/time/clock.h"
#include "core/convergence/analysis/bounds.h"
#include "core/convergence/analysis/cancellation_token.h"
#include "core/convergence/analysis/signed_rows.h"
#include "core/model/error.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

absl::Status Cancelled() {
  return MakeError(absl::StatusCode::kCancelled, "ANALYSIS_CANCELLED",
                   "the analysis was cancelled; the model is as it was");
}

v1::Separability ToProto(Separability separability) {
  switch (separability) {
    case Separability::kSeparable:
      return v1::SEPARABILITY_SEPARABLE;
    case Separability::kNotSeparable:
      return v1::SEPARABILITY_NOT_SEPARABLE;
    case Separability::kUndecided:
      return v1::SEPARABILITY_UNDECIDED;
  }
  return v1::SEPARABILITY_UNSPECIFIED;
}

v1::Analysis MakeRecord(const AnalysisInput& input, const Analysis& analysis, absl::Time time) {
  v1::Analysis record;
  record.set_revision(static_cast<int64_t>(input.revision()));
  record.set_examples(input.rows().size());
  record.set_complete(input.complete());
  record.set_separability(ToProto(analysis.separability));
  if (analysis.margin_floor > 0) record.set_margin_lower(analysis.margin_floor);
  if (std::isfinite(analysis.margin_ceiling) &&
      analysis.separability != Separability::kNotSeparable)
    record.set_margin_upper(analysis.margin_ceiling);
  record.set_radius(analysis.radius);
  const int64_t nanos = absl::ToUnixNanos(time);
  record.mutable_time()->set_seconds(nanos / 1'000'000'000);
  record.mutable_time()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return record;
}

// The separator by columns of the signed rows, in float64.
std::vector<double> InColumns(const Separator& separator, const SignedRows& rows) {
  std::vector<double> w(rows.columns());
  auto weight = separator.weights.begin();
  for (size_t column = 0; column < rows.features().size(); ++column) {
    while (weight != separator.weights.end() && weight->index < rows.features()[column]) ++weight;
    if (weight != separator.weights.end() && weight->index == rows.features()[column])
      w[column] = weight->weight;
  }
  if (rows.has_offset()) w.back() = separator.offset_weight;
  return w;
}

// Scales the separator, rounds it to float32, and measures the margin it attains then. Sets nothing
// if it leaves float32's range or no longer separates. Returns false if cancelled.
bool Scale(const AnalysisOptions& options, CancellationToken& cancellation, ModelAnalysis& result) {
  const SignedRows rows(result.input.rows(), options.bias_input, cancellation);
  if (cancellation.cancelled()) return false;
  std::vector<double> w = InColumns(*result.analysis.separator, rows);
  const Margins unit = MeasureMargins(rows, w, cancellation);
  if (cancellation.cancelled()) return false;
  const double least = *std::min_element(unit.scores.begin(), unit.scores.end());
  for (double& weight : w) weight = static_cast<float>(weight / least);
  const bool fits = std::all_of(w.begin(), w.end(), [](double weight) {
    return std::abs(weight) <= std::numeric_limits<float>::max();
  });
  if (!fits) return true;
  const Margins scaled = MeasureMargins(rows, w, cancellation);
  if (cancellation.cancelled()) return false;
  if (!(scaled.floor > 0)) return true;
  NewWeights& weights = result.separator.emplace();
  for (size_t column = 0; column < rows.features().size(); ++column) {
    if (w[column] == 0) continue;
    weights.indices.push_back(rows.features()[column]);
    weights.values.push_back(static_cast<float>(w[column]));
  }
  if (rows.has_offset()) weights.offset_weight = static_cast<float>(w.back());
  if (!result.input.new_names().empty()) {
    weights.new_names = result.input.new_names();
    weights.first_new = result.input.first_new();
  }
  result.separator_margin = scaled.floor;
  return true;
}

}  // namespace

absl::StatusOr<ModelAnalysis> AnalyzeModel(Model& model, AnalysisOptions options,
                                           ModelAnalysisCallback keep_going) {
  const absl::Time now = absl::Now();
  absl::StatusOr<AnalysisInput> input = AnalysisInput::Make(model);
  if (!input.ok()) return input.status();
  options.bias_input = model.settings().learner.bias_input;
  ModelAnalysis result{*std::move(input), {}, {}, std::nullopt, 0};
  const size_t examples = result.input.rows().size();
  const auto report = [&](const AnalysisProgress& progress) {
    return keep_going({examples, progress});
  };
  result.analysis = Analyze(result.input.rows(), options, report);
  if (result.analysis.end == AnalysisEnd::kCancelled) return Cancelled();
  if (result.analysis.separator.has_value()) {
    CancellationToken cancellation(report);
    cancellation.progress = {AnalysisStage::kRefining, result.analysis.rounds, 0,
                             result.analysis.margin_floor, result.analysis.margin_ceiling};
    if (!Scale(options, cancellation, result)) return Cancelled();
  }
  result.record = MakeRecord(result.input, result.analysis, now);
  model.ledger().AddAnalysis(result.record);
  return result;
}

}  // namespace perceptrond
