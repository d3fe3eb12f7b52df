// An update as a tally, and a context to which the theorem applies.
#pragma once

#include "core/convergence/progress.h"

namespace perceptrond::testing {

// An update after which ||theta|| / eta is `norm`.
inline Tally UpdateTo(double norm) {
  Tally tally;
  tally.examples = tally.mistakes = tally.updates = 1;
  tally.whole_step = 1;
  tally.scaled_norm = norm;
  tally.at_zero = norm == 0;
  return tally;
}

inline TheoremContext Applies(double margin_of_interest = 0) {
  TheoremContext context;
  context.applies = true;
  context.margin_of_interest = margin_of_interest;
  return context;
}

}  // namespace perceptrond::testing
