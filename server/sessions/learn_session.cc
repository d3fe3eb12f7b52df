#include "server/sessions/learn_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/model/correct_rows.h"
#include "core/model/views.h"
#include "core/sync/cancellation.h"
#include "google/rpc/status.pb.h"
#include "server/rpc/message.h"
#include "server/sessions/convert.h"
#include "server/sessions/placement.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// More than a producer can send in a century; the sum over all producers still fits in a counter.
constexpr int64_t kMaxAcknowledged = int64_t{1} << 48;

// Whether an error is about one message and leaves the stream open.
bool IsInBand(const absl::Status& status) {
  // RESOURCE_EXHAUSTED: the message costs too much, or there is no memory for it now.
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ||
         absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status);
}

absl::Status ModelReplaced(const std::string& model) {
  return MakeError(
      absl::StatusCode::kNotFound, "MODEL_NOT_FOUND",
      absl::StrCat("model \"", model,
                   "\" was deleted, and another model has its name: open a new stream"),
      {{"model", model}});
}

absl::Status CheckResume(const v1::Producer::Resume& resume, const Model& model) {
  if (resume.model_uid() != model.uid()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "MODEL_REPLACED",
                     absl::StrCat("model \"", model.name(),
                                  "\" is not the one that acknowledged your examples, which was "
                                  "deleted, or named by an alias that has moved: name that model "
                                  "(StreamOpened.model), or open a new stream without resume"));
  }
  if (resume.acknowledged_offset() > kMaxAcknowledged) {
    return InvalidField("INVALID_FIELD", "producer.resume.acknowledged_offset",
                        absl::StrCat(resume.acknowledged_offset(), " is above ", kMaxAcknowledged,
                                     "; send the largest offset that was acknowledged"));
  }
  return absl::OkStatus();
}

// DATA_LOSS (UPDATES_LOST) if the model may lack updates that were acknowledged to the producer,
// which expects `next_offset`.
absl::Status CheckNothingLost(const v1::Producer::Resume& claim, absl::string_view producer,
                              Model& model, Store& store, int64_t next_offset) {
  const uint64_t revision = model.revision();
  const bool is_known = claim.has_acknowledged_revision() && claim.acknowledged_epoch() > 0;
  const bool lost =
      is_known ? claim.acknowledged_revision() > 0 &&
                     !model.ledger().HasState(claim.acknowledged_epoch(),
                                              static_cast<uint64_t>(claim.acknowledged_revision()),
                                              revision)
               : static_cast<int64_t>(revision) < claim.acknowledged_revision() ||
                     claim.acknowledged_offset() >= next_offset;
  if (!lost || claim.accept_loss()) return absl::OkStatus();
  // Another server may have become the writer, and have what seems lost here.
  if (absl::Status status = store.ConfirmWriter(model); !status.ok()) return status;
  return MakeError(
      absl::StatusCode::kDataLoss, "UPDATES_LOST",
      absl::StrCat("model \"", model.name(), "\" is at revision ", revision,
                   " and may lack updates that were acknowledged to producer \"", producer,
                   "\", through example ", claim.acknowledged_offset(), " at revision ",
                   claim.acknowledged_revision(),
                   ", as after restoring a backup: send the examples from ", next_offset,
                   " on again, on a stream without resume; if they are gone, resume with "
                   "accept_loss"),
      {{"model", model.name()},
       {"revision", absl::StrCat(revision)},
       {"expected_offset", absl::StrCat(next_offset)}});
}

}  // namespace

WorkSize LearnSession::SizeOf(const Request& request) const {
  std::shared_ptr<Model> model = handle_.GetIfLoaded();
  if (model == nullptr)
    model = store_.GetIfLoaded(messages_ == 0 ? request.model() : target_.model());
  if (model != nullptr && MayAskServers(store_, *model) && NamesPredictions(request))
    return WorkSize::kLarge;
  // It may wait for a commit.
  if (messages_ == 0 && store_.fleet() != nullptr && request.message.producer().has_resume())
    return WorkSize::kLarge;
  return PlacementOfExamples(store_, model.get(), request).size;
}

