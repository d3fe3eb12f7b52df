#include "tests/bench/fleet/row_source.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace perceptrond::bench::fleet {
namespace {

constexpr size_t kLanes = 16;

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15;
    word = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
    word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
    word ^= word >> 31;
  }
}

uint64_t Random::Bits() {
  const uint64_t bits = state_[0] + state_[3];
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return bits;
}

double Random::Exponential() { return -std::log1p(-Uniform()); }

// Box and Muller's method; the second value is not used.
double Random::Normal() {
  return std::sqrt(2 * Exponential()) * std::cos(2 * std::numbers::pi * Uniform());
}

RowSource::RowSource(const RowOptions& options)
    : options_(options),
      stride_((options.dimension + kLanes - 1) / kLanes * kLanes),
      separators_(options.seed),
      random_(options.sequence * 7919 + options.seed) {
  DrawSeparator();
}

void RowSource::DrawSeparator() {
  separator_.assign(stride_, 0);
  DrawDirection(separators_, separator_.data());
}

// Normalised uniform values: with many dimensions, their products with a fixed direction are normal.
void RowSource::DrawDirection(Random& random, float* row) {
  for (size_t i = 0; i < options_.dimension; i += 4) {
    const uint64_t bits = random.Bits();
    for (size_t j = 0; j < std::min<size_t>(4, options_.dimension - i); ++j)
      row[i + j] = static_cast<float>(static_cast<int16_t>(bits >> (16 * j)));
  }
  const auto factor = static_cast<float>(1 / Norm(row, stride_));
  for (size_t i = 0; i < stride_; ++i) row[i] *= factor;
}

// The part along the separator is moved away from 0 by the margin; the rest is scaled to keep the
// norm 1.
void RowSource::DrawRow(float* row) {
  DrawDirection(random_, row);
  const double before = Score(row, separator_.data(), stride_);
  const double distance = options_.margin + (1 - options_.margin) * std::abs(before);
  const double rest = std::sqrt((1 - distance * distance) / (1 - before * before));
  const bool wrong = random_.Uniform() < options_.noise;
  // Label times features: the separator's side is the positive one.
  const double side = (before < 0 ? -1 : 1) * (wrong ? -1 : 1);
  const auto scale = static_cast<float>(side * rest);
  const auto along = static_cast<float>((wrong ? -1 : 1) * distance - side * rest * before);
  for (size_t i = 0; i < stride_; ++i) row[i] = scale * row[i] + along * separator_[i];
  least_margin_ = std::min<double>(least_margin_, Score(row, separator_.data(), stride_));
  largest_norm_ = std::max(largest_norm_, Norm(row, stride_));
}

void RowSource::Draw(size_t count, std::vector<float>* rows) {
  rows->assign(count * stride_, 0);
  for (size_t i = 0; i < count; ++i) {
    if (options_.drift_at > 0 && drawn_ == options_.drift_at) DrawSeparator();
    DrawRow(rows->data() + i * stride_);
    ++drawn_;
  }
}

// Separate sums, which the compiler may compute at the same time.
float Score(const float* weights, const float* row, size_t stride) {
  float sums[kLanes] = {};
  for (size_t i = 0; i < stride; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) sums[j] += weights[i + j] * row[i + j];
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

double Norm(const float* values, size_t stride) {
  return std::sqrt(static_cast<double>(Score(values, values, stride)));
}

}  // namespace perceptrond::bench::fleet
