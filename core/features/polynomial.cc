#include "core/features/polynomial.h"

#include <algorithm>
#include <array>

#include "core/sync/cancellation.h"

namespace perceptrond {
namespace {

constexpr uint32_t kMaxDegree = FeatureMap::kMaxDegree;
// Beyond every count of features that is taken, and far below where sums of it overflow.
constexpr uint64_t kMany = uint64_t{1} << 32;

// C(n, k), at most kMany. n < 2^31.
uint64_t Binomial(uint64_t n, uint32_t k) {
  if (k > n) return 0;
  uint64_t result = 1;
  for (uint32_t i = 1; i <= k; ++i) {
    result = result * (n - k + i) / i;
    if (result >= kMany) return kMany;
  }
  return result;
}

// C(n, k) where it is known to fit: the divisors are constants.
uint64_t SmallBinomial(uint64_t n, size_t k) {
  switch (k) {
    case 1:
      return n;
    case 2:
      return n * (n - 1) / 2;
    case 3:
      return n * (n - 1) * (n - 2) / 6;
    default:
      return n * (n - 1) * (n - 2) * (n - 3) / 24;
  }
}

// Monomials of exactly this degree.
uint64_t CountOfDegree(uint64_t features, uint32_t degree, bool interactions_only) {
  if (features == 0) return 0;
  return Binomial(interactions_only ? features : features + degree - 1, degree);
}

// Bytes of the names of all monomials of this degree, their factors' names having `bytes` in sum:
// by symmetry each feature occurs in them equally often.
uint64_t BytesOfDegree(uint64_t features, uint64_t bytes, uint32_t degree, bool interactions_only) {
  if (features == 0) return 0;
  const uint64_t occurrences = interactions_only ? Binomial(features - 1, degree - 1)
                                                 : Binomial(features + degree - 1, degree - 1);
  return bytes * occurrences + (degree - 1) * CountOfDegree(features, degree, interactions_only);
}

// Calls emit(factors, value) for every monomial of a row's features, in the order of MonomialIndex,
// until KeepGoing returns false. Factors are positions in the row.
template <typename Emit>
class Monomials {
 public:
  Monomials(const Row& row, const FeatureSpace& space, Emit emit)
      : row_(row),
        distinct_(space.map.interactions_only),
        work_(ProductWork(space.kind)),
        emit_(emit) {
    const FeatureMap& map = space.map;
    for (degree_ = 1; degree_ <= map.degree; ++degree_)
      Choose(degree_, static_cast<uint32_t>(row.size), 1);
  }

 private:
  // Chooses the factors left to choose, the last of them first, among positions before `end`.
  void Choose(uint32_t left, uint32_t end, double product) {
    if (left == 1 && !KeepGoing(end * work_)) return;
    for (uint32_t i = 0; i < end; ++i) {
      factors_[left - 1] = i;
      const double value = product * static_cast<double>(row_.value(i));
      if (left > 1) {
        Choose(left - 1, distinct_ ? i : i + 1, value);
        if (Stopped()) return;
      } else {
        emit_(std::span<const uint32_t>(factors_.data(), degree_), static_cast<float>(value));
      }
    }
  }

