// From figures to pixels, and the round figures in between that an axis is marked with.
#pragma once

#include <string>
#include <vector>

namespace perceptrond::client {

// From lo to hi; lo < hi, both finite, and above 0 for a logarithmic scale.
struct Range {
  double lo = 0;
  double hi = 1;

  double size() const { return hi - lo; }
  double middle() const { return lo + (hi - lo) / 2; }
  // Wider by that share of itself at both ends.
  Range Padded(double share) const { return {lo - share * size(), hi + share * size()}; }
};

// The least range that has all of these, and is not empty: values that are all one get room around
// them. [0, 1] of none. Values must be finite.
Range RangeOf(const std::vector<double>& values);

struct Tick {
  double value = 0;
  std::string label;
};

// At most about `wanted` of them, at multiples of 1, 2 or 5 times a power of ten, all with the same
// number of decimals. Labelled with how far they are from BaseOf, where that is not 0.
std::vector<Tick> LinearTicks(Range range, int wanted);
// A round figure near a range that is short and far from 0, where ticks would need many digits to
// be told apart: 1,000,000 for one from 999,997 to 1,000,004. Else 0.
double BaseOf(Range range, int wanted);
// At powers of ten; over less than two of them at 2 and 5 times those, too.
std::vector<Tick> LogTicks(Range range, int wanted);
// "12,000", "−0.05", "2×10⁶"; `decimals` below 0: a step of that power of ten, so "500,000" at -5
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
  // What is to be said of a title beside such ticks: " − 1,000,000"; mostly nothing.
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
