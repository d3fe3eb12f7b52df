// A LearnStream at a server that does not write the model: rows that call for no update are
// evaluated and answered here, on its copy; a message goes to the writer from the first row on that
// calls for one. Answers come in the order of the messages.
#pragma once

#include <grpcpp/alarm.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "core/model/correct_rows.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/fleet/segment_call.h"
#include "server/fleet/segments.h"
#include "server/fleet/stream_progress.h"
#include "server/rpc/backend.h"
#include "server/rpc/call_timing.h"
#include "server/sessions/example_batch.h"
#include "server/sessions/learn_target.h"
#include "server/sessions/nested_examples.h"
#include "server/sessions/session_state.h"

namespace perceptrond {

class RevisionWaiters;

// Rows of streams whose models other servers write.
struct FollowedRows {
  std::atomic<uint64_t> evaluated{0};
  std::atomic<uint64_t> forwarded{0};
};

// A message with the bytes it was read from, which it may be forwarded as.
struct ForwardableRequest : RequestWithExamples<::perceptron::v1::LearnStreamRequest> {
  grpc::ByteBuffer bytes;
};

// As for other messages (server/rpc/message.h).
inline absl::Status ParseMessage(grpc::ByteBuffer& bytes, size_t max_bytes,
                                 ForwardableRequest& request) {
  request.bytes = bytes;
  RequestWithExamples<::perceptron::v1::LearnStreamRequest>& parsed = request;
  return ParseMessage(bytes, max_bytes, parsed);
}

// The methods are those of LearnSession. Owned by a shared_ptr: gRPC's threads call it.
//
// Thread contract: as LearnSession's.
class FollowerLearnSession final : public SegmentCall::Receiver,
                                   public std::enable_shared_from_this<FollowerLearnSession> {
 public:
  using Message = ::perceptron::v1::LearnStreamRequest;
  using Request = ForwardableRequest;
  using Response = ::perceptron::v1::LearnStreamResponse;
  // Begins the stream at the model's writer.
  using Connect =
      std::function<std::shared_ptr<SegmentCall>(std::weak_ptr<SegmentCall::Receiver> receiver)>;
  // Where clients reach that server; empty: not known.
  using WriterAddress = std::function<std::string()>;

  static constexpr bool kAnswersSynchronously = false;
  // What a message without an answer waits for.
  static constexpr Part kAwaited = Part::kForward;

  // `rows` must outlive the session.
  FollowerLearnSession(Store& store, const StreamLimits& limits, Connect connect,
                       WriterAddress writer_address, FollowedRows& rows);
  // Sends what is not counted yet.
  ~FollowerLearnSession() override;

  void OnReady(std::function<void()> ready) { ready_ = std::move(ready); }
  bool CanRunInline() const { return perceptrond::CanRunInline(handle_.GetIfLoaded().get()); }
  WorkSize SizeOf(const Request& request) const;
  absl::Status Accept(const Request& request, size_t bytes, bool more = false);
  void DropSpareMemory() {
    batch_.DropSpareMemory();
    evaluated_ = {};
  }
  void EndInput() ABSL_LOCKS_EXCLUDED(mutex_);
  SessionState Poll(Response* response) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnAnswer(Response& response) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Answer {
    ::perceptron::v1::LearnResult result;
    // Null unless the writer sent one.
    std::unique_ptr<::perceptron::v1::ConvergenceReport> report;
    // The first rows of the message, if it was forwarded and they were evaluated here.
    size_t evaluated = 0;
    bool ready = false;
    size_t bytes = 0;
  };

  absl::Status Begin(const Message& first);
  // The copy whose state the stream's next rows may be evaluated on; null if they may not be.
  std::shared_ptr<Model> FindCopy(const Message& message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Evaluates the message's first rows on the copy. Whether these are all. StoppedError.
  absl::StatusOr<bool> Evaluate(const Model& copy, const Request& request);
  // Answers a message that was evaluated whole.
  void AnswerHere(const Message& message, const ModelSettings& settings)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Forwards a message of which the first rows were evaluated, or none.
  void ForwardRest(const Request& request, size_t bytes, const ModelSettings& settings)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ForwardWhole(const Request& request, size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forward(const Request& request, size_t bytes, int64_t begin, Answer answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePending(bool whole) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends the rows that are pending, with this request, and expects an answer for the message.
  void Send(const grpc::ByteBuffer& request, int64_t request_offset,
            std::optional<int64_t> message_number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sends rows that are pending alone.
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The writer is about to end: sends it what is pending, and nothing after that.
  void SendRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether later messages are not answered.
  bool IsEnding() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return writer_ends_ || !failure_.ok();
  }
  // Has the reactor go on once the copy is as new as the stream needs.
  void AwaitCopy() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the next message waits until its rows may be evaluated here. A copy that does not get the
  // updates is waited for some time, then messages are forwarded whole.
  bool Waits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `on_time` after this time, unless the session is gone.
  void SetAlarm(std::unique_ptr<grpc::Alarm>& alarm, absl::Duration delay,
                void (*on_time)(FollowerLearnSession& self)) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the stream for this reason after its first `answers` answers.
  void Fail(const absl::Status& why, size_t answers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeAnswer(::perceptron::v1::LearnResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Take(Response& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t copy_revision() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StreamLimits limits_;
  Store& store_;
  const Connect connect_;
  const WriterAddress writer_address_;
  FollowedRows& rows_;
  std::function<void()> ready_;

  // Used by Accept alone.
  ModelHandle handle_;
  LearnTarget target_;
  ExampleBatch batch_;
  // Of the message being accepted: its rows, if they were read, and those that were evaluated.
  size_t counted_rows_ = 0;
  // Its first row that was not evaluated calls for an update.
  bool needs_update_ = false;
  CorrectRows evaluated_;
  // Null until the first message.
  std::shared_ptr<SegmentCall> call_;

  mutable Mutex mutex_;
  // Messages that were accepted.
  int64_t messages_ ABSL_GUARDED_BY(mutex_) = 0;
  // Absent until the first message.
  std::optional<StreamProgress> progress_ ABSL_GUARDED_BY(mutex_);
  // Correct rows of the model need only be counted, and nothing is asked for that only the writer
  // has.
  bool evaluates_ ABSL_GUARDED_BY(mutex_) = false;
  // The copy that was used last.
  std::weak_ptr<Model> copy_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RevisionWaiters> waiters_ ABSL_GUARDED_BY(mutex_);
  PendingRows pending_ ABSL_GUARDED_BY(mutex_);
  bool flush_is_due_ ABSL_GUARDED_BY(mutex_) = false;
  // What the writer has not answered: the messages' numbers, absent for rows sent alone.
  std::deque<std::optional<int64_t>> forwarded_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<::perceptron::v1::StreamOpened> opened_ ABSL_GUARDED_BY(mutex_);
  std::string model_uid_ ABSL_GUARDED_BY(mutex_);
  // The epoch of the writer that opened the stream.
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of messages without an answer that was sent, in order.
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  // How many of them, from the front, are ready.
  size_t ready_answers_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t name_table_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
  // The rest was sent, and the end of the writer's stream ends this one.
  bool writer_ends_ ABSL_GUARDED_BY(mutex_) = false;
  // An answer has said where the writer is.
  bool writer_is_named_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Sends pending rows some time after the first.
  std::unique_ptr<grpc::Alarm> flush_alarm_ ABSL_GUARDED_BY(mutex_);
  // Has the reactor go on if the copy is not as new in time.
  std::unique_ptr<grpc::Alarm> wait_alarm_ ABSL_GUARDED_BY(mutex_);
  bool wait_is_timed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perceptrond
