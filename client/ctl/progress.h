// How far a run is, in a line that fits its window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/report/format.h"

namespace perceptrond::client {

// When a run that goes row by row is to be drawn again: about ten times a second, without a look at
// the clock for each row.
class DrawPace {
 public:
  // Of one row.
  bool Due();

 private:
  uint64_t rows_ = 0;
  absl::Time drawn_ = absl::InfinitePast();
};

struct Progress {
  // 0 to 1; absent where nobody knows how much there is to do.
  std::optional<double> fraction;
  // What it is a fraction of, as "of pass 3"; empty: of the whole run.
  std::string of;
  // The most important first.
  std::vector<std::string> figures;
};

// "[=====>     ] 42 %  pass 3/10  54,000 examples". The bar gives way to figures, and figures that
// do not fit into so many columns are left out, the last first. Without a fraction: no bar.
std::string ProgressLine(const Progress& progress, size_t columns);

// "105,564/s"; nothing can be said of no time.
std::string Rate(uint64_t count, absl::Duration elapsed);

}  // namespace perceptrond::client
