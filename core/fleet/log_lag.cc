#include "core/fleet/log_lag.h"

#include <algorithm>

namespace perceptrond {

void LogLag::OnEnd(uint64_t sequence, Clock::time_point now) {
  if (!ends_.empty() && sequence <= ends_.back().sequence) return;
  if (ends_.size() == kMostEnds) {
    // The oldest one stays.
    size_t i = 0;
    std::erase_if(ends_, [&i](const End& /*end*/) { return i++ % 2 == 1; });
  }
  ends_.push_back({sequence, now});
}

void LogLag::OnApplied(uint64_t sequence) {
  while (!ends_.empty() && ends_.front().sequence <= sequence) ends_.pop_front();
}

LogLag::Clock::duration LogLag::At(Clock::time_point now) const {
  return ends_.empty() ? Clock::duration::zero()
                       : std::max(now - ends_.front().time, Clock::duration::zero());
}

}  // namespace perceptrond
