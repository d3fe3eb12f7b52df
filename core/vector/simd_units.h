// Chooses the loops that Highway compiled for a vector unit of this machine. Highway's own library
// would tell as well, but it measures the clock when it is loaded, which takes longer than
// everything else that a server does before it opens its journal (docs/adr/0009-libraries.md).
#pragma once

#include <algorithm>
#include <vector>

namespace perceptrond::simd {

// The functions that return the loops of each unit, as HWY_CHOOSE_ gives them; null: not compiled.
template <typename Loops>
struct CompiledUnits {
  const Loops& (*avx3)();
  const Loops& (*avx2)();
  const Loops& (*sse4)();
  const Loops& (*ssse3)();
  const Loops& (*fallback)();
};

// The loops of the units that this machine has, the best first; at least one.
template <typename Loops>
std::vector<const Loops*> FindUnits(const CompiledUnits<Loops>& compiled) {
  std::vector<const Loops*> units;
#ifdef __x86_64__
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
  add(avx3, compiled.avx3);
  add(avx2, compiled.avx2);
  add(sse4, compiled.sse4);
  add(__builtin_cpu_supports("ssse3"), compiled.ssse3);
#endif
  const Loops* const fallback = &compiled.fallback();
  // It is one of them where the compiler may use more than any machine has.
  if (std::find(units.begin(), units.end(), fallback) == units.end()) units.push_back(fallback);
  return units;
}

}  // namespace perceptrond::simd
