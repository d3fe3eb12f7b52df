#include "server/sessions/several_models_session.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "server/rpc/timed_request.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

absl::Status OffsetMissing() {
  return InvalidField("INVALID_FIELD", "first_offset",
                      "is missing: the models' positions may differ; send the least of their "
                      "next_offset with the first examples");
}

}  // namespace

bool SeveralModelsSession::CanRunInline() const {
  return first_->CanRunInline() &&
         (!several_.load(std::memory_order_acquire) ||
          std::all_of(others_.begin(), others_.end(),
                      [](const auto& session) { return session->CanRunInline(); }));
}

WorkSize SeveralModelsSession::SizeOf(const Request& request) const {
  // The models of a first message are looked up one by one.
  if (!begun_ && request.message.additional_models_size() > 0) return WorkSize::kLarge;
  const WorkSize size = first_->SizeOf(request);
  if (size == WorkSize::kLarge || !several_.load(std::memory_order_acquire)) return size;
  const bool any_large = std::any_of(others_.begin(), others_.end(), [&](const auto& session) {
    return session->SizeOf(request) == WorkSize::kLarge;
  });
  return any_large ? WorkSize::kLarge : size;
}

absl::Status SeveralModelsSession::AddModels(const Message& first) {
  if (store_.fleet() != nullptr) return SeveralModelsInFleet();
  for (int i = 0; i < first.additional_models_size(); ++i) {
    others_.push_back(std::make_shared<LearnSession>(store_, limits_, static_cast<size_t>(i) + 1));
    others_.back()->OnReady(ready_);
  }
  has_producer_ = first.has_producer();
  MutexLock lock(&mutex_);
  answered_.resize(others_.size() + 1);
  several_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> SeveralModelsSession::OffsetOf(const Request& request) {
  if (!has_producer_) return std::nullopt;
  const auto rows = static_cast<int64_t>(CountRequestRows(request));
  if (request.message.has_first_offset()) next_offset_ = request.message.first_offset();
  if (!next_offset_.has_value()) {
    if (rows > 0) return OffsetMissing();
    return std::nullopt;
  }
  const std::optional<int64_t> offset = next_offset_;
  *next_offset_ += rows;
  return offset;
}

absl::Status SeveralModelsSession::Accept(const Request& request, size_t bytes, bool more) {
  if (!begun_ && request.message.additional_models_size() > 0) {
    if (absl::Status status = AddModels(request.message); !status.ok()) return status;
  }
  begun_ = true;
  if (!several_.load(std::memory_order_relaxed)) return first_->Accept(request, bytes, more);
  const absl::StatusOr<std::optional<int64_t>> offset = OffsetOf(request);
  if (!offset.ok()) return offset.status();
  first_->StateOffset(*offset);
  if (absl::Status status = first_->Accept(request, bytes, more); !status.ok()) return status;
  for (const std::shared_ptr<LearnSession>& session : others_) {
    session->StateOffset(*offset);
    // What the models before it have learned is not answered: the producer sends it again.
    if (absl::Status status = session->Accept(request, bytes, more); !status.ok()) return status;
  }
  {
    MutexLock lock(&mutex_);
    ++accepted_;
  }
  // Their answers may have been ready before the message counted.
  ready_();
  return absl::OkStatus();
}

void SeveralModelsSession::DropSpareMemory() {
  first_->DropSpareMemory();
  for (const std::shared_ptr<LearnSession>& session : others_) session->DropSpareMemory();
}

SessionState SeveralModelsSession::Collect(LearnSession& session, Answered& answered) {
  Response response;
  SessionState state = session.Poll(&response);
  if (!state.has_response) return state;
  if (response.has_opened()) answered.opened.reset(response.release_opened());
  if (response.has_report()) answered.report.reset(response.release_report());
  for (v1::LearnResult& result : *response.mutable_results()) {
    answered.bytes += MemoryOf(result);
    answered.results.emplace_back().Swap(&result);
  }
  return state;
}

void SeveralModelsSession::Take(size_t messages, Response& response) {
  response.Clear();
  for (size_t message = 0; message < messages; ++message) {
    for (size_t model = 0; model < answered_.size(); ++model) {
      v1::LearnResult& result = answered_[model].results.front();
      answered_[model].bytes -= MemoryOf(result);
      result.set_model_number(static_cast<uint32_t>(model));
      response.add_results()->Swap(&result);
      answered_[model].results.pop_front();
    }
  }
  sent_ += messages;
  for (size_t model = 0; model < answered_.size(); ++model) {
    Answered& answered = answered_[model];
    if (answered.opened != nullptr) {
      v1::StreamOpened* const opened = answered.opened.release();
      model == 0 ? response.set_allocated_opened(opened)
                 : response.mutable_additional_opened()->AddAllocated(opened);
    }
    if (answered.report == nullptr) continue;
    (model == 0 ? *response.mutable_report() : *response.add_additional_reports()) =
        *answered.report;
  }
}

SessionState SeveralModelsSession::Poll(Response* response) {
  if (!several_.load(std::memory_order_acquire)) return first_->Poll(response);
  MutexLock lock(&mutex_);
  SessionState all;
  size_t ready = SIZE_MAX;
  bool is_cut_off = false;
  for (size_t model = 0; model < answered_.size(); ++model) {
    Answered& answered = answered_[model];
    const SessionState one = Collect(model == 0 ? *first_ : *others_[model - 1], answered);
    if (all.failure.ok()) all.failure = one.failure;
    all.answer_bytes += one.answer_bytes + answered.bytes;
    all.name_table_bytes += one.name_table_bytes;
    const size_t waiting = std::min(answered.results.size(), one.room_messages);
    all.room_messages = std::min(all.room_messages, one.room_messages - waiting);
    all.room_bytes =
        std::min(all.room_bytes, one.room_bytes - std::min(one.room_bytes, answered.bytes));
    ready = std::min(ready, answered.results.size());
    // What a model no longer answers, the stream does not either.
    is_cut_off |= !one.failure.ok() && one.idle && answered.results.empty();
  }
  ready = std::min<size_t>(ready, accepted_ - sent_);
  all.has_response = response != nullptr && ready > 0;
  if (all.has_response) {
    Take(ready, *response);
    ready = 0;
  }
  all.ready_answers = ready;
  all.idle = accepted_ == sent_ || (ready == 0 && is_cut_off);
  return all;
}

}  // namespace perceptrond
