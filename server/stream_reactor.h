// Carries one bidirectional stream between gRPC's callbacks and a session: reads while the session
// has room, writes what is ready, and ends the stream once everything taken has been answered.
// Messages are parsed here, from raw bytes, so that bytes which are no message can be told from a
// stream that ends.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "core/sync/mutex.h"
#include "server/drain.h"
#include "server/status.h"

namespace perceptrond {

// Deletes itself when gRPC is done with it; callbacks under way keep it alive. Session as
// server/learn_session.h.
template <typename Session>
class StreamReactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Starts reading.
  static grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Start(
      std::shared_ptr<Session> session, Drain& drain) {
    std::shared_ptr<StreamReactor> reactor(new StreamReactor(std::move(session), drain));
    reactor->self_ = reactor;
    const std::weak_ptr<StreamReactor> weak = reactor;
    const auto pump = [weak] {
      if (const std::shared_ptr<StreamReactor> alive = weak.lock()) alive->Advance(std::nullopt);
    };
    reactor->session_->OnReady(pump);
    drain.Add(
        [weak] {
          if (const std::shared_ptr<StreamReactor> alive = weak.lock()) {
            alive->Advance(DrainingError());
          }
        },
        reactor->drain_id_);
    reactor->Advance(std::nullopt);
    return reactor.get();
  }

  void OnReadDone(bool ok) override {
    {
      MutexLock lock(&mutex_);
      // The stream may have ended meanwhile: what came after that is not taken.
      if (!ok || end_.has_value()) {
        reading_ = false;
        EndWith(absl::OkStatus());
        Pump();
        return;
      }
      learning_ = true;
    }
    absl::Status status = AcceptMessage();
    MutexLock lock(&mutex_);
    reading_ = learning_ = false;
    if (!status.ok()) EndWith(std::move(status));
    Pump();
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
    Pump();
  }

  void OnCancel() override {
    MutexLock lock(&mutex_);
    broken_ = true;
    Pump();
  }

  void OnDone() override {
    drain_.Remove(drain_id_);
    const std::shared_ptr<StreamReactor> last = std::move(self_);
  }

 private:
  StreamReactor(std::shared_ptr<Session> session, Drain& drain)
      : session_(std::move(session)), drain_(drain) {}

  absl::Status AcceptMessage() {
    const size_t bytes = incoming_.Length();
    const grpc::Status parsed =
        grpc::SerializationTraits<typename Session::Request>::Deserialize(&incoming_, &request_);
    if (!parsed.ok()) {
      return MakeError(
          absl::StatusCode::kInvalidArgument, "MALFORMED_MESSAGE",
          absl::StrCat("the bytes of message ", messages_, " are no ", Session::kMessageName));
    }
    ++messages_;
    return session_->Accept(request_, bytes);
  }

  void Advance(std::optional<absl::Status> end) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (end.has_value()) EndWith(*std::move(end));
    Pump();
  }

  // The first reason stands.
  void EndWith(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!end_.has_value()) end_ = std::move(status);
  }

  // Starts whatever can be started. gRPC runs no callback from within the calls made here.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (finished_) return;
    if (absl::Status failure = session_->failure(); !failure.ok()) EndWith(std::move(failure));
    if (!broken_ && !writing_ && session_->Take(response_)) {
      outgoing_.Clear();
      bool own_buffer = false;
      grpc::SerializationTraits<typename Session::Response>::Serialize(response_, &outgoing_,
                                                                       &own_buffer);
      writing_ = true;
      StartWrite(&outgoing_);
    }
    if (!broken_ && !end_.has_value() && !reading_ && !session_->Full()) {
      reading_ = true;
      StartRead(&incoming_);
    }
    // A message being learned holds up the end; a read that merely waits for the sender does not.
    const bool answered = end_.has_value() && session_->Idle();
    if (!writing_ && !learning_ && (broken_ || answered)) {
      finished_ = true;
      Finish(broken_ ? grpc::Status(grpc::StatusCode::CANCELLED, "the stream broke")
                     : ToGrpc(*end_));
    }
  }

  const std::shared_ptr<Session> session_;
  Drain& drain_;
  uint64_t drain_id_ = 0;
  // gRPC's hold on the reactor.
  std::shared_ptr<StreamReactor> self_;

  // Of the read under way, and of the thread that has its message.
  grpc::ByteBuffer incoming_;
  typename Session::Request request_;
  int64_t messages_ = 0;

  Mutex mutex_;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  typename Session::Response response_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // A message was read and is being learned.
  bool learning_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // Nobody is at the other end any more.
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  // Why the stream is to end; set: read no more.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
