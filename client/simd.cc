#include "client/simd.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/vector/simd_units.h"

// This file is compiled once for each kind of vector unit, but for those whose width the compiler
// does not know.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "client/simd.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/vector/simd_rank-inl.h"

HWY_BEFORE_NAMESPACE();
namespace perceptrond::client::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Without vectors.

void FindStops(const char* text, size_t blocks, uint64_t* stops, uint64_t* colons) {
  std::fill_n(stops, blocks, 0);
  std::fill_n(colons, blocks, 0);
  for (size_t i = 0; i < blocks * kBlock; ++i) {
    const bool stop = text[i] == ' ' || text[i] == '\t' || text[i] == '|';
    stops[i / kBlock] |= static_cast<uint64_t>(stop) << i % kBlock;
    colons[i / kBlock] |= static_cast<uint64_t>(text[i] == ':') << i % kBlock;
  }
}

// Leaves all to the other reader, but for the number of names without one.
void ReadNumbers(const uint64_t* eights, const uint64_t* sizes, size_t count, float* values) {
  for (size_t i = 0; i < count; ++i) {
    const bool is_one = sizes[i] == 1 && eights[i] >> 56 == '1';
    values[i] = is_one ? 1 : std::numeric_limits<float>::quiet_NaN();
  }
}

#else

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

// Numbers are read in lanes of eight bytes, the first byte lowest.
constexpr hn::CappedTag<uint64_t, kBlock / 8> kEights;
constexpr hn::Repartition<uint32_t, decltype(kEights)> kFours;
constexpr hn::Repartition<uint16_t, decltype(kEights)> kTwos;
constexpr hn::Repartition<uint8_t, decltype(kEights)> kOnes;
constexpr hn::Rebind<uint32_t, decltype(kEights)> kIntegers;
constexpr hn::Rebind<int32_t, decltype(kEights)> kSigned;
constexpr hn::Rebind<float, decltype(kEights)> kFloats;
constexpr size_t kNumbers = hn::MaxLanes(kEights);
using Eights = hn::Vec<decltype(kEights)>;
using Floats = hn::Vec<decltype(kFloats)>;

HWY_INLINE Eights SetEights(uint64_t value) { return hn::Set(kEights, value); }

