#include "server/sessions/message_timings.h"

#include <algorithm>
#include <limits>

namespace perceptrond {
namespace {

constexpr SteadyClock::time_point kNotTimed{};

uint32_t Saturated(size_t number) {
  return static_cast<uint32_t>(std::min<size_t>(number, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

void MessageTimings::OnRead(size_t bytes) {
  Message& message = messages_.emplace_back();
  if (!call_.slow_calls().enabled()) return;
  message.received = message.last = EventTime();
  message.bytes = Saturated(bytes);
}

void MessageTimings::NoteModel(absl::string_view model) {
  model = model.substr(0, CallTiming::kMaxNameBytes);
  if (model.empty() || (!models_.empty() && models_.back().second == model)) return;
  models_.emplace_back(first_number_ + handled_, model);
}

void MessageTimings::OnHandled(const MessageHandling& handling, size_t rows, bool is_answered) {
  Message& message = messages_[handled_++];
  if (is_answered) ready_ = std::max(ready_, handled_);
  if (message.received != kNotTimed) {
    message.rows = Saturated(rows);
    TimeOf(message.parts, Part::kQueue) += ToMilliseconds(handling.begin() - message.received);
    handling.AddTo(message.parts);
    message.last = handling.end();
  }
  EndWritten();
}

void MessageTimings::OnReady(size_t ready) {
  ready += written_ + writing_;
  if (ready <= ready_) return;
  const SteadyClock::time_point now = SteadyClock::now();
  for (; ready_ < ready; ++ready_) {
    // The answer may be ready before the thread that handled the message says so.
    if (ready_ >= handled_) continue;
    Message& message = messages_[ready_];
    TimeOf(message.parts, Part::kCommit) += ToMilliseconds(now - message.last);
    message.last = now;
  }
}

void MessageTimings::OnWritten() {
  written_ += std::exchange(writing_, 0);
  EndWritten();
}

void MessageTimings::EndWritten() {
  if (written_ == 0) return;
  const SteadyClock::time_point now = EventTime();
  for (; written_ > 0 && handled_ > 0; --written_, --ready_, --handled_)
    End(Part::kWrite, messages_.front().code, now);
}

void MessageTimings::OnEnd(const absl::Status& status) {
  const SteadyClock::time_point now = EventTime();
  while (!messages_.empty()) {
    const Part part = ready_ > 0 ? Part::kWrite : handled_ > 0 ? Part::kCommit : Part::kQueue;
    End(part, static_cast<int>(status.code()), now);
    ready_ -= std::min<size_t>(ready_, 1);
    handled_ -= std::min<size_t>(handled_, 1);
  }
}

void MessageTimings::End(Part part, int code, SteadyClock::time_point now) {
  Message& message = messages_.front();
  const uint64_t number = first_number_++;
  while (models_.size() > 1 && models_[1].first <= number) models_.pop_front();
  SlowCallLog& log = call_.slow_calls();
  now = std::max(now, message.last);
  if (message.received != kNotTimed && log.IsSlow(now - message.received)) {
    TimeOf(message.parts, part) += ToMilliseconds(now - message.last);
    log.Write({.method = call_.path(),
               .model = models_.empty() ? "" : models_.front().second,
               .peer = call_.peer(),
               .trace = call_.trace(),
               .message = number,
               .bytes = message.bytes,
               .rows = message.rows,
               .code = code,
               .total = ToMilliseconds(now - message.received),
               .parts = message.parts});
  }
  messages_.pop_front();
}

}  // namespace perceptrond
