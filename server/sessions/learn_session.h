// One LearnStream as a state machine without a transport: messages in, responses out, in order,
// each once its effects are durable.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/model/model.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call_timing.h"
#include "server/sessions/example_batch.h"
#include "server/sessions/joined_examples.h"
#include "server/sessions/learn_target.h"
#include "server/sessions/nested_examples.h"
#include "server/sessions/placement.h"
#include "server/sessions/session_state.h"

namespace perceptrond {

// Thread contract: Accept is called by one thread at a time, the other methods by any thread, also
// while Accept runs. Owned by a shared_ptr: pending commits keep it alive.
class LearnSession final : public CommitWaiter, public std::enable_shared_from_this<LearnSession> {
 public:
  using Message = ::perceptron::v1::LearnStreamRequest;
  using Request = RequestWithExamples<Message>;
  using Response = ::perceptron::v1::LearnStreamResponse;

  // Whether a message's answer is ready when Accept returns. Here it may wait for the commit, and one response has all
  // answers that are ready.
  static constexpr bool kAnswersSynchronously = false;
  // What an answer waits for once its message was handled.
  static constexpr Part kAwaited = Part::kCommit;

  LearnSession(Store& store, const StreamLimits& limits)
      : store_(store), limits_(limits), handle_(store) {}

  // `ready` is called on any thread when Poll may have a response. To be set before the first
  // Accept.
  void OnReady(std::function<void()> ready) { ready_ = std::move(ready); }
  // What asks for rows of the stream that another server has evaluated. To be set before the first Accept.
  void OnAsk(OpenStreams::OnAsk ask) { ask_ = std::move(ask); }
  // Whether a polling thread may call Accept with a small message: it takes microseconds,
  // unless another stream of the same producer learns meanwhile. Not to be called while Accept
  // runs.
  bool CanRunInline() const {
    const std::shared_ptr<Model> model = handle_.GetIfLoaded();
    return perceptrond::CanRunInline(model.get()) && !MayAskServers(store_, *model);
  }
  // How large the work of a message is. Not to be called while Accept runs.
  WorkSize SizeOf(const Request& request) const;
  // Learns the examples of a message, which has `bytes` bytes on the wire. `more`: others wait to
  // be accepted. An error ends the stream; messages that were accepted before are still answered.
  absl::Status Accept(const Request& request, size_t bytes, bool more = false);
  // Counts rows of the stream that another server evaluated (CountCorrectRows), after the first
  // message; the next message begins at next_offset, unless it states another. By the thread of Accept,
  // between two calls. An error ends the stream.
  absl::Status CountEvaluated(int64_t first_offset, int64_t rows,
                              std::vector<UnchangedRows> unchanged, int64_t next_offset);
  // Appends to the stream's table of names, as a message does. As CountEvaluated.
  absl::Status AppendStreamNames(const ::perceptron::v1::NameColumn& names) {
    return batch_.AppendStreamNames(names);
  }
  // No message comes after those that were accepted.
  void EndInput() {}
  // Releases the memory that is kept for the next message. By the thread of Accept, between two
  // calls.
  void DropSpareMemory() {
    batch_.DropSpareMemory();
    joined_ = {};
    outcome_ = {};
  }
  // Moves the answers that are ready into `response`, unless it is null, and tells how the session
  // stands after it. Its failure: a commit failed, the model was deleted, or its producer has opened
  // a newer stream.
  SessionState Poll(Response* response) ABSL_LOCKS_EXCLUDED(mutex_);
  void Committed(size_t submissions, const absl::Status& status) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Answer {
    ::perceptron::v1::LearnResult result;
    // Null unless examples name predictions.
    std::shared_ptr<ClaimedPredictions> claimed;
    // Null unless the stream asked for reports.
    std::unique_ptr<::perceptron::v1::ConvergenceReport> report;
    size_t bytes = 0;
  };

  // Sets the stream's position to that of its producer. The caller holds the producer's turn, as of
  // Learn.
  absl::StatusOr<::perceptron::v1::StreamOpened> Open(Model& model, const Message& request);
  // The model that the stream began with; sets producer_ to its producer in it. NOT_FOUND if
  // another model has the name now.
  absl::StatusOr<std::shared_ptr<Model>> FindModel();
  // Fills the answer's result, which holds in-band errors too.
  absl::Status Learn(Model& model, const Request& request, Answer& answer);
  // Reads the message's examples, of which the first is `first_offset`.
  absl::Status ReadExamples(const Model& model, const Request& request, int64_t first_offset,
                            std::shared_ptr<ClaimedPredictions>& claimed);
  // Ends the predictions that the first answers which are not ready name, this many of them.
  void JoinPredictions(size_t answers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the stream end once every accepted message is answered.
  void End(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the answers that are ready into `response`; returns false if there are none.
  bool Take(Response& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);
  // How long the last answer may wait to be committed with others.
  absl::Duration CommitDelay(bool more) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store& store_;
  const StreamLimits limits_;
  std::function<void()> ready_;
  OpenStreams::OnAsk ask_;

  // Used by Accept alone.
  ModelHandle handle_;
  LearnTarget target_;
  std::string model_uid_;
  // Of a stream without a producer an unnamed one of its own.
  std::shared_ptr<Producer> producer_;
  // The model whose ledger has producer_.
  std::weak_ptr<Model> producer_model_;
  int64_t messages_ = 0;
  // The offset of the next example, unless a message states another.
  int64_t next_offset_ = 0;
  // The first rows of the next message, which CountEvaluated has counted.
  int64_t counted_rows_ = 0;
  // While the stream is open; set by the first message.
  std::unique_ptr<OpenStreams::Ticket> ticket_;
  ExampleBatch batch_;
  JoinedExamples joined_;
  LearnOutcome outcome_;

  // Some example named a prediction.
  std::atomic<bool> names_predictions_ = false;

  mutable Mutex mutex_;
  // Sent with the first answer, since the position it states must be durable, as that answer is.
  std::unique_ptr<::perceptron::v1::StreamOpened> opened_ ABSL_GUARDED_BY(mutex_);
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  // The number of answers, from the front, that are ready.
  size_t ready_answers_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The stream's table of names.
  size_t name_table_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Why a commit failed; no later message is answered.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // The status given to End. Messages accepted before are still answered.
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
