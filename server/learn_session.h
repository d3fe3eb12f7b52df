// One LearnStream as a state machine that knows nothing of the transport: messages in, answers out,
// in order, each once its effects are durable.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "core/model/model.h"
#include "core/model/model_handle.h"
#include "core/model/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/example_batch.h"
#include "server/quick.h"
#include "server/stream_limits.h"

namespace perceptrond {

// Thread contract: Accept is called by one thread at a time; the other methods by any, also while
// Accept runs. Owned by a shared_ptr: commits that are under way keep it alive.
class LearnSession final : public CommitWaiter, public std::enable_shared_from_this<LearnSession> {
 public:
  using Request = ::perceptron::v1::LearnStreamRequest;
  using Response = ::perceptron::v1::LearnStreamResponse;

  // Whether a message's answer is there when Accept has returned. Here it waits for the commit.
  static constexpr bool kAnswersAtOnce = false;

  LearnSession(Store& store, const StreamLimits& limits)
      : store_(store), limits_(limits), handle_(store) {}

  // `ready` is called, from any thread, when Take may have something. To be set before the first
  // Accept.
  void OnReady(std::function<void()> ready) { ready_ = std::move(ready); }
  // Whether a small message will be learned in microseconds. Not while Accept runs.
  bool Quick() const { return IsQuick(handle_.GetIfLoaded().get()); }
  // Learns a message of so many bytes. An error ends the stream: what was accepted before is still
  // answered.
  absl::Status Accept(const Request& request, size_t bytes);
  // Moves what is ready into `response`; false if nothing is.
  bool Take(Response& response) ABSL_LOCKS_EXCLUDED(mutex_);
  // Too much is unanswered, with so much that is still to be accepted: read no more until Take has
  // had something.
  bool Full(size_t messages = 0, size_t bytes = 0) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing is unanswered.
  bool Idle() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the stream must end although its messages were fine: a commit failed, the model was
  // deleted, or its producer has opened a newer stream. Ok otherwise.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Committed(size_t submissions, const absl::Status& status) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Answer {
    ::perceptron::v1::LearnResult result;
    // Null: the stream asked for none.
    std::unique_ptr<::perceptron::v1::ConvergenceReport> report;
    size_t bytes = 0;
  };

  // Reads what the first message says of the stream.
  absl::Status ReadTarget(const Request& request);
  // Puts the stream at its producer's position.
  absl::StatusOr<::perceptron::v1::StreamOpened> Open(Model& model, const Request& request);
  // The model the stream began with, and its producer in it. NOT_FOUND if another has its name.
  absl::StatusOr<std::shared_ptr<Model>> FindModel();
  // Fills the result; in-band errors are part of it.
  absl::Status Learn(Model& model, const Request& request, ::perceptron::v1::LearnResult& result);
  // From now on the stream is to end.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // What the last message, of so many bytes, has left for the journal.
  size_t UpdateShare(size_t bytes) const;
  // How soon the last answer is needed.
  Committer::FlushPolicy FlushPolicy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store& store_;
  const StreamLimits limits_;
  std::function<void()> ready_;

  // Accept's.
  ModelHandle handle_;
  std::string model_name_;
  std::string model_uid_;
  // Empty: the stream numbers its own examples, and producer_ is its own.
  std::string producer_id_;
  std::shared_ptr<Producer> producer_;
  // The model whose ledger has producer_.
  std::weak_ptr<Model> producer_model_;
  bool detail_ = true;
  bool with_report_ = false;
  int64_t messages_ = 0;
  // The number of the next example, unless a message says otherwise.
  int64_t next_offset_ = 0;
  // While the stream is open; set by the first message.
  std::unique_ptr<OpenStreams::Ticket> ticket_;
  ExampleBatch batch_;
  LearnOutcome outcome_;

  mutable Mutex mutex_;
  // Sent with the first answer: what it says the producer need not send again must be durable, as
  // that answer is.
  std::unique_ptr<::perceptron::v1::StreamOpened> opened_ ABSL_GUARDED_BY(mutex_);
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  // How many of answers_, from the front, are ready.
  size_t ready_answers_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // A commit failed: nothing behind it is answered.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // See End. What was taken before is still answered.
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
