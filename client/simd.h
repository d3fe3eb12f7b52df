// The loops over the bytes of a line and the features of a row that readers and clients spend most
// time in, compiled with Highway for each vector unit there is; which one the machine has is found
// out when the program runs. All give the same results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perceptrond::client::simd {

// Bytes of a block of text, each of which has a bit in a mask: the first byte has the lowest.
inline constexpr size_t kBlock = 64;
// How many elements more than there are masks, or keys and ranks, an array must have.
inline constexpr size_t kMaskSlack = 1;
inline constexpr size_t kRankSlack = 64;
// Most keys that rank() is faster for than sorting.
inline constexpr size_t kMostRanked = 256;

// The loops of one unit. `text` has `blocks` whole blocks.
struct Loops {
  // "AVX3": as Highway calls the unit.
  const char* unit;

  // Which bytes are a space, a tab or a '|', and which are a ':'.
  void (*find_stops)(const char* text, size_t blocks, uint64_t* stops, uint64_t* colons);

  // Reads decimal numbers without sign and exponent, each the last `sizes[i]` bytes of eights[i],
  // of which the lowest is the first. NaN: it is none, or has more than 8 bytes or 7 digits or so;
  // another reader then tells. All others are the float32 that is nearest.
  void (*read_numbers)(const uint64_t* eights, const uint64_t* sizes, size_t count, float* values);

  // Writes to `ranks` how many of the keys are less than each. O(count^2).
  void (*rank)(const uint32_t* keys, size_t count, uint32_t* ranks);
};

// The loops of the units that this machine has, the best first; at least one. Any thread.
const std::vector<const Loops*>& Units();
inline const Loops& Best() {
  static const Loops& best = *Units().front();
  return best;
}

}  // namespace perceptrond::client::simd
