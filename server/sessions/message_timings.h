// What the messages of one stream spend their time on, for the log of slow calls. A stream may live
// for days: each of its messages is timed by itself, from its arrival until its answer is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/rpc/call.h"
#include "server/rpc/call_timing.h"
#include "server/rpc/slow_calls.h"
#include "server/rpc/timed_request.h"

namespace perceptrond {

// The time that one thread spends on one message. The parse of a message below kMinParsedBytes
// takes less than some look at the clock saves, and counts as work.
class MessageHandling {
 public:
  static constexpr size_t kMinParsedBytes = 4 << 10;

  // Begins now, or at `begin` where that is known.
  MessageHandling() : MessageHandling(EventTime()) {}
  explicit MessageHandling(SteadyClock::time_point begin)
      : begin_(begin), parsed_(begin), waits_(wait_times) {}

  void OnParsed(size_t bytes) {
    if (bytes >= kMinParsedBytes) parsed_ = SteadyClock::now();
  }
  // To be called on the thread of the constructor.
  void OnDone() {
    end_ = SteadyClock::now();
    for (size_t wait = 0; wait < kWaits; ++wait) waits_[wait] = wait_times[wait] - waits_[wait];
  }

  SteadyClock::time_point begin() const { return begin_; }
  SteadyClock::time_point end() const { return end_; }
  SteadyClock::time_point parsed() const { return parsed_; }
  // What the thread waited for meanwhile.
  const WaitTimes& waits() const { return waits_; }

 private:
  const SteadyClock::time_point begin_;
  SteadyClock::time_point parsed_;
  SteadyClock::time_point end_;
  // Until OnDone what the thread had waited for before.
  WaitTimes waits_;
};

// The number of messages that a response answers: a LearnStreamResponse has a result for each.
template <typename Response>
size_t CountAnswers(const Response& response) {
  if constexpr (requires { response.results_size(); }) {
    return static_cast<size_t>(response.results_size());
  } else {
    return 1;
  }
}

// The status code of an answer, a grpc::StatusCode.
template <typename Response>
int AnswerCode(const Response& response, size_t i) {
  if constexpr (requires { response.results(0).error().code(); }) {
    return response.results(static_cast<int>(i)).error().code();
  } else if constexpr (requires { response.error().code(); }) {
    return response.error().code();
  } else {
    return 0;
  }
}

// The messages of one stream that are not answered yet; 64 bytes each. Each method is O(1) for a
// message. While the log of slow calls is off, messages are counted and not timed.
//
// Thread contract: one thread at a time.
class MessageTimings {
 public:
  // `awaited`: what an answer waits for once its message was handled.
  explicit MessageTimings(Call& call, Part awaited = Part::kCommit)
      : call_(call), awaited_(awaited) {}

  // A message of `bytes` bytes has arrived.
  void OnRead(size_t bytes);
  // The oldest message that was not handled is handled. `is_answered`: its answer is ready. On the
  // thread that handled it.
  template <typename Request>
  void OnHandled(const MessageHandling& handling, const Request& request, bool is_answered) {
    NoteModel(ModelNameOf(request));
    OnHandled(handling, CountRequestRows(request), is_answered);
  }
  // `ready` answers are ready and wait for the response that is being written, if there is one.
  void OnReady(size_t ready);
  // The response is written next, and `ready` answers that are ready wait for it. This and
  // OnWritten may come before OnHandled of the last message that it answers.
  template <typename Response>
  void OnReady(size_t ready, const Response& response) {
    const size_t answers = CountAnswers(response);
    OnReady(ready + answers);
    for (size_t i = 0; i < answers; ++i)
      messages_[written_ + writing_++].code = static_cast<uint8_t>(AnswerCode(response, i));
  }
  // gRPC has taken the response.
  void OnWritten();
  // The stream ends with this status. Messages without an answer have it, too.
  void OnEnd(const absl::Status& status);

 private:
  // Times alone, which become parts for a line only.
  struct Message {
    // The epoch if it is not timed.
    SteadyClock::time_point received;
    // The epoch until it is handled.
    SteadyClock::time_point begin;
    SteadyClock::time_point parsed;
    SteadyClock::time_point end;
    // The epoch if the answer was ready at `end` or is not ready.
    SteadyClock::time_point ready;
    uint32_t bytes = 0;
    uint32_t rows = 0;
    uint8_t code = 0;
    // Whether the thread waited for something while it handled the message; then waits_ has how
    // long.
    bool has_waits = false;
  };

  void OnHandled(const MessageHandling& handling, size_t rows, bool is_answered);
  // The messages from the one being handled on are about this model, unless it is empty.
  void NoteModel(absl::string_view model);
  // Ends the messages that are handled and written.
  void EndWritten();
  // Ends the oldest message, whose time since its last part counts for `part`.
  void End(Part part, int code, SteadyClock::time_point now);
  void Write(const Message& message, const WaitTimes& waits, Part last, int code,
             SteadyClock::time_point now);

  Call& call_;
  const Part awaited_;
  std::deque<Message> messages_;
  // How many of them, from the oldest, are handled, and how many have an answer that is ready.
  size_t handled_ = 0;
  size_t ready_ = 0;
  // How many have an answer that is written, and how many after these have one that is being
  // written.
  size_t written_ = 0;
  size_t writing_ = 0;
  // Of those messages that have waits, in their order.
  std::deque<WaitTimes> waits_;
  // The number of the oldest.
  uint64_t first_number_ = 0;
  // Models, each with the number of the first message about it. The first is that of the oldest
  // message; a new one is added when the name changes.
  std::deque<std::pair<uint64_t, std::string>> models_;
};

}  // namespace perceptrond
