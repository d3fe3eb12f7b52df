// A stream of segments at the server that writes the model: a LearnStream that another server has
// received.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "perceptron/fleet/v1/segment.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call_timing.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/session_state.h"

namespace perceptrond {

struct SegmentRequest : LearnSession::Request {
  ::perceptron::fleet::v1::Segment segment;
};

// As for other messages (server/rpc/message.h, message_work.h). The request inside was measured by the server that sends it.
absl::Status ParseMessage(grpc::ByteBuffer& bytes, size_t max_bytes, SegmentRequest& request);
inline size_t ParsedBytesOf(grpc::ByteBuffer& bytes, const SegmentRequest& request) {
  return ParsedBytesOf(bytes, request.segment);
}

// The methods are those of LearnSession. Thread contract: as LearnSession's.
class SegmentSession : public std::enable_shared_from_this<SegmentSession> {
 public:
  using Request = SegmentRequest;
  using Response = LearnSession::Response;

  static constexpr bool kAnswersSynchronously = false;
  static constexpr Part kAwaited = Part::kCommit;

  SegmentSession(Store& store, const StreamLimits& limits)
      : store_(store), session_(std::make_shared<LearnSession>(store, limits)) {}

  void OnReady(const std::function<void()>& ready);
  bool CanRunInline() const { return session_->CanRunInline(); }
  WorkSize SizeOf(const Request& request) const { return session_->SizeOf(request); }
  absl::Status Accept(const Request& request, size_t bytes, bool more = false);
  void DropSpareMemory() { session_->DropSpareMemory(); }
  void EndInput() {}
  SessionState Poll(Response* response);
  // Asks the sender, by an empty answer, for what it has evaluated, and goes on until that has come or Fleet::rest_time
  // has passed. False for a stream that has not begun.
  bool GoesOnToDrain();

 private:
  // Has the empty answer sent, unless it was.
  void Ask() {
    if (!asked_.exchange(true)) asks_ = true;
  }

  Store& store_;
  const std::shared_ptr<LearnSession> session_;
  std::function<void()> ready_;
  std::atomic<bool> begun_ = false;
  std::atomic<bool> asked_ = false;
  // The empty answer is not sent yet.
  std::atomic<bool> asks_ = false;
  // It was not answered in time.
  std::atomic<bool> is_late_ = false;
  grpc::Alarm alarm_;
};

}  // namespace perceptrond
