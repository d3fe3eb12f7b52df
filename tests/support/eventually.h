// Waits for what cannot notify a test.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace perceptrond::testing {

// Whether the condition becomes true within that time.
template <typename Condition>
bool Eventually(const Condition& condition, absl::Duration time = absl::Seconds(60)) {
  for (const absl::Time end = absl::Now() + time; absl::Now() < end;) {
    if (condition()) return true;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return false;
}

}  // namespace perceptrond::testing
