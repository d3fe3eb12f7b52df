#include "server/fleet/segment_call.h"

#include <limits>
#include <utility>

#include "core/error/error.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/message.h"

namespace perceptrond {

std::shared_ptr<SegmentCall> SegmentCall::Start(WriterCalls& calls, const std::string& address,
                                                uint64_t model_id, int64_t epoch,
                                                const CallOrigin& origin,
                                                std::weak_ptr<Receiver> receiver) {
  std::shared_ptr<SegmentCall> call(
      new SegmentCall(calls, address, model_id, epoch, std::move(receiver)));
  // Who ends it meanwhile waits: there is nothing to end yet.
  MutexLock lock(&call->mutex_);
  calls.Add(call);
  call->self_ = call;
  origin.AddTo(call->context_);
  call->stub_.PrepareBidiStreamingCall(&call->context_, kSegmentsPath, {}, call.get());
  call->AddHold();
  call->StartRead(&call->incoming_);
  call->StartCall();
  return call;
}

SegmentCall::SegmentCall(WriterCalls& calls, const std::string& address, uint64_t model_id,
                         int64_t epoch, std::weak_ptr<Receiver> receiver)
    : WriterCall(model_id, epoch),
      calls_(calls),
      receiver_(std::move(receiver)),
      channel_(calls.ChannelTo(address)),
      stub_(channel_) {}

void SegmentCall::Send(grpc::ByteBuffer segment) {
  MutexLock lock(&mutex_);
  if (closed_) return;
  segments_.push_back(std::move(segment));
  Advance();
}

void SegmentCall::EndInput() {
  MutexLock lock(&mutex_);
  input_ended_ = true;
  Advance();
}

void SegmentCall::End(const absl::Status& why) {
  {
    MutexLock lock(&mutex_);
    if (why_.ok()) why_ = why;
    Close();
  }
  context_.TryCancel();
}

void SegmentCall::Advance() {
  if (closed_ || writing_) return;
  if (!segments_.empty()) {
    writing_ = true;
    outgoing_.Swap(&segments_.front());
    segments_.pop_front();
    StartWrite(&outgoing_);
  } else if (input_ended_) {
    StartWritesDone();
    Close();
  }
}

void SegmentCall::Close() {
  if (std::exchange(closed_, true)) return;
  segments_.clear();
  RemoveHold();
}

void SegmentCall::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  outgoing_.Clear();
  ok ? Advance() : Close();
}

void SegmentCall::OnReadDone(bool ok) {
  if (!ok) {
    MutexLock lock(&mutex_);
    return Close();
  }
  if (ParseMessage(incoming_, std::numeric_limits<size_t>::max(), answer_).ok()) {
    if (const std::shared_ptr<Receiver> receiver = receiver_.lock()) receiver->OnAnswer(answer_);
  } else {
    End(WriterUnreachableError("its answer is malformed"));
  }
  StartRead(&incoming_);
}

void SegmentCall::OnDone(const grpc::Status& status) {
  absl::Status why;
  {
    MutexLock lock(&mutex_);
    why = why_.ok() ? FromGrpc(status) : why_;
  }
  if (const std::shared_ptr<Receiver> receiver = receiver_.lock()) receiver->OnEnd(why);
  const std::shared_ptr<SegmentCall> self = std::move(self_);
  calls_.Remove(*this);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details()))
    return FromProto(details);
  // Of gRPC itself: the server could not be reached, or went away.
  return WriterUnreachableError(status.error_message());
}

}  // namespace perceptrond