absl::Status LearnSession::Accept(const Request& request, size_t /*bytes*/, bool more) {
  if (messages_ == 0) {
    if (absl::Status status = target_.Read(request.message); !status.ok()) return status;
    batch_.MakeStreamNames(target_.name_table_size());
  }
  absl::StatusOr<std::shared_ptr<Model>> model = FindModel();
  if (!model.ok()) return model.status();
  Answer answer;
  std::unique_ptr<v1::StreamOpened> opened;
  {
    // No other stream of the producer may learn between Open, which reads the position, and Learn.
    MutexLock turn(&producer_->turn);
    if (messages_ == 0) {
      absl::StatusOr<v1::StreamOpened> start = Open(**model, request.message);
      if (!start.ok()) return start.status();
      opened = std::make_unique<v1::StreamOpened>(*std::move(start));
    }
    if (absl::Status status = failure(); !status.ok()) return status;
    answer.result.set_message_number(messages_);
    if (absl::Status status = Learn(**model, request, answer); !status.ok()) {
      // Rows that were learned before the work was stopped become durable all the same.
      if (Stopped()) {
        store_.committer().Submit(*model, [claimed = answer.claimed](const absl::Status& durable) {
          if (durable.ok() && claimed != nullptr) claimed->Join();
        });
      }
      return status;
    }
  }
  answer.bytes =
      MemoryOf(answer.result) + (answer.result.has_error() ? 0 : outcome_.uncommitted_bytes);
  if (target_.include_report()) {
    // Made now and not when it is sent: by then it could include updates that are not durable yet.
    answer.report = std::make_unique<v1::ConvergenceReport>();
    *answer.report = MakeReport(**model);
    answer.bytes += answer.report->ByteSizeLong();
  }
  ++messages_;
  absl::Duration delay;
  bool is_ready = false;
  // Its rows' counts may wait, unless a prediction is joined.
  const bool is_deferred = answer.claimed == nullptr && store_.committer().Defer(*model);
  {
    MutexLock lock(&mutex_);
    if (opened != nullptr) opened_ = std::move(opened);
    bytes_ += answer.bytes;
    name_table_bytes_ = batch_.stream_names_bytes();
    answers_.push_back(std::move(answer));
    is_ready = is_deferred && ready_answers_ + 1 == answers_.size() && failure_.ok();
    if (is_ready) ++ready_answers_;
    delay = CommitDelay(more);
  }
  if (!is_ready) store_.committer().Submit(*std::move(model), shared_from_this(), delay);
  return absl::OkStatus();
}

absl::Status LearnSession::CountEvaluated(int64_t first_offset, int64_t rows,
                                          std::vector<UnchangedRows> unchanged,
                                          int64_t next_offset) {
  const absl::StatusOr<std::shared_ptr<Model>> model = FindModel();
  if (!model.ok()) return model.status();
  MutexLock turn(&producer_->turn);
  if (absl::Status status = failure(); !status.ok()) return status;
  next_offset_ = next_offset;
  counted_rows_ = std::max<int64_t>(first_offset + rows - next_offset, 0);
  if (rows == 0) return absl::OkStatus();
  return CountCorrectRows(**model, *producer_, first_offset, rows, std::move(unchanged));
}

absl::Duration LearnSession::CommitDelay(bool more) const {
  // A commit is delayed only for a producer that sends without waiting for answers, which has more
  // messages here or at least this many unanswered, and only while it is far from its limits.
  constexpr size_t kMinPipelined = 4;
  const bool has_room = answers_.size() < limits_.messages / 2 && bytes_ < limits_.bytes / 2;
  if (!has_room) return absl::ZeroDuration();
  if (more) return Committer::kLongDelay;
  return answers_.size() < kMinPipelined ? absl::ZeroDuration() : Committer::kShortDelay;
}

