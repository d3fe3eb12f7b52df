// How far a run of `perceptronctl learn` is.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "client/ctl/progress.h"
#include "client/learn_stream.h"

namespace perceptrond::client {

struct LearnPosition {
  // From 1.
  int64_t pass = 1;
  // How many there will be, if that is known.
  std::optional<int64_t> passes;
  // Of this pass, by bytes read; absent where the input's size is not known.
  std::optional<double> read;
};

// "[=====>     ] 42 %  pass 3/10  54,000 examples  1,520 mistakes  105,564/s  learning  at most 165
// more updates": of the whole run where the number of passes is known, else of the pass. Without a
// report nothing is said of the state.
Progress LearnProgress(const LearnPosition& position, const LearnTotals& totals,
                       absl::Duration elapsed,
                       const std::optional<perceptron::v1::ConvergenceReport>& report = {});

}  // namespace perceptrond::client
