#include "core/vector/simd.h"

#include <unistd.h>

#include <algorithm>

#include "core/vector/simd_units.h"

// This file is compiled once for each kind of vector unit, but for those whose width the compiler
// does not know: their vectors cannot be members.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vector/simd.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/vector/simd_columns-inl.h"
#include "core/vector/simd_kernel-inl.h"
#include "core/vector/simd_rank-inl.h"

namespace perceptrond::simd {
size_t FirstFar();
}  // namespace perceptrond::simd

HWY_BEFORE_NAMESPACE();
namespace perceptrond::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Lane i % kLanes takes term i, whatever the width of a vector.
constexpr size_t kLanes = 8;
using Doubles = hn::CappedTag<double, kLanes>;
using Vector = hn::Vec<Doubles>;
constexpr size_t kWidth = hn::MaxLanes(Doubles());
constexpr size_t kVectors = kLanes / kWidth;
constexpr Doubles kDoubles;
constexpr hn::Rebind<float, Doubles> kFloats;
constexpr hn::Rebind<uint32_t, Doubles> kIndices;
constexpr hn::Rebind<int32_t, Doubles> kOffsets;
using Indices = hn::Vec<decltype(kIndices)>;

HWY_INLINE Vector Load(const float* from) {
  return hn::PromoteTo(kDoubles, hn::LoadU(kFloats, from));
}

HWY_INLINE Vector Gather(const float* weights, Indices at) {
  return hn::PromoteTo(kDoubles, hn::GatherIndex(kFloats, weights, hn::BitCast(kOffsets, at)));
}

// Lanes that are summed.
class Sum {
 public:
  HWY_INLINE Sum() {
    for (Vector& part : parts_) part = hn::Zero(kDoubles);
  }
  // The v-th vector of a group of kLanes terms.
  HWY_INLINE void Add(size_t v, Vector terms) { parts_[v] = hn::Add(parts_[v], terms); }
  HWY_INLINE void AddProducts(size_t v, Vector a, Vector b) {
    parts_[v] = hn::MulAdd(a, b, parts_[v]);
  }
  HWY_INLINE double Total() const {
    return Total(0, [](size_t) { return 0.0; });
  }
  // With the last terms, at most kLanes, rest(0) to rest(count - 1).
  template <typename Rest>
  HWY_INLINE double Total(size_t count, const Rest& rest) const {
    HWY_ALIGN double lane[kLanes];
    for (size_t v = 0; v < kVectors; ++v) hn::Store(parts_[v], kDoubles, lane + v * kWidth);
    for (size_t i = 0; i < count; ++i) lane[i] += rest(i);
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  }

 private:
  Vector parts_[kVectors];
};

// weight x^2, rounded once: x^2 is exact.
HWY_INLINE Vector Weigh(Vector weights, Vector x) { return hn::Mul(weights, hn::Mul(x, x)); }

HWY_INLINE double Product(float a, float b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

double DenseDot(const float* a, const float* b, size_t size) {
  Sum sum;
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t v = 0; v < kVectors; ++v)
      sum.AddProducts(v, Load(a + i + v * kWidth), Load(b + i + v * kWidth));
  }
  return sum.Total(size - i, [&](size_t j) { return Product(a[i + j], b[i + j]); });
}

double SparseDot(const float* weights, const uint32_t* at, const float* x, size_t size) {
  Sum sum;
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t j = i + v * kWidth;
      const Vector read = Gather(weights, hn::LoadU(kIndices, at + j));
      if (x == nullptr) {
        sum.Add(v, read);
      } else {
        sum.AddProducts(v, read, Load(x + j));
      }
    }
  }
  return sum.Total(size - i, [&](size_t j) {
    return Product(weights[at[i + j]], x == nullptr ? 1.0F : x[i + j]);
  });
}

// Term i is diagonal_j x_i^2, j = at_i or i.
double WeightedSquaredNorm(const float* diagonal, const uint32_t* at, const float* x, size_t size) {
  Sum sum;
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t j = i + v * kWidth;
      const Vector read =
          at == nullptr ? Load(diagonal + j) : Gather(diagonal, hn::LoadU(kIndices, at + j));
      sum.Add(v, x == nullptr ? read : Weigh(read, Load(x + j)));
    }
  }
  return sum.Total(size - i, [&](size_t j) {
    const double weight = diagonal[at == nullptr ? i + j : at[i + j]];
    return x == nullptr ? weight : weight * Product(x[i + j], x[i + j]);
  });
}

