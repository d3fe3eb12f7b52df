// Writes the messages of a server stream, one at a time, and then its status.
#pragma once

#include <grpcpp/grpcpp.h>

#include <optional>

#include "absl/status/status.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"

namespace perceptrond {

// For reactors whose newest message makes an unsent older one obsolete, such as progress and
// reports. Not thread-safe: guard it with the reactor's lock. The call must exist until Finish.
class StreamWriter {
 public:
  explicit StreamWriter(Call& call) : call_(call) {}

  // Sends the message, after the write in progress if there is one; replaces a message that waits.
  // Does nothing after Finish.
  template <typename Message>
  void Write(const Message& message) {
    if (end_.has_value()) return;
    grpc::ByteBuffer bytes;
    if (absl::Status status = SerializeMessage(message, bytes); !status.ok()) return Finish(status);
    next_ = bytes;
    Advance();
  }

  // Ends the stream, after the write in progress and, if the status is OK, after the message that
  // waits. The first status counts.
  void Finish(const absl::Status& status) {
    if (end_.has_value()) return;
    if (!status.ok()) next_.reset();
    end_ = ToGrpc(status);
    Advance();
  }

  // To be called from the reactor's OnWriteDone.
  void OnWriteDone(bool ok) {
    writing_ = false;
    if (!ok) Finish(CancelledError());
    Advance();
  }

  bool writing() const { return writing_; }
  // Whether Finish was called.
  bool finished() const { return end_.has_value(); }

 private:
  void Advance() {
    if (writing_ || finish_started_) return;
    if (next_.has_value()) {
      current_.Swap(&*next_);
      next_.reset();
      writing_ = true;
      call_.StartWrite(current_);
    } else if (end_.has_value()) {
      finish_started_ = true;
      call_.Finish(*end_);
    }
  }

  Call& call_;
  // The message being written.
  grpc::ByteBuffer current_;
  std::optional<grpc::ByteBuffer> next_;
  std::optional<grpc::Status> end_;
  bool writing_ = false;
  bool finish_started_ = false;
};

}  // namespace perceptrond
