// The parts that LearnStream and PredictStream share: RowBatch gathers rows into messages, and
// StreamWorker runs the bidirectional stream on a thread of its own: it writes messages, passes
// responses on, and reconnects after the connection was lost.
//
// gRPC's callbacks only record events; all decisions are made on the worker's thread, one at a
// time, so that a derived class is a plain state machine. A lost connection is retried until
// RetryPolicy::give_up_after has passed without progress; time in which no response was due does
// not count.
//
// Derived classes guard their own state with mutex_ too. They call Start() when constructed, and
// Stop() in the destructor, before any member is destroyed.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/batch_builder.h"
#include "client/error.h"
#include "client/retry.h"
#include "client/row.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond::client {

// Rows and their tags, gathered until a message is full. Threads: one at a time.
class RowBatch {
 public:
  // `max_names`: most different names of a message, but for one of a single row; 0: any number.
  RowBatch(size_t max_rows, size_t max_bytes, size_t max_names)
      : max_rows_(max_rows), max_bytes_(max_bytes), max_names_(max_names) {}

  // Adds a copy of the row. Calls `flush` before a row that does not fit into the message, and once
  // the message is full. INVALID_ARGUMENT: the row is malformed and was not added. Other errors are
  // those of `flush`.
  absl::Status Push(const Row& row, uint64_t tag, absl::FunctionRef<absl::Status()> flush) {
    if (!rows_.empty() && (!rows_.Fits(row) || HasTooManyNames(row))) {
      if (absl::Status status = flush(); !status.ok()) return status;
    }
    if (absl::Status status = rows_.Add(row); !status.ok()) return status;
    tags_.push_back(tag);
    return rows_.rows() >= max_rows_ || rows_.bytes() >= max_bytes_ ? flush() : absl::OkStatus();
  }
  // Sets the size of the largest message that the server accepts. A part is for names that a message appends.
  void SetMostBytes(size_t bytes) {
    rows_.SetMostBytes(bytes);
    max_bytes_ = std::min(max_bytes_, bytes / 4);
  }
  bool empty() const { return rows_.empty(); }
  size_t bytes() const { return rows_.bytes(); }
  // Moves the rows into *columns and *names, for a MessageEncoder, returns their tags, and starts
  // the next message.
  std::vector<uint64_t> Take(perceptron::v1::ExampleColumns* columns, NameNumbers* names) {
    rows_.BuildUnsorted(columns, names);
    std::vector<uint64_t> tags = std::move(tags_);
    tags_.clear();
    tags_.reserve(tags.size());
    return tags;
  }

 private:
  bool HasTooManyNames(const Row& row) const {
    return max_names_ > 0 && rows_.names() + row.name_count() > max_names_;
  }

  const size_t max_rows_;
  size_t max_bytes_;
  const size_t max_names_;
  BatchBuilder rows_;
  std::vector<uint64_t> tags_;
};

template <typename Request, typename Response>
class StreamWorker {
 public:
  using Reactor = grpc::ClientBidiReactor<Request, Response>;

  // `response_timeout`: how long a response may take before the connection counts as lost.
  StreamWorker(RetryPolicy policy, absl::Duration response_timeout)
      : policy_(std::move(policy)), response_timeout_(response_timeout) {}
  virtual ~StreamWorker() = default;
  StreamWorker(const StreamWorker&) = delete;
  StreamWorker& operator=(const StreamWorker&) = delete;

 protected:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;

  // --- Implemented by derived classes; called on the worker's thread. ---