  const Row& row_;
  const bool distinct_;
  const size_t work_;
  Emit emit_;
  uint32_t degree_ = 0;
  std::array<uint32_t, kMaxDegree> factors_{};
};

// The indices of the features at these positions of a row.
std::span<const uint32_t> Indices(const Row& row, std::span<const uint32_t> factors,
                                  std::array<uint32_t, kMaxDegree>& indices) {
  for (size_t i = 0; i < factors.size(); ++i) indices[i] = row.index(factors[i]);
  return {indices.data(), factors.size()};
}

}  // namespace

uint64_t MonomialCount(uint64_t features, const FeatureMap& map) {
  uint64_t count = 0;
  for (uint32_t degree = 1; degree <= map.degree; ++degree)
    count += CountOfDegree(features, degree, map.interactions_only);
  return std::min(count, kMany);
}

uint32_t MonomialIndex(std::span<const uint32_t> factors, uint32_t dimension,
                       const FeatureMap& map) {
  uint64_t index = 0;
  for (size_t k = 1; k <= factors.size(); ++k) {
    const uint64_t factor = factors[k - 1];
    const uint64_t repeats = map.interactions_only ? 0 : k - 1;
    index += SmallBinomial(factor + repeats, k);
    if (k < factors.size()) index += SmallBinomial(dimension + repeats, k);
  }
  return static_cast<uint32_t>(index);
}

std::vector<uint32_t> MonomialFactors(uint32_t index, uint32_t dimension, const FeatureMap& map) {
  uint64_t rank = index;
  uint32_t degree = 1;
  for (; degree < map.degree; ++degree) {
    const uint64_t count = CountOfDegree(dimension, degree, map.interactions_only);
    if (rank < count) break;
    rank -= count;
  }
  // The last factor is the largest whose C(i + repeats, k) does not exceed the rank; then the rest.
  std::vector<uint32_t> factors(degree);
  for (uint32_t k = degree; k > 0; --k) {
    const uint64_t repeats = map.interactions_only ? 0 : k - 1;
    uint64_t low = 0;
    uint64_t high = dimension;
    while (high - low > 1) {
      const uint64_t middle = (low + high) / 2;
      (Binomial(middle + repeats, k) <= rank ? low : high) = middle;
    }
    factors[k - 1] = static_cast<uint32_t>(low);
    rank -= Binomial(low + repeats, k);
  }
  return factors;
}

Polynomial::Polynomial(const FeatureSpace& space) : space_(space) {}

MapCost Polynomial::CostOf(uint64_t features, size_t max_features) const {
  const uint64_t monomials = MonomialCount(features, space_.map);
  if (monomials > max_features) return {features, 0};
  return {monomials * ProductWork(space_.kind), monomials};
}

ValidationCode Polynomial::Expand(const Source& source, size_t max_features, Mapped& target) const {
  target.extent = Measure(source);
  const ValidationCode code = CheckExtent(target.extent, max_features);
  if (code != ValidationCode::kNone) return code;
  switch (space_.kind) {
    case FeatureSpace::Kind::kDense:
      ExpandDense(source.row, target);
      break;
    case FeatureSpace::Kind::kHashed:
      ExpandHashed(source.row, target);
      break;
    case FeatureSpace::Kind::kNamed:
      ExpandNamed(source, target);
      break;
  }
  return ValidationCode::kNone;
}

Extent Polynomial::Measure(const Source& source) const {
  const Row& row = source.row;
  Extent extent{MonomialCount(row.size, space_.map)};
  if (space_.kind != FeatureSpace::Kind::kNamed || extent.features >= kMany) return extent;
  uint64_t bytes = 0;
  for (size_t i = 0; i < row.size; ++i) bytes += FactorBytes(source.names[row.index(i)]);
  for (uint32_t degree = 1; degree <= space_.map.degree; ++degree)
    extent.name_bytes += BytesOfDegree(row.size, bytes, degree, space_.map.interactions_only);
  return extent;
}

void Polynomial::ExpandDense(const Row& row, Mapped& target) const {
  const bool sparse = row.indices != nullptr;
  target.indices.clear();
  target.values.clear();
  if (sparse) target.indices.reserve(target.extent.features);
  target.values.reserve(target.extent.features);
  std::array<uint32_t, kMaxDegree> indices;
  Monomials(row, space_, [&](std::span<const uint32_t> factors, float value) {
    // A dense row has every monomial, and they come in their order.
    if (sparse) {
      const std::span<const uint32_t> of = Indices(row, factors, indices);
      target.indices.push_back(MonomialIndex(of, space_.size, space_.map));
    }
    target.values.push_back(value);
  });
  target.row = Row{nullptr, target.values.data(), target.values.size()};
  if (sparse) target.row.indices = target.values.empty() ? kNoIndices : target.indices.data();
}

void Polynomial::ExpandHashed(const Row& row, Mapped& target) const {
  target.slots.Clear();
  target.slots.Reserve(target.extent.features);
  std::array<uint32_t, kMaxDegree> indices;
  Monomials(row, space_, [&](std::span<const uint32_t> factors, float value) {
    const std::span<const uint32_t> of = Indices(row, factors, indices);
    target.slots.Add(of.size() == 1 ? of[0] : ProductSlot(of, space_.size), value);
  });
  target.row = target.slots.Sum();
}

void Polynomial::ExpandNamed(const Source& source, Mapped& target) const {
  const Row& row = source.row;
  target.names.Clear();
  target.names.Reserve(target.extent.features, target.extent.name_bytes);
  target.values.clear();
  target.values.reserve(target.extent.features);
  std::array<uint32_t, kMaxDegree> indices;
  Monomials(row, space_, [&](std::span<const uint32_t> factors, float value) {
    target.names.Add(Indices(row, factors, indices), source.names);
    target.values.push_back(value);
  });
  target.row = Row{kNoIndices, target.values.data(), target.values.size()};
}

}  // namespace perceptrond
