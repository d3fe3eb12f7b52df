// Calls as raw bytes on one completion queue with one polling thread: the transport of the equal
// null server. The real server's settings, and none of its code.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/sync/mutex.h"

namespace perceptrond::bench {

// How long the polling thread looks for the next lone request before it sleeps, as the real
// server's.
inline constexpr std::chrono::microseconds kSpin{100};
// The answers to messages that have arrived by then are sent together.
inline constexpr std::chrono::microseconds kMaxHeld{200};

// Threads that run what is scheduled, in order.
class Workers {
 public:
  explicit Workers(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) std::thread([this] { Run(); }).detach();
  }
  void Schedule(std::function<void()> work) {
    MutexLock lock(&mutex_);
    ++unfinished_;
    work_.push_back(std::move(work));
  }
  bool idle() const { return unfinished_ == 0; }

 private:
  [[noreturn]] void Run() {
    const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !work_.empty(); };
    for (;;) {
      std::function<void()> work;
      {
        MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(&has_work));
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
      --unfinished_;
    }
  }

  Mutex mutex_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> unfinished_ = 0;
};

// Handles one call's messages.
class CallHandler {
 public:
  virtual ~CallHandler() = default;
  virtual void OnRead(bool ok) = 0;
  virtual void OnWrite(bool ok) = 0;
  // Sends what was held back.
  virtual void OnFlush() {}
};

class Call;

struct Transport {
  // Makes the handler for a call's method, which starts the first operation; null: there is none.
  std::unique_ptr<CallHandler> (*make_handler)(Call& call, const std::string& method);
  grpc::AsyncGenericService service = {};
  std::unique_ptr<grpc::ServerCompletionQueue> queue = nullptr;
  Workers& workers;
  // Calls with answers that wait until no event does; used by the polling thread.
  std::vector<Call*> held = {};
};

// One RPC. It exists until none of its operations is pending.
class Call {
 public:
  struct Tag {
    Call& call;
    void (Call::*callback)(bool ok);
  };
  // Waits for a client's call.
  explicit Call(Transport& transport) : transport_(transport) {
    ++pending_;
    transport.service.RequestCall(&context_, &stream_, transport.queue.get(), transport.queue.get(),
                                  &accepted_);
  }
  static void OnEvent(const Tag& tag, bool ok) {
    Call& call = tag.call;
    (call.*tag.callback)(ok);
    call.Release();
  }

  void StartRead(grpc::ByteBuffer& message) {
    ++pending_;
    stream_.Read(&message, &read_);
  }
  void StartWrite(const grpc::ByteBuffer& message, bool more) {
    grpc::WriteOptions options;
    // gRPC completes the first write only once it is sent.
    if (more && has_written_) options.set_buffer_hint();
    has_written_ = true;
    ++pending_;
    stream_.Write(message, options, &written_);
  }
  void Finish(const grpc::Status& status) {
    ++pending_;
    stream_.Finish(status, &finished_);
  }
  void FinishWith(const grpc::ByteBuffer& message) {
    ++pending_;
    stream_.WriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK, &finished_);
  }
  // Has the polling thread, which calls this, call OnFlush soon.
  void FlushLater() {
    ++pending_;
    transport_.held.push_back(this);
  }
  static void FlushHeld(Transport& transport) {
    for (Call* const call : transport.held) {
      call->handler_->OnFlush();
      call->Release();
    }
    transport.held.clear();
  }
  // On a worker.
  template <typename Work>
  void Schedule(Work work) {
    ++pending_;
    transport_.workers.Schedule([this, work] {
      work();
      Release();
    });
  }

 private:
  void OnAccepted(bool ok) {
    if (!ok) return;
    new Call(transport_);
    handler_ = transport_.make_handler(*this, context_.method());
    if (handler_ == nullptr)
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, context_.method()));
  }
  void OnRead(bool ok) { handler_->OnRead(ok); }
  void OnWritten(bool ok) { handler_->OnWrite(ok); }
  void OnFinished(bool /*ok*/) {}
  void Release() {
    if (--pending_ == 0) delete this;
  }

  Transport& transport_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  std::unique_ptr<CallHandler> handler_;
  bool has_written_ = false;
  std::atomic<int> pending_ = 0;
  Tag accepted_{*this, &Call::OnAccepted};
  Tag read_{*this, &Call::OnRead};
  Tag written_{*this, &Call::OnWritten};
  Tag finished_{*this, &Call::OnFinished};
};

// Handles events for ever. While requests come one at a time, each soon after the last, it spins
// for the next one before it sleeps: as the real server, by a credit that lone requests earn and
// fruitless spinning costs.
[[noreturn]] inline void Poll(Transport& transport) {
  constexpr int kCost = 8;
  constexpr int kMaxCredit = 64;
  constexpr int kMaxEvents = 8;
  constexpr std::chrono::microseconds kMinWait{5};
  int credit = 0;
  int events = 0;
  std::chrono::steady_clock::time_point held_since;
  bool idle = false;
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    auto next = grpc::CompletionQueue::TIMEOUT;
    if (transport.held.empty()) {
      held_since = start;
    } else {
      if (start - held_since < kMaxHeld)
        next = transport.queue->AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
      if (next == grpc::CompletionQueue::TIMEOUT) Call::FlushHeld(transport);
    }
    if (next == grpc::CompletionQueue::TIMEOUT && credit >= kCost) {
      do {
        next = transport.queue->AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
      } while (next == grpc::CompletionQueue::TIMEOUT &&
               std::chrono::steady_clock::now() - start < kSpin);
      if (next == grpc::CompletionQueue::TIMEOUT) credit -= kCost;
    }
    if (next == grpc::CompletionQueue::TIMEOUT) transport.queue->Next(&tag, &ok);
    const std::chrono::steady_clock::duration waited = std::chrono::steady_clock::now() - start;
    if (waited >= kMinWait) {
      const bool alone = events <= kMaxEvents && idle && waited <= 4 * kSpin;
      credit = alone ? std::min(credit + 1, kMaxCredit) : 0;
      events = 0;
    }
    ++events;
    Call::OnEvent(*static_cast<Call::Tag*>(tag), ok);
    idle = events <= kMaxEvents && transport.workers.idle();
    if (!idle) credit = 0;
  }
}

}  // namespace perceptrond::bench
