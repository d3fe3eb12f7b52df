// Waits for what cannot notify a test.
#pragma once

#include <cstdio>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace perceptrond::testing {

// However long it takes: a test does not fail because the machine is slow. After a minute it says which one waits.
template <typename Condition>
void WaitUntil(const Condition& condition, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
  absl::Time report = absl::Now() + absl::Minutes(1);
  while (!condition()) {
    if (absl::Now() >= report) {
      std::fprintf(stderr, "%s:%d: it is waited for a minute\n", file, line);
      report = absl::InfiniteFuture();
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

}  // namespace perceptrond::testing
