// A row's products with many others, and the kernels made of them. Compiled once for each kind of
// vector unit, as a part of core/vector/simd.cc. Each lane has a row of its own, so that sums run
// in the same order whatever a vector's width.

// Highway's guard: each unit includes it once.
#if defined(PERCEPTROND_SIMD_KERNEL) == defined(HWY_TARGET_TOGGLE)
#ifdef PERCEPTROND_SIMD_KERNEL
#undef PERCEPTROND_SIMD_KERNEL
#else
#define PERCEPTROND_SIMD_KERNEL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/vector/simd.h"

HWY_BEFORE_NAMESPACE();
namespace perceptrond::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A row's product with another one, which begins at `at` and `values`, term by term.
struct RowProduct {
  const uint32_t* at = nullptr;
  const float* values = nullptr;
  double sum = 0;

  HWY_INLINE void Add(const float* x, size_t i) {
    sum += static_cast<double>(x[at[i]]) * static_cast<double>(values[i]);
  }
};

// A sum waits for its last addition: four sums do so at the same time.
void RowDots(const float* x, const uint32_t* at, const float* values,
             std::span<const uint32_t> sizes, double* dots) {
  constexpr size_t kTogether = 4;
  while (!sizes.empty()) {
    const size_t count = HWY_MIN(kTogether, sizes.size());
    std::array<RowProduct, kTogether> rows;
    uint32_t all = sizes[0];
    for (size_t r = 0; r < count; ++r) {
      rows[r] = {at, values};
      at += sizes[r];
      values += sizes[r];
      all = HWY_MIN(all, sizes[r]);
    }
    if (count < kTogether) all = 0;
    RowProduct a = rows[0], b = rows[1], c = rows[2], d = rows[3];
    for (uint32_t i = 0; i < all; ++i) {
      a.Add(x, i);
      b.Add(x, i);
      c.Add(x, i);
      d.Add(x, i);
    }
    rows = {a, b, c, d};
    for (size_t r = 0; r < count; ++r) {
      for (uint32_t i = all; i < sizes[r]; ++i) rows[r].Add(x, i);
      *dots++ = rows[r].sum;
    }
    sizes = sizes.subspan(count);
  }
}

// Four vectors at a time, each in a variable: an array of them would be kept in memory.
void BlockDots(const float* x, const float* columns, size_t width, double* dots) {
  constexpr hn::CappedTag<double, kRowsInBlock / 4> kDoubles;
  constexpr hn::Rebind<float, decltype(kDoubles)> kFloats;
  constexpr size_t kWidth = hn::MaxLanes(kDoubles);
  for (size_t r = 0; r < kRowsInBlock; r += 4 * kWidth, dots += 4 * kWidth) {
    auto a = hn::Zero(kDoubles);
    auto b = a, c = a, d = a;
    for (size_t j = 0; j < width; ++j) {
      const float* const column = columns + j * kRowsInBlock + r;
      const auto value = hn::Set(kDoubles, static_cast<double>(x[j]));
      const auto load = [&](size_t v) HWY_ATTR {
        return hn::PromoteTo(kDoubles, hn::LoadU(kFloats, column + v * kWidth));
      };
      a = hn::MulAdd(value, load(0), a);
      b = hn::MulAdd(value, load(1), b);
      c = hn::MulAdd(value, load(2), c);
      d = hn::MulAdd(value, load(3), d);
    }
    hn::StoreU(a, kDoubles, dots);
    hn::StoreU(b, kDoubles, dots + kWidth);
    hn::StoreU(c, kDoubles, dots + 2 * kWidth);
    hn::StoreU(d, kDoubles, dots + 3 * kWidth);
  }
}

// Calls compute(tag, i) for vectors from each i on, then for the single numbers that are left.
template <typename Compute>
HWY_INLINE void ForVectors(size_t size, const Compute& compute) {
  const hn::CappedTag<double, 8> together;
  size_t i = 0;
  for (; i + hn::Lanes(together) <= size; i += hn::Lanes(together)) compute(together, i);
  for (; i < size; ++i) compute(hn::CappedTag<double, 1>(), i);
}