absl::StatusOr<std::shared_ptr<Model>> LearnSession::FindModel() {
  absl::StatusOr<std::shared_ptr<Model>> model = handle_.Acquire(target_.model());
  if (!model.ok()) return model.status();
  if (!model_uid_.empty() && (*model)->uid() != model_uid_) return ModelReplaced(target_.model());
  if (absl::Status writable = (*model)->core().CheckWritable(); !writable.ok()) return writable;
  if (!target_.producer().empty()) {
    if (producer_model_.lock() == *model) return model;
    // A model that was evicted and loaded again has producers of its own.
    absl::StatusOr<std::shared_ptr<Producer>> producer =
        (*model)->ledger().FindProducer(target_.producer());
    if (!producer.ok()) return producer.status();
    producer_ = *std::move(producer);
    producer_model_ = *model;
  } else if (producer_ == nullptr) {
    producer_ = std::make_shared<Producer>("");
  }
  return model;
}

absl::StatusOr<v1::StreamOpened> LearnSession::Open(Model& model, const Message& request) {
  const bool resumes = request.producer().has_resume();
  const v1::Producer::Resume& claim = request.producer().resume();
  if (resumes) {
    if (absl::Status status = CheckResume(claim, model); !status.ok()) return status;
    producer_->turn.AssertHeld();
    if (absl::Status status = CheckNothingLost(claim, target_.producer(), model, store_,
                                               producer_->position().next_offset);
        !status.ok())
      return status;
  }
  model_uid_ = model.uid();
  const auto on_end = [weak = weak_from_this()](const absl::Status& why) {
    if (const auto self = weak.lock()) self->End(why);
  };
  ticket_ = store_.streams().Open(model_uid_, target_.producer(), on_end, ask_);
  // A deletion closes the model first and then notifies its open streams.
  if (absl::Status closed = model.closed(); !closed.ok()) return closed;
  if (resumes) model.ledger().Resume(*producer_, claim.acknowledged_offset() + 1);
  producer_->turn.AssertHeld();
  const ProducerPosition& position = producer_->position();
  next_offset_ = position.next_offset;
  v1::StreamOpened opened;
  opened.set_model(model.name());
  opened.set_model_uid(model_uid_);
  opened.set_revision(static_cast<int64_t>(model.revision()));
  opened.set_epoch(model.core().epoch.load(std::memory_order_acquire));
  opened.set_next_offset(position.next_offset);
  opened.set_passes(position.passes);
  opened.set_name_table_size(batch_.name_table_size());
  opened.set_max_message_bytes(static_cast<int64_t>(limits_.message_bytes));
  return opened;
}

absl::Status LearnSession::Learn(Model& model, const Request& request, Answer& answer) {
  v1::LearnResult& result = answer.result;
  const Message& message = request.message;
  if (absl::Status status = batch_.AppendStreamNames(message.columns()); !status.ok())
    return status;
  absl::Status status = messages_ == 0 ? absl::OkStatus() : target_.CheckSame(message);
  const int64_t first_offset = message.has_first_offset() ? message.first_offset() : next_offset_;
  const int64_t counted = std::exchange(counted_rows_, 0);
  if (status.ok()) status = ReadExamples(model, request, first_offset, answer.claimed);
  producer_->turn.AssertHeld();
  const int64_t position = producer_->position().next_offset;
  if (status.ok()) {
    LearnCall call;
    call.batch = batch_.batch();
    call.row_errors = batch_.row_errors();
    call.producer = producer_.get();
    // Stated explicitly: if the model was rolled back to an earlier state, this message must be an
    // offset gap, and not continue from there.
    call.first_offset = first_offset;
    call.counted_rows = static_cast<size_t>(counted);
    if (answer.claimed != nullptr) call.predictions = answer.claimed->kept();
    call.completed_pass = message.completed_pass();
    call.detail = target_.detail();
    status = model.Learn(call, outcome_);
    if (answer.claimed != nullptr) {
      answer.claimed->Keep(RowsBefore(position, first_offset),
                           RowsBefore(producer_->position().next_offset, first_offset),
                           outcome_.row_errors);
    }
  }
  if (status.ok()) {
    // The offset after this message, also if the message was a replay.
    next_offset_ = first_offset + static_cast<int64_t>(batch_.batch().rows());
    ToProto(outcome_, batch_, model.settings(), target_.detail(), result);
    return status;
  }
  if (!IsInBand(status)) return status;
  // Of a message that is refused some rows may be counted: the next one comes after them.
  next_offset_ += counted;
  ToProto(status, *result.mutable_error());
  producer_->turn.AssertHeld();
  result.set_acknowledged_offset(producer_->position().next_offset - 1);
  result.set_revision(static_cast<int64_t>(model.revision()));
  result.set_epoch(model.core().epoch.load(std::memory_order_acquire));
  return absl::OkStatus();
}

