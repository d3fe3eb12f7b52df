#include "client/ctl/calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/report/format.h"

namespace perceptrond::client {
namespace {

// float32's epsilon: a probability nearer to 0 or 1 is 0 or 1 by rounding.
constexpr double kLeastProbability = 0x1p-23;

// -ln of the probability of what happened.
double LogLoss(double probability) {
  return -std::log(std::clamp(probability, kLeastProbability, 1 - kLeastProbability));
}

double Edge(size_t i) { return static_cast<double>(i) / Calibration::kBins; }

}  // namespace

void Calibration::Add(double probability, bool happened) {
  if (std::isnan(probability)) return;
  const double error = probability - (happened ? 1 : 0);
  const double right = happened ? probability : 1 - probability;
  ++total_;
  squares_ += error * error;
  logs_ += LogLoss(right);
  size_t i = 0;
  while (i + 1 < kBins && probability > Edge(i + 1)) ++i;
  ++bins_[i].examples;
  bins_[i].happened += happened ? 1 : 0;
  bins_[i].sum += probability;
}

void Calibration::Merge(const Calibration& other) {
  total_ += other.total_;
  squares_ += other.squares_;
  logs_ += other.logs_;
  for (size_t i = 0; i < kBins; ++i) {
    bins_[i].examples += other.bins_[i].examples;
    bins_[i].happened += other.bins_[i].happened;
    bins_[i].sum += other.bins_[i].sum;
  }
}

double Calibration::expected_error() const {
  double sum = 0;
  for (const Bin& bin : bins_) sum += std::abs(bin.sum - static_cast<double>(bin.happened));
  return sum / static_cast<double>(total_);
}

std::string Calibration::Table(std::string_view of, std::string_view event) const {
  std::string text = absl::StrFormat("  %-12s %12s %12s  %s\n", std::string(of), "examples", "mean",
                                     std::string(event));
  for (size_t i = 0; i < kBins; ++i) {
    const Bin& bin = bins_[i];
    if (bin.examples == 0) continue;
    absl::StrAppendFormat(&text, "  %.1f to %.1f   %12s %12.4f  %.4f\n", Edge(i), Edge(i + 1),
                          Grouped(bin.examples), bin.mean(), bin.fraction());
  }
  return text;
}

std::string Calibration::Json() const {
  std::vector<std::string> bins;
  for (size_t i = 0; i < kBins; ++i) {
    const Bin& bin = bins_[i];
    if (bin.examples == 0) continue;
    bins.push_back(JsonObject()
                       .Number("from", Edge(i))
                       .Number("to", Edge(i + 1))
                       .Integer("examples", static_cast<int64_t>(bin.examples))
                       .Number("meanProbability", bin.mean())
                       .Number("fraction", bin.fraction())
                       .str());
  }
  return JsonArray(bins);
}

void ClassScores::Add(std::span<const float> probabilities, int actual) {
  double right = 0;
  double others = 0;
  for (size_t k = 0; k < probabilities.size(); ++k) {
    if (std::isnan(probabilities[k])) continue;
    const double probability = probabilities[k];
    if (static_cast<int>(k) == actual) {
      right = probability;
    } else {
      others += probability * probability;
    }
  }
  ++total_;
  squares_ += others + (1 - right) * (1 - right);
  logs_ += LogLoss(right);
}

}  // namespace perceptrond::client
