#include "core/convergence/analysis/separator.h"

#include <cmath>

#include "core/convergence/analysis/bounds.h"
#include "core/convergence/analysis/cancellation_token.h"

namespace perceptrond {

std::optional<Separator> RoundSeparator(const SignedRows& rows, std::span<const double> w) {
  double squared = 0;
  for (const double x : w) squared += x * x;
  std::vector<double> rounded;
  rounded.reserve(w.size());
  for (const double x : w) rounded.push_back(static_cast<float>(x / std::sqrt(squared)));
  // A cancelled analysis still returns what it has.
  const auto go_on = [](const AnalysisProgress&) { return true; };
  CancellationToken uncancelled(go_on);
  const double floor = MeasureMargins(rows, rounded, uncancelled).floor;
  if (floor <= 0) return std::nullopt;
  return Separator{ToWeightVectors(rows, rounded), floor};
}

std::vector<WeightVector> ToWeightVectors(const SignedRows& rows, std::span<const double> w) {
  std::vector<WeightVector> vectors(rows.blocks());
  for (size_t k = 0; k < vectors.size(); ++k) {
    const std::span<const double> block = w.subspan(k * rows.width(), rows.width());
    for (size_t j = 0; j < rows.features().size(); ++j) {
      if (block[j] != 0)
        vectors[k].weights.push_back({rows.features()[j], static_cast<float>(block[j])});
    }
    if (rows.has_bias()) vectors[k].bias_weight = static_cast<float>(block.back());
  }
  return vectors;
}

}  // namespace perceptrond
