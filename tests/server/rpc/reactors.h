// Reactors that record their callbacks and fail the test for callbacks that must not happen.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>

#include "core/sync/mutex.h"
#include "gtest/gtest.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/call.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::testing {

// Routes every path to the one method.
inline Acceptor::Route All(const Call::Method& method) {
  return [&method](const std::string& /*path*/) -> const Call::Method& { return method; };
}

// The callbacks of all reactors of a test, counted.
class CallCounts {
 public:
  void Begin() { Count(kBegun); }
  void Cancel() { Count(kCancelled); }
  void Done() { Count(kDone); }
  // Waits until the count is at least `calls`.
  bool AwaitBegun(int calls) { return Await(kBegun, calls); }
  bool AwaitCancelled(int calls) { return Await(kCancelled, calls); }
  bool AwaitDone(int calls) { return Await(kDone, calls); }
  int begun() { return Get(kBegun); }
  int cancelled() { return Get(kCancelled); }
  int done() { return Get(kDone); }

 private:
  enum What { kBegun, kCancelled, kDone };

  void Count(What what) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++calls_[what];
  }
  bool Await(What what, int least) ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto enough = [&]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_[what] >= least; };
    MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&enough), kLong);
  }
  int Get(What what) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return calls_[what];
  }

  Mutex mutex_;
  std::array<int, 3> calls_ ABSL_GUARDED_BY(mutex_) = {};
};

// Counts the callbacks; fails the test for one that comes after OnDone, or twice.
class RecordingReactor : public Reactor {
 public:
  explicit RecordingReactor(CallCounts& counts) : counts_(counts) { counts_.Begin(); }
  ~RecordingReactor() override { EXPECT_TRUE(done_); }
  void OnReadDone(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnWriteDone(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnAlarm(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnCancel() override {
    EXPECT_FALSE(done_);
    EXPECT_FALSE(cancelled_.exchange(true));
    counts_.Cancel();
  }
  void OnDone() override {
    EXPECT_FALSE(done_.exchange(true));
    counts_.Done();
  }

 private:
  CallCounts& counts_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> done_ = false;
};

// Sends each message back, then OK.
class Echo final : public RecordingReactor {
 public:
  Echo(Call& call, CallCounts& counts) : RecordingReactor(counts), call_(call) {}
  void OnReadDone(bool ok) override {
    RecordingReactor::OnReadDone(ok);
    ok ? call_.StartWrite(bytes_) : call_.Finish(grpc::Status::OK);
  }
  void OnWriteDone(bool ok) override {
    RecordingReactor::OnWriteDone(ok);
    ok ? Start() : call_.Finish(grpc::Status::CANCELLED);
  }
  void Start() { call_.StartRead(&bytes_); }

 private:
  Call& call_;
  grpc::ByteBuffer bytes_;
};

// Finishes when it is cancelled.
class UntilCancel final : public RecordingReactor {
 public:
  UntilCancel(Call& call, CallCounts& counts) : RecordingReactor(counts), call_(call) {}
  void OnCancel() override {
    RecordingReactor::OnCancel();
    call_.Finish(grpc::Status::CANCELLED);
  }
  void Start() {}

 private:
  Call& call_;
};

template <typename Kind>
Call::Method Make(CallCounts& counts) {
  return [&counts](Call& call) {
    const auto reactor = std::make_shared<Kind>(call, counts);
    call.Bind(reactor);
    reactor->Start();
  };
}

}  // namespace perceptrond::testing
