// The loops over columns: halves, the order of indices, numbers of a table. Compiled once for each
// kind of vector unit, as a part of core/vector/simd.cc.

// Highway's guard: each unit includes it once.
#if defined(PERCEPTROND_SIMD_COLUMNS) == defined(HWY_TARGET_TOGGLE)
#ifdef PERCEPTROND_SIMD_COLUMNS
#undef PERCEPTROND_SIMD_COLUMNS
#else
#define PERCEPTROND_SIMD_COLUMNS
#endif

#include <hwy/highway.h>

#include <cstring>

#include "core/vector/simd.h"

HWY_BEFORE_NAMESPACE();
namespace perceptrond::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
// By an instruction.
template <class D, class Half>
HWY_INLINE hn::Vec<D> Promote(D d, Half half, const hwy::float16_t* group) {
  return hn::PromoteTo(d, hn::Load(half, group));
}
#else
// Highway has no infinities and no NaN here: they would become numbers of 65536 and more. Exponent
// and fraction of a half, as those of a float, are 2^-112 of it, also where the exponent is 0.
template <class D, class Half>
HWY_INLINE hn::Vec<D> Promote(D d, Half /*half*/, const hwy::float16_t* group) {
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<uint16_t, D> half_bits;
  const auto whole =
      hn::PromoteTo(bits, hn::Load(half_bits, reinterpret_cast<const uint16_t*>(group)));
  const auto size = hn::ShiftLeft<13>(hn::And(whole, hn::Set(bits, 0x7fff)));
  const auto number = hn::BitCast(bits, hn::Mul(hn::BitCast(d, size), hn::Set(d, 0x1p112F)));
  const auto not_finite = hn::VecFromMask(bits, hn::Gt(size, hn::Set(bits, 0x0f7fffff)));
  const auto sign = hn::ShiftLeft<16>(hn::And(whole, hn::Set(bits, 0x8000)));
  const auto exponent = hn::And(not_finite, hn::Set(bits, 0x7f800000));
  return hn::BitCast(d, hn::Or(hn::Or(number, exponent), sign));
}
#endif

void HalvesToFloats(const char* halves, float* floats, size_t size) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  // The bytes may be at any address, and the last ones are fewer than a group.
  HWY_ALIGN hwy::float16_t group[hn::MaxLanes(d)] = {};
  HWY_ALIGN float last[hn::MaxLanes(d)];
  for (size_t i = 0; i < size; i += hn::Lanes(d)) {
    const size_t count = HWY_MIN(hn::Lanes(d), size - i);
    std::memcpy(group, halves + 2 * i, 2 * count);
    const auto promoted = Promote(d, half, group);
    if (count == hn::Lanes(d)) {
      hn::StoreU(promoted, d, floats + i);
    } else {
      hn::Store(promoted, d, last);
      std::memcpy(floats + i, last, count * sizeof(float));
    }
  }
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

LookedUp LookUp(const Lookup& table, const uint32_t* at, size_t size, uint32_t* values,
                uint32_t* flagged) {
  const hn::ScalableTag<uint32_t> d;
  const hn::RebindToSigned<decltype(d)> offsets;
  const size_t lanes = hn::Lanes(d);
  const auto mask = hn::Set(d, table.mask);
  const auto keep = hn::Set(d, table.keep);
  const auto flag = hn::Set(d, table.flag);
  LookedUp found;
  auto bits = hn::Zero(d);
  // Of the vector at i, the first `again` lanes were looked up before.
  const auto look_up = [&](size_t i, size_t again) {
    const auto numbers = hn::And(hn::LoadU(d, at + i), mask);
    const auto entries = hn::GatherIndex(d, table.entries, hn::BitCast(offsets, numbers));
    bits = hn::Or(bits, entries);
    const auto kept = hn::And(entries, keep);
    hn::StoreU(kept, d, values + i);
    const auto has_flag = hn::And(hn::TestBit(entries, flag), hn::Not(hn::FirstN(d, again)));
    if (!hn::AllFalse(d, has_flag))
      found.flagged += hn::CompressStore(kept, has_flag, d, flagged + found.flagged);
  };
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) look_up(i, 0);
  if (i < size && size >= lanes) {
    look_up(size - lanes, lanes - (size - i));
    i = size;
  }
  HWY_ALIGN uint32_t lane[hn::MaxLanes(d)];
  hn::Store(bits, d, lane);
  for (size_t j = 0; j < lanes; ++j) found.bits |= lane[j];
  for (; i < size; ++i) {
    const uint32_t entry = table.entries[at[i] & table.mask];
    found.bits |= entry;
    values[i] = entry & table.keep;
    if ((entry & table.flag) != 0) flagged[found.flagged++] = values[i];
  }
  return found;
}

}  // namespace
}  // namespace perceptrond::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PERCEPTROND_SIMD_COLUMNS
