// What a fleet is compared with: replicas that learn each for itself and average their weights
// (iterative parameter mixing: McDonald, Hall, Mann 2010), and models that are each on one replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/bench/fleet/row_source.h"

namespace perceptrond::bench::fleet {

struct MixingOptions {
  RowOptions rows;
  size_t replicas = 10;
  // Rows of each replica between two averagings.
  uint64_t rows_between = 100;
  uint64_t total_rows = 300'000;
};

struct MixingFigures {
  uint64_t rows = 0;
  // Of all replicas: mistakes on each one's own weights.
  uint64_t updates = 0;
  uint64_t mixes = 0;
  // After the last averaging.
  std::vector<float> weights;
};

MixingFigures SimulateMixing(const MixingOptions& options);

// The share of `rows` fresh rows, labelled rightly by the first separator, that the weights get wrong.
double TrueErrorRate(const RowOptions& options, const std::vector<float>& weights, size_t rows);

// Of models whose shares of the rows follow Zipf's law, spread over replicas by a hash: the largest
// share of the rows that one replica gets, the mean of many hashes.
double LargestShare(size_t models, size_t replicas);

// Rows a second, in units of what one replica evaluates: with each model on one replica, and with
// rows on any replica of which this part is forwarded to their model's writer.
double ShardedCapacity(double largest_share);
double FleetCapacity(double largest_share, size_t replicas, double forwarded);

}  // namespace perceptrond::bench::fleet
