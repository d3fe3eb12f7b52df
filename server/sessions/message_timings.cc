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
  message.received = EventTime();
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
    message.begin = std::max(handling.begin(), message.received);
    message.parsed = std::max(handling.parsed(), message.begin);
    message.end = handling.end();
    message.has_waits = handling.waits() != WaitTimes{};
    if (message.has_waits) waits_.push_back(handling.waits());
  }
  EndWritten();
}

void MessageTimings::OnReady(size_t ready) {
  ready += written_ + writing_;
  if (ready <= ready_) return;
  const SteadyClock::time_point now = SteadyClock::now();
  for (; ready_ < ready; ++ready_) {
    // The answer may be ready before the thread that handled the message says so.
    if (ready_ < handled_) messages_[ready_].ready = now;
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
    const Part part = ready_ > 0 ? Part::kWrite : handled_ > 0 ? awaited_ : Part::kQueue;
    End(part, static_cast<int>(status.code()), now);
    ready_ -= std::min<size_t>(ready_, 1);
    handled_ -= std::min<size_t>(handled_, 1);
  }
}

void MessageTimings::End(Part part, int code, SteadyClock::time_point now) {
  const Message message = messages_.front();
  messages_.pop_front();
  WaitTimes waits{};
  if (message.has_waits) {
    waits = waits_.front();
    waits_.pop_front();
  }
  const bool is_slow =
      message.received != kNotTimed && call_.slow_calls().IsSlow(now - message.received);
  while (models_.size() > 1 && models_[1].first <= first_number_) models_.pop_front();
  if (is_slow) Write(message, waits, part, code, now);
  ++first_number_;
}

void MessageTimings::Write(const Message& message, const WaitTimes& waits, Part last, int code,
                           SteadyClock::time_point now) {
  PartTimes parts{};
  SteadyClock::time_point since = message.received;
  if (message.begin != kNotTimed) {
    TimeOf(parts, Part::kQueue) = ToMilliseconds(message.begin - message.received);
    TimeOf(parts, Part::kParse) = ToMilliseconds(message.parsed - message.begin);
    AddWork(message.end - message.parsed, {}, waits, parts);
    since = message.end;
  }
  if (message.ready != kNotTimed) {
    TimeOf(parts, awaited_) = ToMilliseconds(message.ready - message.end);
    since = message.ready;
  }
  // An event may be older than the look at the clock that ended the part before it.
  now = std::max(now, since);
  TimeOf(parts, last) += ToMilliseconds(now - since);
  call_.slow_calls().Write({.method = call_.path(),
                            .model = models_.empty() ? "" : models_.front().second,
                            .peer = call_.peer(),
                            .principal = PrincipalOf(call_),
                            .trace = TraceOf(call_.context()),
                            .message = first_number_,
                            .bytes = message.bytes,
                            .rows = message.rows,
                            .code = code,
                            .total = ToMilliseconds(now - message.received),
                            .parts = parts});
}

}  // namespace perceptrond
