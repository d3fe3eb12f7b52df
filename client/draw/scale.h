// Scales of axes: from values to pixels, with ticks at round values.
#pragma once

#include <string>
#include <vector>

namespace perceptrond::client {

// The interval [lo, hi]; lo < hi, both finite, and positive for a logarithmic scale.
struct Range {
  double lo = 0;
  double hi = 1;

  double size() const { return hi - lo; }
  double middle() const { return lo + (hi - lo) / 2; }
  // The range widened at both ends by `share` of its size.
  Range Padded(double share) const { return {lo - share * size(), hi + share * size()}; }
};

// The smallest non-empty range with all values; equal values get room around them. [0, 1] without
// values. Values must be finite.
Range RangeOf(const std::vector<double>& values);

struct Tick {
  double value = 0;
  std::string label;
};

// About `wanted` ticks at most, at multiples of 1, 2 or 5 times a power of ten, with the same
// number of decimals. Labels are relative to BaseOf() if that is not 0.
std::vector<Tick> LinearTicks(Range range, int wanted);
// A round number near a short range far from 0, whose ticks would need many digits: 1,000,000 for
// 999,997 to 1,000,004. Else 0.
double BaseOf(Range range, int wanted);
// Ticks at powers of ten; over less than two decades also at 2 and 5 times those.
std::vector<Tick> LogTicks(Range range, int wanted);
// "12,000", "−0.05", "2×10⁶". A negative `decimals` is a step of that power of ten: 500,000 with -5
// is "5×10⁵".
std::string TickLabel(double value, int decimals);

// A plain value.
class Scale {
 public:
  // Maps range.lo to `from` and range.hi to `to`, in pixels.
  Scale(Range range, double from, double to, bool logarithmic = false)
      : range_(range), from_(from), to_(to), logarithmic_(logarithmic) {}

  double operator()(double value) const;
  Range range() const { return range_; }
  // The suffix of the axis title for ticks relative to a base: " − 1,000,000"; usually empty.
  std::string Base(int wanted) const;
  std::vector<Tick> Ticks(int wanted) const {
    return logarithmic_ ? LogTicks(range_, wanted) : LinearTicks(range_, wanted);
  }

 private:
  Range range_;
  double from_;
  double to_;
  bool logarithmic_;
};

}  // namespace perceptrond::client
