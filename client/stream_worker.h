// StreamWorker: what LearnStream and PredictStream have in common. One thread that keeps a
// bidirectional stream open, writes what there is to write, hands over what comes back, and after a
// break waits, reconnects and goes on.
//
// gRPC's callbacks only note what happened; all decisions are taken on the worker's thread, one at
// a time, so that the derived class reads as a plain state machine. A broken stream is retried
// until RetryPolicy::give_up_after has passed without progress; time in which no answer was due
// does not count.
//
// Derived classes guard their own state with mutex_, too. Call Start() when constructed and Stop()
// in the destructor, before any member goes.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/error.h"
#include "client/monitor.h"
#include "client/retry.h"

namespace perceptrond::client {

template <typename Request, typename Response>
class StreamWorker {
 public:
  using Reactor = grpc::ClientBidiReactor<Request, Response>;

  // `patience`: how long an answer may take before the stream counts as broken.
  StreamWorker(RetryPolicy policy, absl::Duration patience)
      : policy_(std::move(policy)), patience_(patience) {}
  virtual ~StreamWorker() = default;
  StreamWorker(const StreamWorker&) = delete;
  StreamWorker& operator=(const StreamWorker&) = delete;

 protected:
  using TimePoint = Monitor::Clock::time_point;

  // --- What a derived class says. All run on the worker's thread. ---

  // Prepares the call on the stub.
  virtual void Prepare(grpc::ClientContext* context, Reactor* reactor) = 0;
  // A new connection: rewinds to what has to be sent on it. Returns its first message, after which
  // nothing is sent until ready_ is set; or null, and the connection is ready at once.
  virtual std::shared_ptr<const Request> Rewind() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // The next message to send, or null.
  virtual std::shared_ptr<const Request> NextToSend() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // True iff something was sent or waits to be sent whose answer is still due.
  virtual bool Unanswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Takes an answer; runs without the lock, so that it may call back to the user. An error breaks
  // the connection.
  virtual absl::Status OnResponse(Response* response) ABSL_LOCKS_EXCLUDED(mutex_) = 0;
  // True iff a new connection may mend this.
  virtual bool MayRetry(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // A connection broke, and another will be tried. Runs without the lock.
  virtual void OnBroken(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {}
  // The worker is about to end. Runs without the lock.
  virtual void OnEnd() ABSL_LOCKS_EXCLUDED(mutex_) {}

  // --- What it may use. ---

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  // Makes the worker end soon, without waiting for it. Threads: any.
  void BreakOff() ABSL_LOCKS_EXCLUDED(mutex_) {
    MonitorLock lock(&mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
    mutex_.NotifyAll();
  }
  // Breaks off and joins.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    BreakOff();
    if (thread_.joinable()) thread_.join();
  }

  Monitor mutex_;
  // The connection takes messages; set by OnResponse where Rewind returned a first message.
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  // Nothing more will be queued: half-close once all is answered.
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // Set when the worker has ended: OK after a clean finish.
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
  // Connections after the first.
  int reconnects_ ABSL_GUARDED_BY(mutex_) = 0;

 private:
  // Notes gRPC's events in the worker's members.
  struct Events final : public Reactor {
    explicit Events(StreamWorker* worker) : worker(worker) {}
    void OnReadDone(bool ok) override {
      MonitorLock lock(&worker->mutex_);
      worker->read_ = ok ? Read::kMessage : Read::kEnd;
      worker->mutex_.NotifyAll();
    }
    void OnWriteDone(bool) override {
      MonitorLock lock(&worker->mutex_);
      worker->writing_ = nullptr;
      worker->mutex_.NotifyAll();
    }
    void OnDone(const grpc::Status& status) override {
      MonitorLock lock(&worker->mutex_);
      worker->done_ = status;
      worker->mutex_.NotifyAll();
    }
    StreamWorker* const worker;
  };
  enum class Read { kPending, kMessage, kEnd };

  void Run() {
    Backoff backoff(policy_);
    bool again = false;
    mutex_.Lock();
    last_progress_ = Monitor::Clock::now();
    while (true) {
      if (again) ++reconnects_;
      again = true;
      const TimePoint progress_before = last_progress_;
      const absl::Status status = RunConnection();
      ready_ = false;
      if (cancelled_) {
        ended_ = absl::CancelledError("the stream was broken off by its owner");
        break;
      }
      if (status.ok() || !MayRetry(status)) {
        ended_ = status;
        break;
      }
      if (last_progress_ != progress_before) backoff.Reset();
      const TimePoint until =
          Monitor::Clock::now() + absl::ToChronoNanoseconds(backoff.Next(status));
      if (until >= GiveUpTime()) {
        const bool tried = policy_.give_up_after > absl::ZeroDuration();
        ended_ = tried ? WithGaveUpAfter(status, policy_.give_up_after) : status;
        break;
      }
      mutex_.Unlock();
      OnBroken(status);
      mutex_.Lock();
      while (!cancelled_ && Monitor::Clock::now() < until) mutex_.WaitUntil(until);
    }
    mutex_.NotifyAll();
    mutex_.Unlock();
    OnEnd();
  }

  TimePoint GiveUpTime() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return last_progress_ + absl::ToChronoNanoseconds(policy_.give_up_after);
  }

  // When the connection counts as broken unless something happens.
  TimePoint Due() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const TimePoint due = Monitor::Clock::now() + absl::ToChronoNanoseconds(patience_);
    // No attempt to reconnect outlasts the time to give up.
    return reconnects_ > 0 && !answered_ ? std::min(due, GiveUpTime()) : due;
  }

  // From connecting to the stream's status. OK: finished and all answered.
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
    // The worker starts operations outside gRPC's callbacks, so the call must not end between two
    // of them.
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
          mutex_.Unlock();
          absl::Status status = OnResponse(&response);
          mutex_.Lock();
          if (status.ok()) {
            last_progress_ = Monitor::Clock::now();
            answered_ = true;
            due = Due();
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
        if (std::shared_ptr<const Request> next = NextToSend(); next != nullptr) {
          if (!waiting_) {
            last_progress_ = Monitor::Clock::now();
            due = Due();
          }
          writing_ = next;
          waiting_ = true;
          // Serializing takes a while; those who queue messages need not wait for it.
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
        mutex_.Wait();
        if (answered_) last_progress_ = Monitor::Clock::now();
        due = Due();
      } else if (Monitor::Clock::now() < due) {
        mutex_.WaitUntil(due);
      } else if (broken.ok()) {
        broken = absl::UnavailableError("the server did not answer in time");
        context.TryCancel();
      } else {
        mutex_.Wait();
      }
    }
    events.RemoveHold();
    while (!done_.has_value()) mutex_.Wait();
    context_ = nullptr;
    writing_ = nullptr;
    if (!broken.ok()) return broken;
    if (!done_->ok()) return ToAbslStatus(*done_);
    if (closed && !Unanswered()) return absl::OkStatus();
    return absl::UnavailableError("the server ended the stream early");
  }

  const RetryPolicy policy_;
  const absl::Duration patience_;
  std::thread thread_;

  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Read read_ ABSL_GUARDED_BY(mutex_) = Read::kPending;
  // The message being written, alive until gRPC is done with it.
  std::shared_ptr<const Request> writing_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Status> done_ ABSL_GUARDED_BY(mutex_);
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  // This connection has brought an answer.
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
  // The last answer, or the last moment at which none was due.
  TimePoint last_progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond::client
