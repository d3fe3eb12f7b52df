// Reactors that tell the test what they hear, and that complain of what must not be.
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

// Every path is answered by the one method.
inline Acceptor::Route All(const Call::Method& method) {
  return [&method](const std::string& /*path*/) -> const Call::Method& { return method; };
}

// What all reactors of a test heard, together.
class Heard {
 public:
  void Begin() { Count(kBegun); }
  void Cancel() { Count(kCancelled); }
  void Done() { Count(kDone); }
  // Until it was so many calls; false: it takes too long.
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

// Tells the test of it all, and complains of what comes after OnDone, or twice.
class Told : public Reactor {
 public:
  explicit Told(Heard& heard) : heard_(heard) { heard_.Begin(); }
  ~Told() override { EXPECT_TRUE(done_); }
  void OnReadDone(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnWriteDone(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnAlarm(bool /*ok*/) override { EXPECT_FALSE(done_); }
  void OnCancel() override {
    EXPECT_FALSE(done_);
    EXPECT_FALSE(cancelled_.exchange(true));
    heard_.Cancel();
  }
  void OnDone() override {
    EXPECT_FALSE(done_.exchange(true));
    heard_.Done();
  }

 private:
  Heard& heard_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> done_ = false;
};

// Answers each message with itself, then OK.
class Echo final : public Told {
 public:
  Echo(Call& call, Heard& heard) : Told(heard), call_(call) {}
  void OnReadDone(bool ok) override {
    Told::OnReadDone(ok);
    ok ? call_.StartWrite(bytes_) : call_.Finish(grpc::Status::OK);
  }
  void OnWriteDone(bool ok) override {
    Told::OnWriteDone(ok);
    ok ? Start() : call_.Finish(grpc::Status::CANCELLED);
  }
  void Start() { call_.StartRead(&bytes_); }

 private:
  Call& call_;
  grpc::ByteBuffer bytes_;
};

// Finishes when it is cancelled.
class UntilCancel final : public Told {
 public:
  UntilCancel(Call& call, Heard& heard) : Told(heard), call_(call) {}
  void OnCancel() override {
    Told::OnCancel();
    call_.Finish(grpc::Status::CANCELLED);
  }
  void Start() {}

 private:
  Call& call_;
};

template <typename Kind>
Call::Method Make(Heard& heard) {
  return [&heard](Call& call) {
    const auto reactor = std::make_shared<Kind>(call, heard);
    call.Bind(reactor);
    reactor->Start();
  };
}

}  // namespace perceptrond::testing
