// One LearnStream, whose examples one model learns or several do: a LearnSession for each, which
// reads the same parsed messages. A message is answered once all of them have an answer to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/session_state.h"

namespace perceptrond {

// The methods are those of LearnSession. Thread contract: as LearnSession's.
class SeveralModelsSession {
 public:
  using Message = LearnSession::Message;
  using Request = LearnSession::Request;
  using Response = LearnSession::Response;

  static constexpr bool kAnswersSynchronously = LearnSession::kAnswersSynchronously;
  static constexpr Part kAwaited = LearnSession::kAwaited;

  SeveralModelsSession(Store& store, const StreamLimits& limits)
      : store_(store), limits_(limits), first_(std::make_shared<LearnSession>(store, limits)) {}

  void OnReady(std::function<void()> ready) {
    ready_ = std::move(ready);
    first_->OnReady(ready_);
  }
  bool CanRunInline() const;
  WorkSize SizeOf(const Request& request) const;
  absl::Status Accept(const Request& request, size_t bytes, bool more = false)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndInput() {}
  void DropSpareMemory();
  SessionState Poll(Response* response) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What one model has answered and was not sent yet.
  struct Answered {
    std::unique_ptr<::perceptron::v1::StreamOpened> opened;
    std::unique_ptr<::perceptron::v1::ConvergenceReport> report;
    std::deque<::perceptron::v1::LearnResult> results;
    size_t bytes = 0;
  };

  // Of the first message: makes the sessions of the additional models.
  absl::Status AddModels(const Message& first);
  // Where the message's examples are, for every model. Absent: each goes on where it is.
  absl::StatusOr<std::optional<int64_t>> OffsetOf(const Request& request);
  // Takes what the model has answered, and returns its state.
  SessionState Collect(LearnSession& session, Answered& answered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves the results of `messages` messages, which all models have answered.
  void Take(size_t messages, Response& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store& store_;
  const StreamLimits limits_;
  std::function<void()> ready_;
  // The session of LearnStreamRequest.model, and those of the additional models, which are there
  // once `several_` is true.
  const std::shared_ptr<LearnSession> first_;
  std::vector<std::shared_ptr<LearnSession>> others_;
  std::atomic<bool> several_ = false;

  // Used by Accept alone.
  bool begun_ = false;
  // The offset after the last message, of a named producer; absent before its first examples.
  bool has_producer_ = false;
  std::optional<int64_t> next_offset_;

  Mutex mutex_;
  // By model. Empty until the first Poll.
  std::vector<Answered> answered_ ABSL_GUARDED_BY(mutex_);
  // Messages that every model accepted, and those that were answered.
  uint64_t accepted_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
