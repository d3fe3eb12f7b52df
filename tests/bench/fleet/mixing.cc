#include "tests/bench/fleet/mixing.h"

#include <algorithm>

namespace perceptrond::bench::fleet {
namespace {

constexpr int kHashes = 200;

bool Learn(std::vector<float>& weights, const float* row) {
  if (Score(weights.data(), row, weights.size()) > 0) return false;
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += row[i];
  return true;
}

std::vector<float> Mean(const std::vector<std::vector<float>>& all) {
  std::vector<float> mean(all[0].size());
  for (size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const std::vector<float>& one : all) sum += one[i];
    mean[i] = static_cast<float>(sum / static_cast<double>(all.size()));
  }
  return mean;
}

}  // namespace

MixingFigures SimulateMixing(const MixingOptions& options) {
  RowSource source(options.rows);
  MixingFigures figures;
  figures.weights.assign(source.stride(), 0);
  std::vector<std::vector<float>> replicas(options.replicas, figures.weights);
  std::vector<float> rows;
  while (figures.rows < options.total_rows) {
    for (uint64_t i = 0; i < options.rows_between; ++i) {
      source.Draw(options.replicas, &rows);
      for (size_t j = 0; j < options.replicas; ++j)
        figures.updates += Learn(replicas[j], rows.data() + j * source.stride()) ? 1 : 0;
      figures.rows += options.replicas;
      if (figures.rows >= options.total_rows) break;
    }
    figures.weights = Mean(replicas);
    ++figures.mixes;
    std::fill(replicas.begin(), replicas.end(), figures.weights);
  }
  return figures;
}

double TrueErrorRate(const RowOptions& options, const std::vector<float>& weights, size_t rows) {
  RowOptions right = options;
  right.noise = 0;
  right.sequence += 1;
  RowSource source(right);
  std::vector<float> drawn;
  source.Draw(rows, &drawn);
  size_t wrong = 0;
  for (size_t i = 0; i < rows; ++i)
    if (Score(weights.data(), drawn.data() + i * source.stride(), source.stride()) <= 0) ++wrong;
  return static_cast<double>(wrong) / static_cast<double>(rows);
}

double LargestShare(size_t models, size_t replicas) {
  double total = 0;
  for (size_t i = 1; i <= models; ++i) total += 1 / static_cast<double>(i);
  Random random(7);
  double sum = 0;
  for (int hash = 0; hash < kHashes; ++hash) {
    std::vector<double> shares(replicas, 0);
    for (size_t i = 1; i <= models; ++i)
      shares[random.Bits() % replicas] += 1 / static_cast<double>(i) / total;
    sum += *std::max_element(shares.begin(), shares.end());
  }
  return sum / kHashes;
}

double ShardedCapacity(double largest_share) { return 1 / largest_share; }

// Each replica evaluates its part of the rows, and those forwarded to the models it writes.
double FleetCapacity(double largest_share, size_t replicas, double forwarded) {
  const double part = 1 / static_cast<double>(replicas);
  return 1 / (part + (1 - part) * forwarded * largest_share);
}

}  // namespace perceptrond::bench::fleet
