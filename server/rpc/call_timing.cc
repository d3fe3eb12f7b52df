#include "server/rpc/call_timing.h"

#include <iterator>

namespace perceptrond {

void AddWork(SteadyClock::duration time, const WaitTimes& before, const WaitTimes& after,
             PartTimes& parts) {
  constexpr Part kPartOfWait[] = {Part::kLock, Part::kLoad, Part::kCommit};
  static_assert(std::size(kPartOfWait) == kWaits);
  for (size_t wait = 0; wait < kWaits; ++wait) {
    const SteadyClock::duration waited = after[wait] - before[wait];
    time -= waited;
    TimeOf(parts, kPartOfWait[wait]) += ToMilliseconds(waited);
  }
  TimeOf(parts, Part::kWork) += ToMilliseconds(time);
}

void CallTiming::Start(Part part, SteadyClock::time_point now) {
  started_ = running_ = true;
  part_ = part;
  start_ = last_ = now;
}

void CallTiming::SwitchAt(Part part, SteadyClock::time_point now) {
  if (!running_) return;
  // What another thread waited for says nothing about this work, which that thread did not do.
  if (part_ == Part::kWork && thread_ == &wait_times) {
    AddWork(now - last_, waits_, wait_times, parts_);
  } else {
    TimeOf(parts_, part_) += ToMilliseconds(now - last_);
  }
  part_ = part;
  last_ = now;
  thread_ = &wait_times;
  waits_ = wait_times;
}

void CallTiming::Stop(int code) {
  Switch(Part::kWrite);
  running_ = false;
  code_ = code;
}

PartTimes CallTiming::PartsUntil(SteadyClock::time_point now) const {
  PartTimes parts = parts_;
  TimeOf(parts, Part::kWrite) += ToMilliseconds(now - last_);
  return parts;
}

}  // namespace perceptrond
