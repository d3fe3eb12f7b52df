#include "core/convergence/analysis/separator.h"

#include <cmath>
#include <vector>

#include "core/convergence/analysis/bounds.h"
#include "core/convergence/analysis/cancellation_token.h"

namespace perceptrond {

std::optional<Separator> RoundSeparator(const SignedRows& rows, std::span<const double> w) {
  double squared = 0;
  for (const double x : w) squared += x * x;
  std::vector<double> rounded;
  for (const double x : w) rounded.push_back(static_cast<float>(x / std::sqrt(squared)));
  // A cancelled analysis still says what it has.
  const auto go_on = [](const AnalysisProgress&) { return true; };
  CancellationToken uncancelled(go_on);
  Separator separator;
  separator.margin_floor = MeasureMargins(rows, rounded, uncancelled).floor;
  if (separator.margin_floor <= 0) return std::nullopt;
  for (size_t k = 0; k < rows.features().size(); ++k)
    if (rounded[k] != 0)
      separator.weights.push_back({rows.features()[k], static_cast<float>(rounded[k])});
  if (rows.has_offset()) separator.offset_weight = static_cast<float>(rounded.back());
  return separator;
}

}  // namespace perceptrond