void LearnSession::End(const absl::Status& why) {
  {
    MutexLock lock(&mutex_);
    if (end_.ok()) end_ = why;
  }
  ready_();
}

absl::Status LearnSession::ReadExamples(const Model& model, const Request& request,
                                        int64_t first_offset,
                                        std::shared_ptr<ClaimedPredictions>& claimed) {
  if (!NamesPredictions(request))
    return batch_.Read(request, model.settings(), ExampleBatch::Use::kLearn);
  names_predictions_.store(true, std::memory_order_release);
  claimed = std::make_shared<ClaimedPredictions>(store_.predictions(), model.id());
  producer_->turn.AssertHeld();
  const size_t known = RowsBefore(producer_->position().next_offset, first_offset);
  absl::Status status = joined_.Read(request, known, *claimed);
  return status.ok() ? batch_.ReadJoined(joined_, model.settings()) : status;
}

void LearnSession::JoinPredictions(size_t answers) {
  std::vector<std::shared_ptr<ClaimedPredictions>> joined;
  {
    MutexLock lock(&mutex_);
    for (size_t i = ready_answers_; i < std::min(ready_answers_ + answers, answers_.size()); ++i) {
      if (answers_[i].claimed != nullptr) joined.push_back(std::move(answers_[i].claimed));
    }
  }
  for (const std::shared_ptr<ClaimedPredictions>& claimed : joined) claimed->Join();
}

void LearnSession::Committed(size_t submissions, const absl::Status& status) {
  if (status.ok() && names_predictions_.load(std::memory_order_acquire))
    JoinPredictions(submissions);
  {
    MutexLock lock(&mutex_);
    if (status.ok() && failure_.ok()) {
      ready_answers_ += submissions;
    } else {
      // No message after a failed commit may be answered.
      if (failure_.ok()) failure_ = status;
      for (; submissions > 0; --submissions) {
        bytes_ -= answers_.back().bytes;
        answers_.pop_back();
      }
    }
  }
  ready_();
}

SessionState LearnSession::Poll(Response* response) {
  MutexLock lock(&mutex_);
  const bool has_response = response != nullptr && Take(*response);
  SessionState state(limits_, answers_.size(), bytes_);
  state.name_table_bytes = name_table_bytes_;
  state.failure = failure_.ok() ? end_ : failure_;
  state.has_response = has_response;
  state.ready_answers = ready_answers_;
  return state;
}

bool LearnSession::Take(Response& response) {
  if (ready_answers_ == 0) return false;
  response.Clear();
  if (opened_ != nullptr) *response.mutable_opened() = *std::exchange(opened_, nullptr);
  for (; ready_answers_ > 0; --ready_answers_) {
    bytes_ -= answers_.front().bytes;
    response.add_results()->Swap(&answers_.front().result);
    // The response keeps the last report.
    response.set_allocated_report(answers_.front().report.release());
    answers_.pop_front();
  }
  return true;
}

absl::Status LearnSession::failure() const {
  MutexLock lock(&mutex_);
  return failure_.ok() ? end_ : failure_;
}

}  // namespace perceptrond