// Each product is limited: there is no infinity times 0.
void Powers(double offset, uint32_t exponent, double addend, double most, double* values,
            size_t size) {
  ForVectors(size, [&](auto d, size_t i) {
    const auto limit = [&](auto value) HWY_ATTR {
      return hn::Clamp(value, hn::Set(d, -most), hn::Set(d, most));
    };
    const auto base = hn::Add(hn::Set(d, offset), hn::LoadU(d, values + i));
    auto power = limit(base);
    for (uint32_t e = 1; e < exponent; ++e) power = limit(hn::Mul(power, base));
    hn::StoreU(limit(hn::Add(power, hn::Set(d, addend))), d, values + i);
  });
}

// 1 / i!.
constexpr double kInverseFactorials[] = {
    1.0,           1.0 / 1,        1.0 / 2,         1.0 / 6,         1.0 / 24,
    1.0 / 120,     1.0 / 720,      1.0 / 5040,      1.0 / 40320,     1.0 / 362880,
    1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// e^x of x <= 0, within 1e-15 of it, relatively; 0 below -708. Each operation is rounded by itself,
// so that all units have the same bits.
template <class D>
HWY_INLINE hn::Vec<D> ExpBelowZero(D d, hn::Vec<D> x) {
  // As DeterministicExp (core/vector/arithmetic.h); what is divided there is multiplied here.
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kLog2E = 1.44269504088896338700;
  // Added to a number of this size, float64 rounds to whole numbers, which are its last bits.
  constexpr double kRounder = 0x1.8p52;
  const hn::RebindToUnsigned<D> bits;
  const auto least = hn::Set(d, -708.0);
  const auto rounder = hn::Set(d, kRounder);
  const auto shifted = hn::Add(hn::Mul(hn::Max(x, least), hn::Set(d, kLog2E)), rounder);
  const auto n = hn::Sub(shifted, rounder);
  const auto high = hn::Sub(hn::Max(x, least), hn::Mul(n, hn::Set(d, kLn2High)));
  const auto r = hn::Sub(high, hn::Mul(n, hn::Set(d, kLn2Low)));
  auto sum = hn::Set(d, kInverseFactorials[13]);
  for (size_t i = 13; i > 0; --i)
    sum = hn::Add(hn::Mul(sum, r), hn::Set(d, kInverseFactorials[i - 1]));
  const auto exponent = hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, uint64_t{1023}));
  const auto power = hn::BitCast(d, hn::ShiftLeft<52>(exponent));
  return hn::IfThenZeroElse(hn::Lt(x, least), hn::Mul(sum, power));
}

void Gaussians(double gamma, double squared_norm, const double* squared_norms, double addend,
               double* values, size_t size) {
  ForVectors(size, [&](auto d, size_t i) {
    const auto norms = hn::Add(hn::Set(d, squared_norm), hn::LoadU(d, squared_norms + i));
    const auto distance = hn::Sub(norms, hn::Mul(hn::Set(d, 2.0), hn::LoadU(d, values + i)));
    // Rounding may take the distance of a row to itself below 0.
    const auto argument = hn::Mul(hn::Set(d, -gamma), hn::Max(distance, hn::Zero(d)));
    hn::StoreU(hn::Add(ExpBelowZero(d, argument), hn::Set(d, addend)), d, values + i);
  });
}

void AddProducts(const double* a, const double* b, size_t size, double* sums) {
  constexpr hn::CappedTag<double, 8> kDoubles;
  constexpr size_t kWidth = hn::MaxLanes(kDoubles);
  const size_t whole = size / 8 * 8;
  for (size_t lane = 0; lane < 8; lane += kWidth) {
    auto sum = hn::LoadU(kDoubles, sums + lane);
    for (size_t i = lane; i < whole; i += 8)
      sum = hn::Add(sum, hn::Mul(hn::LoadU(kDoubles, a + i), hn::LoadU(kDoubles, b + i)));
    hn::StoreU(sum, kDoubles, sums + lane);
  }
  for (size_t i = whole; i < size; ++i) sums[i % 8] += a[i] * b[i];
}

}  // namespace
}  // namespace perceptrond::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PERCEPTROND_SIMD_KERNEL
