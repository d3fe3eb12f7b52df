// Gaussians, the kernels of a row with many others. Compiled once for each kind of vector unit, as
// a part of core/vector/simd.cc.

// Highway's guard: each unit includes it once.
#if defined(PERCEPTROND_SIMD_GAUSSIAN) == defined(HWY_TARGET_TOGGLE)
#ifdef PERCEPTROND_SIMD_GAUSSIAN
#undef PERCEPTROND_SIMD_GAUSSIAN
#else
#define PERCEPTROND_SIMD_GAUSSIAN
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace perceptrond::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

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

void Gaussians(double gamma, double squared_norm, const double* squared_norms, double* values,
               size_t size) {
  const auto compute = [&](auto d, size_t i) {
    const auto norms = hn::Add(hn::Set(d, squared_norm), hn::LoadU(d, squared_norms + i));
    const auto distance = hn::Sub(norms, hn::Mul(hn::Set(d, 2.0), hn::LoadU(d, values + i)));
    // Rounding may take the distance of a row to itself below 0.
    const auto argument = hn::Mul(hn::Set(d, -gamma), hn::Max(distance, hn::Zero(d)));
    hn::StoreU(ExpBelowZero(d, argument), d, values + i);
  };
  const hn::CappedTag<double, 8> together;
  size_t i = 0;
  for (; i + hn::Lanes(together) <= size; i += hn::Lanes(together)) compute(together, i);
  for (; i < size; ++i) compute(hn::CappedTag<double, 1>(), i);
}

}  // namespace
}  // namespace perceptrond::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PERCEPTROND_SIMD_GAUSSIAN