// The numbers of eight digits, 0 to 9 each: pairs of digits, then of pairs, then of fours.
HWY_INLINE Eights Combine(Eights digits) {
  const auto ones = hn::BitCast(kTwos, digits);
  const auto pairs = hn::Add(hn::Mul(hn::And(ones, hn::Set(kTwos, 0xff)), hn::Set(kTwos, 10)),
                             hn::ShiftRight<8>(ones));
  const auto twos = hn::BitCast(kFours, hn::Mul(pairs, hn::Set(kTwos, 100)));
  const auto fours = hn::Add(hn::And(twos, hn::Set(kFours, 0xffff)),
                             hn::ShiftRight<16>(hn::BitCast(kFours, pairs)));
  const auto high = hn::BitCast(kEights, hn::Mul(fours, hn::Set(kFours, 10'000)));
  return hn::Add(hn::And(high, SetEights(0xffff'ffff)),
                 hn::ShiftRight<32>(hn::BitCast(kEights, fours)));
}

HWY_INLINE Floats ToFloats(Eights integers) {
  return hn::ConvertTo(kFloats, hn::BitCast(kSigned, hn::TruncateTo(kIntegers, integers)));
}

HWY_INLINE Floats ReadVector(Eights eights, Eights sizes) {
  const Eights one = SetEights(1);
  const Eights zeros = SetEights(0x3030'3030'3030'3030);
  const auto is_size = hn::And(sizes > hn::Zero(kEights), sizes < SetEights(9));
  const Eights size = hn::IfThenElse(is_size, sizes, one);
  // The number, with '0' in front.
  const Eights in_front =
      hn::Sub(hn::Shl(one, hn::Sub(SetEights(64), hn::ShiftLeft<3>(size))), one);
  const Eights whole = hn::Or(hn::AndNot(in_front, eights), hn::And(in_front, zeros));
  // The lowest bit of the first point's byte.
  const auto bytes = hn::BitCast(kOnes, whole);
  const Eights points = hn::BitCast(
      kEights, hn::And(hn::VecFromMask(kOnes, bytes == hn::Set(kOnes, '.')), hn::Set(kOnes, 1)));
  const auto has_none = points == hn::Zero(kEights);
  const Eights point = hn::AndNot(hn::Sub(points, one), points);
  // Without the point; what is before it moves up.
  const Eights through_point = hn::Sub(hn::ShiftLeft<8>(point), one);
  const Eights before_point = hn::And(whole, hn::Sub(point, one));
  const Eights moved = hn::Or(hn::AndNot(through_point, whole),
                              hn::Or(hn::ShiftLeft<8>(before_point), SetEights('0')));
  const auto digits = hn::Sub(hn::BitCast(kOnes, hn::IfThenElse(has_none, whole, moved)),
                              hn::BitCast(kOnes, zeros));
  const auto small = hn::Min(digits, hn::Set(kOnes, 9));
  const auto all_digits = hn::BitCast(kEights, small) == hn::BitCast(kEights, digits);
  const Eights mantissa = Combine(hn::BitCast(kEights, small));
  // 1 in the place of the point is the power of ten to divide by.
  const Eights divisor = Combine(hn::IfThenElse(has_none, SetEights(uint64_t{1} << 56), point));
  // A point alone is no number.
  const auto alone = hn::And(sizes == one, hn::Not(has_none));
  const auto read = hn::And(hn::And(is_size, all_digits),
                            hn::And(mantissa < SetEights((1 << 24) + 1), hn::Not(alone)));
  // Both exact in float, so that one division rounds correctly (Clinger 1990).
  const Floats value = hn::Div(ToFloats(mantissa), ToFloats(divisor));
  // All ones are a NaN.
  const auto bad = hn::TruncateTo(kIntegers, hn::VecFromMask(kEights, hn::Not(read)));
  return hn::Or(value, hn::BitCast(kFloats, bad));
}

void ReadNumbers(const uint64_t* eights, const uint64_t* sizes, size_t count, float* values) {
  size_t i = 0;
  for (; i + kNumbers <= count; i += kNumbers) {
    hn::StoreU(ReadVector(hn::LoadU(kEights, eights + i), hn::LoadU(kEights, sizes + i)), kFloats,
               values + i);
  }
  if (i == count) return;
  uint64_t last_eights[kNumbers] = {};
  uint64_t last_sizes[kNumbers] = {};
  float last[kNumbers];
  std::copy(eights + i, eights + count, last_eights);
  std::copy(sizes + i, sizes + count, last_sizes);
  hn::StoreU(ReadVector(hn::LoadU(kEights, last_eights), hn::LoadU(kEights, last_sizes)), kFloats,
             last);
  std::copy(last, last + (count - i), values + i);
}

#endif

}  // namespace

// Not in the namespace without a name: chosen below, after all units.
const Loops& OfUnit() {
  static const Loops loops = {hwy::TargetName(HWY_TARGET), FindStops, ReadNumbers,
                              ::perceptrond::simd::HWY_NAMESPACE::Rank};
  return loops;
}

}  // namespace perceptrond::client::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace perceptrond::client::simd {

const std::vector<const Loops*>& Units() {
  static const std::vector<const Loops*> units = ::perceptrond::simd::FindUnits<Loops>(
      {HWY_CHOOSE_AVX3(OfUnit), HWY_CHOOSE_AVX2(OfUnit), HWY_CHOOSE_SSE4(OfUnit),
       HWY_CHOOSE_SSSE3(OfUnit), HWY_CHOOSE_FALLBACK(OfUnit)});
  return units;
}

}  // namespace perceptrond::client::simd
#endif
