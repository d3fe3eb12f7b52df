#include "client/simd.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

// This file is compiled once for each kind of vector unit, but for those whose width the compiler
// does not know.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "client/simd.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace perceptrond::client::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::CappedTag<uint8_t, kBlock> kBytes;
constexpr size_t kWidth = hn::MaxLanes(kBytes);
using Bytes = hn::Vec<decltype(kBytes)>;
using Mask = hn::Mask<decltype(kBytes)>;

HWY_INLINE Bytes LoadBytes(const char* from) {
  return hn::LoadU(kBytes, reinterpret_cast<const uint8_t*>(from));
}

HWY_INLINE Mask IsByte(Bytes bytes, char c) {
  return bytes == hn::Set(kBytes, static_cast<uint8_t>(c));
}

HWY_INLINE Mask IsBetween(Bytes bytes, char first, char last) {
  const Bytes above = hn::Sub(bytes, hn::Set(kBytes, static_cast<uint8_t>(first)));
  return hn::Min(above, hn::Set(kBytes, static_cast<uint8_t>(last - first))) == above;
}

// A mask whose lowest bits come first whatever the order of the machine's bytes.
class BlockMask {
 public:
  // The bits of the bytes from `begin` on.
  HWY_INLINE void Store(size_t begin, Mask mask) {
    hn::StoreMaskBits(kBytes, mask, bits_ + begin / 8);
  }
  HWY_INLINE uint64_t Get() const {
    uint64_t bits = 0;
    std::memcpy(&bits, bits_, sizeof bits);
    if constexpr (std::endian::native == std::endian::big) bits = __builtin_bswap64(bits);
    return bits;
  }

 private:
  // A store may write eight bytes.
  uint8_t bits_[16];
};

void FindStops(const char* text, size_t blocks, uint64_t* stops, uint64_t* colons) {
  for (size_t block = 0; block < blocks; ++block, text += kBlock) {
    BlockMask stop;
    BlockMask colon;
    for (size_t i = 0; i < kBlock; i += kWidth) {
      const Bytes bytes = LoadBytes(text + i);
      stop.Store(i, hn::Or(IsByte(bytes, ' '), hn::Or(IsByte(bytes, '\t'), IsByte(bytes, '|'))));
      colon.Store(i, IsByte(bytes, ':'));
    }
    stops[block] = stop.Get();
    colons[block] = colon.Get();
  }
}

void FindWords(const char* text, size_t blocks, char* lower, uint64_t* words) {
  for (size_t block = 0; block < blocks; ++block, text += kBlock, lower += kBlock) {
    BlockMask word;
    for (size_t i = 0; i < kBlock; i += kWidth) {
      const Bytes bytes = LoadBytes(text + i);
      const Bytes case_bit = hn::Set(kBytes, 'a' - 'A');
      const Bytes small = hn::Or(bytes, hn::IfThenElseZero(IsBetween(bytes, 'A', 'Z'), case_bit));
      const Mask letter = IsBetween(small, 'a', 'z');
      const Mask above_ascii = IsBetween(bytes, '\x80', '\xff');
      word.Store(i, hn::Or(hn::Or(letter, above_ascii),
                           hn::Or(IsBetween(bytes, '0', '9'), IsByte(bytes, '\''))));
      hn::StoreU(small, kBytes, reinterpret_cast<uint8_t*>(lower + i));
    }
    words[block] = word.Get();
  }
}

// Signed numbers are compared faster than unsigned ones.
constexpr hn::CappedTag<int32_t, kBlock / 4> kKeys;
constexpr size_t kLanes = hn::MaxLanes(kKeys);
using Keys = hn::Vec<decltype(kKeys)>;

HWY_INLINE int32_t AsSigned(uint32_t key) { return static_cast<int32_t>(key ^ 0x8000'0000); }

// The keys from `at` on; those past the end are any.
HWY_INLINE Keys LoadKeys(const uint32_t* keys, size_t count, size_t at) {
  int32_t some[kLanes] = {};
  for (size_t i = 0; i < std::min(kLanes, count - at); ++i) some[i] = AsSigned(keys[at + i]);
  return hn::LoadU(kKeys, some);
}

// Ranks the keys of kVectors vectors, whose counts stay in registers.
template <size_t kVectors>
HWY_INLINE void RankVectors(const uint32_t* keys, size_t count, size_t at, uint32_t* ranks) {
  Keys ranked[kVectors];
  Keys below[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    ranked[v] = LoadKeys(keys, count, at + v * kLanes);
    below[v] = hn::Zero(kKeys);
  }
  for (size_t i = 0; i < count; ++i) {
    const Keys key = hn::Set(kKeys, AsSigned(keys[i]));
    // A true lane is -1.
    for (size_t v = 0; v < kVectors; ++v)
      below[v] = hn::Sub(below[v], hn::VecFromMask(kKeys, key < ranked[v]));
  }
  for (size_t v = 0; v < kVectors; ++v)
    hn::StoreU(below[v], kKeys, reinterpret_cast<int32_t*>(ranks + at + v * kLanes));
}

void Rank(const uint32_t* keys, size_t count, uint32_t* ranks) {
  size_t at = 0;
  for (; at + 3 * kLanes < count; at += 4 * kLanes) RankVectors<4>(keys, count, at, ranks);
  for (; at < count; at += kLanes) RankVectors<1>(keys, count, at, ranks);
}

}  // namespace

// Not in the namespace without a name: chosen below, after all units.
const Loops& OfUnit() {
  static const Loops loops = {hwy::TargetName(HWY_TARGET), FindStops, FindWords, Rank};
  return loops;
}

}  // namespace perceptrond::client::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace perceptrond::client::simd {
namespace {

// As core/vector/simd.cc does, which has the reason.
std::vector<const Loops*> FindUnits() {
  std::vector<const Loops*> units;
#if HWY_ARCH_X86
  // What processors with the first of these instructions have besides, Highway may use too.
  const bool sse4 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
  const auto add = [&](bool here, const Loops& (*of_unit)()) {
    if (here && of_unit != nullptr) units.push_back(&of_unit());
  };
  add(avx3, HWY_CHOOSE_AVX3(OfUnit));
  add(avx2, HWY_CHOOSE_AVX2(OfUnit));
  add(sse4, HWY_CHOOSE_SSE4(OfUnit));
  add(__builtin_cpu_supports("ssse3"), HWY_CHOOSE_SSSE3(OfUnit));
#endif
  const auto fallback = HWY_CHOOSE_FALLBACK(OfUnit);
  // It is one of them where the compiler may use more than any machine has.
  if (std::find(units.begin(), units.end(), &fallback()) == units.end())
    units.push_back(&fallback());
  return units;
}

}  // namespace

const std::vector<const Loops*>& Units() {
  static const std::vector<const Loops*> units = FindUnits();
  return units;
}

}  // namespace perceptrond::client::simd
#endif