void ScanDense(const float* weights, const float* diagonal, const float* x, size_t size,
               RowScan& scan) {
  Sum dot;
  Sum norm;
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (size_t v = 0; v < kVectors; ++v) {
      const Vector values = Load(x + i + v * kWidth);
      dot.AddProducts(v, Load(weights + i + v * kWidth), values);
      norm.AddProducts(v, values, values);
    }
  }
  scan.ascends = true;
  if (diagonal != nullptr)
    scan.weighted_squared_norm = WeightedSquaredNorm(diagonal, nullptr, x, size);
  scan.dot = dot.Total(size - i, [&](size_t j) { return Product(weights[i + j], x[i + j]); });
  scan.squared_norm = norm.Total(size - i, [&](size_t j) { return Product(x[i + j], x[i + j]); });
}

// Whether a unit with masks reads part of a vector, and nothing after it, at once.
constexpr bool kMasks = !HWY_MEM_OPS_MIGHT_FAULT && kVectors == 1;

// Scans sparse rows in the order in which they are stored: with little between two rows, the
// processor fetches the weights of the next while it sums the last.
template <bool kHasValues, bool kHasDiagonal, bool kFar>
class SparseScanner {
 public:
  SparseScanner(const float* weights, const float* diagonal, size_t limit, const Batch& batch)
      : weights_(weights),
        diagonal_(diagonal),
        last_(static_cast<uint32_t>(limit - 1)),
        at_(batch.indices.data()),
        x_(batch.values.data()),
        total_(batch.indices.size()) {}

  HWY_INLINE void Scan(size_t begin, size_t end, RowScan& scan) const {
    const Indices most = hn::Set(kIndices, last_);
    auto ascends = hn::MaskFromVec(hn::Set(kIndices, ~uint32_t{0}));
    Sum dot;
    Sum norm;
    Sum weighted;
    size_t i = begin;
    // One more index than a group has: each is compared with the next.
    for (; i + kLanes < end; i += kLanes) {
      AskFor(i + kAhead, kLanes);
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t j = i + v * kWidth;
        const Indices indices = hn::LoadU(kIndices, at_ + j);
        ascends = hn::And(ascends, hn::Lt(indices, hn::LoadU(kIndices, at_ + j + 1)));
        const Vector read = Gather(weights_, hn::Min(indices, most));
        Vector variances;
        if constexpr (kHasDiagonal) variances = Gather(diagonal_, hn::Min(indices, most));
        if constexpr (kHasValues) {
          const Vector values = Load(x_ + j);
          dot.AddProducts(v, read, values);
          norm.AddProducts(v, values, values);
          if constexpr (kHasDiagonal) weighted.Add(v, Weigh(variances, values));
        } else {
          dot.Add(v, read);
          if constexpr (kHasDiagonal) weighted.Add(v, variances);
        }
      }
    }
    const size_t rest = end - i;
    AskFor(i + kAhead, rest);
    if constexpr (kMasks) {
      const auto all_but_one = hn::FirstN(kIndices, rest > 0 ? rest - 1 : 0);
      const Indices indices = hn::MaskedLoad(hn::FirstN(kIndices, rest), kIndices, at_ + i);
      const Indices next = hn::MaskedLoad(all_but_one, kIndices, at_ + (rest > 0 ? i + 1 : i));
      ascends = hn::And(ascends, hn::Or(hn::Not(all_but_one), hn::Lt(indices, next)));
      // A lane without a term adds 0.
      const Vector read =
          hn::IfThenElseZero(hn::FirstN(kDoubles, rest), Gather(weights_, hn::Min(indices, most)));
      Vector variances;
      if constexpr (kHasDiagonal)
        variances = hn::IfThenElseZero(hn::FirstN(kDoubles, rest),
                                       Gather(diagonal_, hn::Min(indices, most)));
      if constexpr (kHasValues) {
        const Vector values =
            hn::PromoteTo(kDoubles, hn::MaskedLoad(hn::FirstN(kFloats, rest), kFloats, x_ + i));
        dot.AddProducts(0, read, values);
        norm.AddProducts(0, values, values);
        if constexpr (kHasDiagonal) weighted.Add(0, Weigh(variances, values));
      } else {
        dot.Add(0, read);
        if constexpr (kHasDiagonal) weighted.Add(0, variances);
      }
      scan.ascends = hn::AllTrue(kIndices, ascends);
      scan.dot = dot.Total();
      if constexpr (kHasDiagonal) scan.weighted_squared_norm = weighted.Total();
      scan.squared_norm = norm.Total();
    } else {
      bool all_ascend = hn::AllTrue(kIndices, ascends);
      for (size_t j = i; j + 1 < end; ++j) all_ascend &= at_[j] < at_[j + 1];
      scan.ascends = all_ascend;
      const auto weight = [&](size_t j) { return weights_[HWY_MIN(at_[j], last_)]; };
      const auto value = [&](size_t j) { return kHasValues ? x_[j] : 1.0F; };
      scan.dot = dot.Total(rest, [&](size_t j) { return Product(weight(i + j), value(i + j)); });
      scan.squared_norm =
          norm.Total(rest, [&](size_t j) { return Product(value(i + j), value(i + j)); });
      if constexpr (kHasDiagonal) {
        scan.weighted_squared_norm = weighted.Total(rest, [&](size_t j) {
          return static_cast<double>(diagonal_[HWY_MIN(at_[i + j], last_)]) *
                 Product(value(i + j), value(i + j));
        });
      }
    }
    if constexpr (!kHasValues) scan.squared_norm = static_cast<double>(end - begin);
  }

  // Of a batch's first rows, which no row before them asks for.
  HWY_INLINE void AskForFirst() const { AskFor(0, HWY_MIN(kAhead, total_)); }

 private:
  // Indices ahead.
  static constexpr size_t kAhead = 320;

  // For reading, into the second cache.
  HWY_INLINE void AskFor(size_t from, size_t count) const {
    if (!kFar || from + count > total_) return;
    for (size_t i = from; i < from + count; ++i) {
      __builtin_prefetch(weights_ + HWY_MIN(at_[i], last_), 0, 2);
      if (kHasDiagonal) __builtin_prefetch(diagonal_ + HWY_MIN(at_[i], last_), 0, 2);
    }
  }

  const float* const weights_;
  const float* const diagonal_;
  const uint32_t last_;
  const uint32_t* const at_;
  const float* const x_;
  const size_t total_;
};

