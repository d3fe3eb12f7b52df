#include "core/vector/simd.h"

// This file is compiled once for each kind of vector unit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vector/simd.cc"
#include <hwy/foreach_target.h>
// Behind foreach_target.h.
#include <hwy/highway.h>

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
constexpr hn::Rebind<uint32_t, Doubles> kPlaces;
constexpr hn::Rebind<int32_t, Doubles> kOffsets;
using Places = hn::Vec<decltype(kPlaces)>;

HWY_INLINE Vector Load(const float* from) {
  return hn::PromoteTo(kDoubles, hn::LoadU(kFloats, from));
}

HWY_INLINE Vector Gather(const float* weights, Places at) {
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
      const Vector read = Gather(weights, hn::LoadU(kPlaces, at + j));
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

RowScan ScanDense(const float* weights, const float* x, size_t size) {
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
  RowScan scan;
  scan.dot = dot.Total(size - i, [&](size_t j) { return Product(weights[i + j], x[i + j]); });
  scan.squared_norm = norm.Total(size - i, [&](size_t j) { return Product(x[i + j], x[i + j]); });
  return scan;
}

RowScan ScanSparse(const float* weights, size_t limit, const uint32_t* at, const float* x,
                   size_t size) {
  const auto last = static_cast<uint32_t>(limit - 1);
  const Places most = hn::Set(kPlaces, last);
  auto ascends = hn::MaskFromVec(hn::Set(kPlaces, ~uint32_t{0}));
  Sum dot;
  Sum norm;
  size_t i = 0;
  // One more place than a group takes: each is compared with the next.
  for (; i + kLanes < size; i += kLanes) {
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t j = i + v * kWidth;
      const Places places = hn::LoadU(kPlaces, at + j);
      ascends = hn::And(ascends, hn::Lt(places, hn::LoadU(kPlaces, at + j + 1)));
      const Vector read = Gather(weights, hn::Min(places, most));
      if (x == nullptr) {
        dot.Add(v, read);
      } else {
        const Vector values = Load(x + j);
        dot.AddProducts(v, read, values);
        norm.AddProducts(v, values, values);
      }
    }
  }
  RowScan scan;
  scan.ascends = hn::AllTrue(kPlaces, ascends);
  for (size_t j = i; j + 1 < size; ++j) scan.ascends &= at[j] < at[j + 1];
  const auto value = [&](size_t j) { return x == nullptr ? 1.0F : x[j]; };
  scan.dot = dot.Total(
      size - i, [&](size_t j) { return Product(weights[HWY_MIN(at[i + j], last)], value(i + j)); });
  scan.squared_norm =
      x == nullptr ? static_cast<double>(size)
                   : norm.Total(size - i, [&](size_t j) { return Product(x[i + j], x[i + j]); });
  return scan;
}

bool Ascends(const uint32_t* at, size_t size) {
  const hn::ScalableTag<uint32_t> d;
  size_t i = 0;
  auto ascends = hn::MaskFromVec(hn::Set(d, ~uint32_t{0}));
  for (; i + hn::Lanes(d) < size; i += hn::Lanes(d))
    ascends = hn::And(ascends, hn::Lt(hn::LoadU(d, at + i), hn::LoadU(d, at + i + 1)));
  bool all = hn::AllTrue(d, ascends);
  for (; i + 1 < size; ++i) all &= at[i] < at[i + 1];
  return all;
}

}  // namespace
}  // namespace perceptrond::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace perceptrond::simd {

HWY_EXPORT(DenseDot);
HWY_EXPORT(SparseDot);
HWY_EXPORT(ScanDense);
HWY_EXPORT(ScanSparse);
HWY_EXPORT(Ascends);

double DenseDot(const float* a, const float* b, size_t size) {
  return HWY_DYNAMIC_DISPATCH(DenseDot)(a, b, size);
}

double SparseDot(const float* weights, const uint32_t* at, const float* x, size_t size) {
  return HWY_DYNAMIC_DISPATCH(SparseDot)(weights, at, x, size);
}

RowScan ScanDense(const float* weights, const float* x, size_t size) {
  return HWY_DYNAMIC_DISPATCH(ScanDense)(weights, x, size);
}

RowScan ScanSparse(const float* weights, size_t limit, const uint32_t* at, const float* x,
                   size_t size) {
  return HWY_DYNAMIC_DISPATCH(ScanSparse)(weights, limit, at, x, size);
}

bool Ascends(const uint32_t* at, size_t size) { return HWY_DYNAMIC_DISPATCH(Ascends)(at, size); }

}  // namespace perceptrond::simd
#endif
