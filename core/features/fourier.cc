#include "core/features/fourier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "core/features/names.h"
#include "core/sync/cancellation.h"

namespace perceptrond {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
// How many multiply-adds take as long as one frequency, and as one cosine.
constexpr uint64_t kFrequencyWork = 40;
constexpr uint64_t kCosineWork = 40;
// Features between two looks at whether to go on.
constexpr size_t kTogether = size_t{1} << 14;

// XXH3-64 of up to three integers.
uint64_t Draw(std::initializer_list<uint64_t> counters) {
  std::array<char, 24> bytes;
  size_t size = 0;
  for (const uint64_t counter : counters) {
    for (int shift = 0; shift < 64; shift += 8) bytes[size++] = static_cast<char>(counter >> shift);
  }
  return HashName({bytes.data(), size});
}

// 32 bits as a number in (0, 1).
double Open(uint64_t bits) {
  return (static_cast<double>(static_cast<uint32_t>(bits)) + 0.5) * 0x1p-32;
}

}  // namespace

Fourier::Fourier(const FeatureSpace& space, uint64_t table_limit)
    : named_(space.kind == FeatureSpace::Kind::kNamed),
      dimension_(space.map.dimension),
      seed_(space.map.seed),
      scale_(std::sqrt(2 * space.map.gamma)),
      phases_(dimension_) {
  for (uint64_t i = 0; i < dimension_; ++i)
    phases_[i] = kTurn * static_cast<double>(Draw({seed_, i}) >> 11) * 0x1p-53;
  if (named_ || uint64_t{space.size} * dimension_ > table_limit) return;
  // The table outlives whatever asked for it.
  const CancellationScope whole(nullptr);
  table_.resize(size_t{space.size} * dimension_);
  for (size_t key = 0; key < space.size; ++key)
    MakeFrequencies(key, std::span<float>(table_).subspan(key * dimension_, dimension_));
}

ValidationCode Fourier::Expand(const Source& source, size_t max_features, Mapped& target) const {
  target.extent = {dimension_};
  const ValidationCode code = CheckExtent(target.extent, max_features);
  if (code != ValidationCode::kNone) return code;
  std::vector<double>& sums = target.projections;
  sums.assign(phases_.begin(), phases_.end());
  for (size_t j = 0; j < source.row.size; ++j) {
    const double x = source.row.value(j);
    // It would add 0: dense and sparse rows come to the same bits.
    if (x == 0) continue;
    const uint32_t index = source.row.index(j);
    const std::span<const float> omega =
        Frequencies(named_ ? HashName(source.names[index]) : index, target);
    for (size_t i = 0; i < dimension_; ++i) sums[i] += x * static_cast<double>(omega[i]);
    if (!KeepGoing(dimension_)) break;
  }
  target.values.resize(dimension_);
  const double norm = std::sqrt(2.0 / dimension_);
  for (size_t begin = 0; begin < dimension_; begin += kTogether) {
    const size_t end = std::min<size_t>(begin + kTogether, dimension_);
    if (!KeepGoing((end - begin) * kCosineWork)) break;
    for (size_t i = begin; i < end; ++i)
      target.values[i] = static_cast<float>(norm * std::cos(sums[i]));
  }
  target.row = Row{nullptr, target.values.data(), dimension_};
  return ValidationCode::kNone;
}

MapCost Fourier::CostOf(uint64_t features, size_t max_features) const {
  if (dimension_ > max_features) return {features, 0};
  return {(features + kCosineWork) * dimension_, dimension_};
}

uint64_t Fourier::CostOfDistinct(uint64_t features, uint64_t distinct) const {
  if (!table_.empty()) return 0;
  // Those that do not fit the memory are made again for each row.
  const bool remembers = distinct * dimension_ <= kRememberedLimit;
  return (remembers ? distinct : features) * dimension_ * kFrequencyWork;
}

void Fourier::MakeFrequencies(uint64_t key, std::span<float> frequencies) const {
  for (size_t i = 0; i < frequencies.size(); i += 2) {
    if (i % kTogether == 0 &&
        !KeepGoing(std::min(kTogether, frequencies.size() - i) * kFrequencyWork))
      return;
    const uint64_t bits = Draw({seed_, i / 2, key});
    const double radius = scale_ * std::sqrt(-2 * std::log(Open(bits >> 32)));
    const double angle = kTurn * Open(bits);
    frequencies[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < frequencies.size())
      frequencies[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

std::span<const float> Fourier::Frequencies(uint64_t key, Mapped& memory) const {
  if (!table_.empty()) return std::span<const float>(table_).subspan(key * dimension_, dimension_);
  std::vector<float>& remembered = memory.frequencies;
  if (remembered.size() + dimension_ > kRememberedLimit) {
    remembered.clear();
    memory.frequency_offsets.clear();
  }
  const auto [found, is_new] = memory.frequency_offsets.emplace(key, remembered.size());
  if (is_new) remembered.resize(remembered.size() + dimension_);
  const std::span<float> here = std::span(remembered).subspan(found->second, dimension_);
  if (is_new) MakeFrequencies(key, here);
  return here;
}

}  // namespace perceptrond