template <bool kHasValues, bool kHasDiagonal, bool kFar>
void ScanRowsBy(const float* weights, const float* diagonal, size_t limit, const Batch& batch,
                size_t first, std::span<RowScan> scans) {
  const SparseScanner<kHasValues, kHasDiagonal, kFar> scanner(weights, diagonal, limit, batch);
  size_t begin = batch.row_begin(first);
  if (first == 0) scanner.AskForFirst();
  for (size_t i = 0; i < scans.size(); ++i) {
    const size_t end = batch.row_ends[first + i];
    scanner.Scan(begin, end, scans[i]);
    begin = end;
  }
}

template <bool kHasValues, bool kHasDiagonal>
void ScanNearOrFar(const float* weights, const float* diagonal, size_t limit, const Batch& batch,
                   size_t first, std::span<RowScan> scans) {
  limit >= FirstFar()
      ? ScanRowsBy<kHasValues, kHasDiagonal, true>(weights, diagonal, limit, batch, first, scans)
      : ScanRowsBy<kHasValues, kHasDiagonal, false>(weights, diagonal, limit, batch, first, scans);
}

void ScanSparseRows(const float* weights, const float* diagonal, size_t limit, const Batch& batch,
                    size_t first, std::span<RowScan> scans) {
  if (batch.values.empty()) {
    diagonal == nullptr ? ScanNearOrFar<false, false>(weights, diagonal, limit, batch, first, scans)
                        : ScanNearOrFar<false, true>(weights, diagonal, limit, batch, first, scans);
  } else {
    diagonal == nullptr ? ScanNearOrFar<true, false>(weights, diagonal, limit, batch, first, scans)
                        : ScanNearOrFar<true, true>(weights, diagonal, limit, batch, first, scans);
  }
}

}  // namespace

// Not in the namespace without a name: chosen below, after all units.
const Loops& OfUnit() {
  static const Loops loops = {hwy::TargetName(HWY_TARGET),
                              DenseDot,
                              SparseDot,
                              RowDots,
                              BlockDots,
                              Powers,
                              Gaussians,
                              AddProducts,
                              WeightedSquaredNorm,
                              ScanDense,
                              ScanSparseRows,
                              HalvesToFloats,
                              Ascends,
                              Rank,
                              LookUp};
  return loops;
}

}  // namespace perceptrond::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace perceptrond::simd {

// From how many weights on they are asked for before they are read. Nearer ones come as fast by
// themselves.
size_t FirstFar() {
  static const size_t weights = [] {
    long cache = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return 4 * (cache > 0 ? static_cast<size_t>(cache) : size_t{1} << 20) / sizeof(float);
  }();
  return weights;
}

namespace {

std::vector<const Loops*>& MutableUnits() {
  static std::vector<const Loops*> units =
      FindUnits<Loops>({HWY_CHOOSE_AVX3(OfUnit), HWY_CHOOSE_AVX2(OfUnit), HWY_CHOOSE_SSE4(OfUnit),
                        HWY_CHOOSE_SSSE3(OfUnit), HWY_CHOOSE_FALLBACK(OfUnit)});
  return units;
}

}  // namespace

const std::vector<const Loops*>& Units() { return MutableUnits(); }

bool PreferUnit(std::string_view unit) {
  std::vector<const Loops*>& units = MutableUnits();
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const Loops* loops) { return unit == loops->unit; });
  if (found == units.end()) return false;
  std::rotate(units.begin(), found, found + 1);
  return true;
}

}  // namespace perceptrond::simd
#endif