  // Prepares the call.
  virtual void Prepare(grpc::ClientContext* context, Reactor* reactor) = 0;
  // Called for each new connection: goes back to the first unanswered message. Returns a message
  // that opens the connection, after which nothing is sent until ready_ is set; or null if the
  // connection is ready at once.
  virtual std::shared_ptr<const Request> Rewind() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The next message to send, or null.
  virtual std::shared_ptr<const Request> NextToSend() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Puts the message that NextToSend() returned last into the form in which this connection sends
  // it. Called without the lock, once for each message.
  virtual std::shared_ptr<const Request> Encode() ABSL_LOCKS_EXCLUDED(mutex_) = 0;
  // Whether any message, sent or waiting, is unanswered.
  virtual bool Unanswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Handles a response; called without the lock, so that it may run user callbacks. An error ends
  // the connection.
  virtual absl::Status OnResponse(Response* response) ABSL_LOCKS_EXCLUDED(mutex_) = 0;
  // Whether a new connection may succeed after this error.
  virtual bool MayRetry(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Whether the server does not know what the connection asked for, and the next one asks for less:
  // it is then tried at once.
  virtual bool AskForLess(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Called without the lock when a connection was lost and another one will be tried.
  virtual void OnDisconnect(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {}
  // Called without the lock before the worker ends.
  virtual void OnEnd() ABSL_LOCKS_EXCLUDED(mutex_) {}

  // --- Used by derived classes. ---

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  // Cancels the stream without waiting for the worker. Threads: any.
  void CancelStream() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
    WakeWorker();
  }
  // Cancels the stream and waits for the worker.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    CancelStream();
    if (thread_.joinable()) thread_.join();
  }

  // Half-closes the stream once all messages are answered, and waits for its end.
  absl::Status WaitForEnd() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    finishing_ = true;
    WakeWorker();
    const auto ended = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_.has_value(); };
    mutex_.Await(absl::Condition(&ended));
    return *ended_;
  }
  // Call after each change that the worker may act on, unless on its own thread.
  void WakeWorker() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { changed_ = true; }
  // Ends the connection in order once what was sent is answered, and goes on with another one, which
  // Prepare makes. For OnResponse.
  void Move() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { moving_ = true; }

  Mutex mutex_;
  // The connection accepts messages. Set by OnResponse if Rewind returned a first message.
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  // No more messages will be queued: half-close once all are answered.
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // Set when the worker has ended: OK after a clean finish.
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  // Number of connections after the first.
  int reconnects_ ABSL_GUARDED_BY(mutex_) = 0;

 private:
  // Records gRPC's events in the worker's members.
  struct Events final : public Reactor {
    explicit Events(StreamWorker* worker) : worker(worker) {}
    void OnReadDone(bool ok) override {
      MutexLock lock(&worker->mutex_);
      worker->read_ = ok ? Read::kMessage : Read::kEnd;
      worker->WakeWorker();
    }
    void OnWriteDone(bool) override {
      MutexLock lock(&worker->mutex_);
      worker->writing_ = nullptr;
      worker->WakeWorker();
    }
    void OnDone(const grpc::Status& status) override {
      MutexLock lock(&worker->mutex_);
      worker->done_ = status;
      worker->WakeWorker();
    }
    StreamWorker* const worker;
  };
  enum class Read { kPending, kMessage, kEnd };

  void Run() {
    Backoff backoff(policy_);
    bool again = false;
    mutex_.Lock();
    last_progress_ = policy_.now();
    while (true) {
      if (again) ++reconnects_;
      again = true;
      const TimePoint progress_before = last_progress_;
      const absl::Status status = RunConnection();
      ready_ = false;
      const bool moved = std::exchange(moving_, false) && status.ok();
      if (cancelled_) {
        ended_ = absl::CancelledError("the stream was cancelled");
        break;
      }
      if (AskForLess(status) || (moved && !(finishing_ && !Unanswered()))) {
        again = false;
        continue;
      }
      if (status.ok() || !MayRetry(status)) {
        ended_ = status;
        break;
      }
      if (last_progress_ != progress_before) backoff.Reset();
      const TimePoint until = policy_.now() + absl::ToChronoNanoseconds(backoff.Next(status));
      if (until >= GiveUpTime()) {
        const bool tried = policy_.give_up_after > absl::ZeroDuration();
        ended_ = tried ? WithGaveUpAfter(status, policy_.give_up_after) : status;
        break;
      }
      mutex_.Unlock();
      OnDisconnect(status);
      mutex_.Lock();
      mutex_.AwaitWithTimeout(absl::Condition(&cancelled_),
                              absl::FromChrono(until - policy_.now()));
    }
    mutex_.Unlock();
    OnEnd();
  }

  TimePoint GiveUpTime() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return last_progress_ + absl::ToChronoNanoseconds(policy_.give_up_after);
  }

  // When the connection counts as lost unless a response arrives.
  TimePoint Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const TimePoint due = policy_.now() + absl::ToChronoNanoseconds(response_timeout_);
    // An attempt to reconnect ends at the time to give up.
    return reconnects_ > 0 && !answered_ ? std::min(due, GiveUpTime()) : due;
  }

  // Waits for WakeWorker(), at most `timeout`.
  void AwaitChange(absl::Duration timeout = absl::InfiniteDuration())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    mutex_.AwaitWithTimeout(absl::Condition(&changed_), timeout);
    changed_ = false;
  }

  // Runs one connection to its end. OK: finished, and all messages answered.
  absl::Status RunConnection() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    grpc::ClientContext context;
    Events events(this);
    Response response;
    read_ = Read::kPending;
    done_.reset();
    answered_ = false;
    writing_ = Rewind();
    ready_ = writing_ == nullptr;
    context_ = &context;
    if (cancelled_) context.TryCancel();

    Prepare(&context, &events);
    // The hold keeps the call alive between operations started outside of gRPC's callbacks.
    events.AddHold();
    const std::shared_ptr<const Request> first = writing_;
    if (first != nullptr) events.StartWrite(first.get());
    events.StartRead(&response);
    events.StartCall();

    absl::Status broken;
    bool closed = false;
    TimePoint due = Due();
    while (read_ != Read::kEnd) {
      if (read_ == Read::kMessage) {
        if (broken.ok()) {
          // A server that opens every connection, and then refuses what is sent, does not get on.
          const bool opens = !ready_ && reconnects_ > 0;
          mutex_.Unlock();
          absl::Status status = OnResponse(&response);
          mutex_.Lock();
          if (status.ok()) {
            if (!opens) last_progress_ = policy_.now();
            answered_ = true;
            due = Due();
            waiting_ = !ready_ || closed || Unanswered();
          } else {
            broken = std::move(status);
            context.TryCancel();
          }
        }
        response.Clear();
        read_ = Read::kPending;
        events.StartRead(&response);
        continue;
      }
      if (broken.ok() && ready_ && !closed && writing_ == nullptr) {
        if (moving_) {
          closed = true;
          events.StartWritesDone();
          continue;
        }
        if (std::shared_ptr<const Request> next = NextToSend(); next != nullptr) {
          if (!waiting_) {
            last_progress_ = policy_.now();
            due = Due();
          }
          waiting_ = true;
          // Encoding and serializing take time; do not block the threads that queue messages.
          mutex_.Unlock();
          next = Encode();
          mutex_.Lock();
          writing_ = next;
          mutex_.Unlock();
          events.StartWrite(next.get());
          mutex_.Lock();
          continue;
        }
        if (finishing_ && !Unanswered()) {
          closed = true;
          events.StartWritesDone();
          continue;
        }
      }
      waiting_ = !ready_ || closed || Unanswered();
      if (!waiting_) {
        AwaitChange();
        if (answered_) last_progress_ = policy_.now();
        due = Due();
      } else if (const TimePoint now = policy_.now(); now < due) {
        AwaitChange(absl::FromChrono(due - now));
      } else if (broken.ok()) {
        broken = absl::UnavailableError("the server did not answer in time");
        context.TryCancel();
      } else {
        AwaitChange();
      }
    }
    events.RemoveHold();
    const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_.has_value(); };
    mutex_.Await(absl::Condition(&done));
    context_ = nullptr;
    writing_ = nullptr;
    if (!broken.ok()) return broken;
    if (!done_->ok()) {
      absl::Status status = ToAbslStatus(*done_);
      // This client has not cancelled it: a server that shuts down has, or a proxy.
      return !cancelled_ && absl::IsCancelled(status)
                 ? absl::UnavailableError("the connection was ended")
                 : status;
    }
    if (closed && (moving_ || !Unanswered())) return absl::OkStatus();
    return absl::UnavailableError("the server ended the stream early");
  }

  const RetryPolicy policy_;
  const absl::Duration response_timeout_;
  std::thread thread_;

  // The connection ends so that another one follows.
  bool moving_ ABSL_GUARDED_BY(mutex_) = false;
  // Something has changed since the worker last waited.
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Read read_ ABSL_GUARDED_BY(mutex_) = Read::kPending;
  // The message being written; gRPC needs it until the write is done.
  std::shared_ptr<const Request> writing_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> done_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  // This connection has received a response.
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  // Time of the last response, without those that open a connection again, or the last time at which none was due.
  TimePoint last_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond::client
