// Rank, which sorts few keys faster than comparing them one by one. Compiled once for each kind of
// vector unit, as a part of core/vector/simd.cc and client/simd.cc.

// Highway's guard: each unit includes it once.
#if defined(PERCEPTROND_SIMD_RANK) == defined(HWY_TARGET_TOGGLE)
#ifdef PERCEPTROND_SIMD_RANK
#undef PERCEPTROND_SIMD_RANK
#else
#define PERCEPTROND_SIMD_RANK
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace perceptrond::simd::HWY_NAMESPACE {
namespace {

constexpr hwy::HWY_NAMESPACE::CappedTag<int32_t, 16> kRanks;
constexpr hwy::HWY_NAMESPACE::RebindToUnsigned<decltype(kRanks)> kKeys;
using Ranks = hwy::HWY_NAMESPACE::Vec<decltype(kRanks)>;

// Signed numbers are compared faster than unsigned ones.
HWY_INLINE Ranks AsSigned(hwy::HWY_NAMESPACE::Vec<decltype(kKeys)> keys) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::BitCast(kRanks, hn::Xor(keys, hn::Set(kKeys, 0x8000'0000)));
}

// Ranks the keys of kVectors vectors, whose counts stay in registers.
template <size_t kVectors>
HWY_INLINE void RankVectors(const uint32_t* keys, size_t size, size_t at, uint32_t* ranks) {
  namespace hn = hwy::HWY_NAMESPACE;
  Ranks ranked[kVectors];
  Ranks less[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    ranked[v] = AsSigned(hn::LoadU(kKeys, keys + at + v * hn::Lanes(kRanks)));
    less[v] = hn::Zero(kRanks);
  }
  for (size_t i = 0; i < size; ++i) {
    const Ranks key = AsSigned(hn::Set(kKeys, keys[i]));
    // A true lane is -1.
    for (size_t v = 0; v < kVectors; ++v)
      less[v] = hn::Sub(less[v], hn::VecFromMask(kRanks, hn::Lt(key, ranked[v])));
  }
  for (size_t v = 0; v < kVectors; ++v)
    hn::StoreU(hn::BitCast(kKeys, less[v]), kKeys, ranks + at + v * hn::Lanes(kRanks));
}

// Writes to `ranks` how many keys are less than each. Both have room for 64 more. O(size^2).
inline void Rank(const uint32_t* keys, size_t size, uint32_t* ranks) {
  const size_t lanes = hwy::HWY_NAMESPACE::Lanes(kRanks);
  size_t at = 0;
  for (; at + 3 * lanes < size; at += 4 * lanes) RankVectors<4>(keys, size, at, ranks);
  for (; at < size; at += lanes) RankVectors<1>(keys, size, at, ranks);
}

}  // namespace
}  // namespace perceptrond::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PERCEPTROND_SIMD_RANK
