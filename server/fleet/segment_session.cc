#include "server/fleet/segment_session.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/fleet/fleet.h"
#include "core/store/store.h"
#include "server/fleet/segments.h"
#include "server/rpc/message.h"

namespace perceptrond {

absl::Status ParseMessage(grpc::ByteBuffer& bytes, size_t max_bytes, SegmentRequest& request) {
  if (absl::Status status = ParseMessage(bytes, max_bytes, request.segment); !status.ok())
    return status;
  const std::string& inner = request.segment.request();
  const grpc::Slice slice(inner.data(), inner.size(), grpc::Slice::STATIC_SLICE);
  grpc::ByteBuffer buffer(&slice, 1);
  LearnSession::Request& parsed = request;
  return ParseMessage(buffer, max_bytes, parsed);
}

absl::Status SegmentSession::Accept(const Request& request, size_t bytes, bool more) {
  if (request.segment.has_evaluated()) {
    const ::perceptron::fleet::v1::EvaluatedRows& evaluated = request.segment.evaluated();
    if (!begun_) return MalformedMessage(evaluated.GetTypeName());
    for (const ::perceptron::v1::NameColumn& names : evaluated.stream_names()) {
      if (absl::Status status = session_->AppendStreamNames(names); !status.ok()) return status;
    }
    std::vector<UnchangedRows> unchanged;
    if (absl::Status status = Read(evaluated, unchanged); !status.ok()) return status;
    if (absl::Status status =
            session_->CountEvaluated(evaluated.first_offset(), evaluated.rows(),
                                     std::move(unchanged), evaluated.request_offset());
        !status.ok())
      return status;
  }
  begun_ = true;
  return session_->Accept(request, bytes, more);
}

void SegmentSession::OnReady(const std::function<void()>& ready) {
  ready_ = ready;
  session_->OnReady(ready);
  // The model is about to get another writer.
  session_->OnAsk([weak = weak_from_this()] {
    const std::shared_ptr<SegmentSession> self = weak.lock();
    if (self == nullptr) return;
    self->Ask();
    self->ready_();
  });
}

bool SegmentSession::GoesOnToDrain() {
  if (!begun_) return false;
  Ask();
  const std::function<void(bool)> on_time = [weak = weak_from_this()](bool ok) {
    const std::shared_ptr<SegmentSession> self = weak.lock();
    if (self == nullptr || !ok) return;
    self->is_late_ = true;
    self->ready_();
  };
  alarm_.Set(absl::ToChronoTime(absl::Now() + store_.fleet()->rest_time()), on_time);
  return true;
}

SessionState SegmentSession::Poll(Response* response) {
  SessionState state = session_->Poll(response);
  if (is_late_) state.failure.Update(DrainingError());
  if (response == nullptr || state.has_response || !asks_.exchange(false)) return state;
  response->Clear();
  state.has_response = true;
  return state;
}

}  // namespace perceptrond
