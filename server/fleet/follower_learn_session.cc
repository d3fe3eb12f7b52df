#include "server/fleet/follower_learn_session.h"

#include <algorithm>
#include <utility>

#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/fleet/fleet.h"
#include "core/model/revision_waiters.h"
#include "core/sync/cancellation.h"
#include "server/access/principal_usage.h"
#include "server/rpc/message.h"
#include "server/rpc/timed_request.h"
#include "server/sessions/convert.h"
#include "server/sessions/placement.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// How long the writer may not know of rows that were evaluated here.
constexpr absl::Duration kFlushDelay = absl::Milliseconds(250);
// The same for names.
constexpr size_t kMostPendingNames = 1 << 20;
// As many rows may be pending; a message has fewer.
constexpr int64_t kMostPendingRows = kMostEvaluatedRows / 2;

std::optional<int64_t> StatedOffset(const v1::LearnStreamRequest& message) {
  return message.has_first_offset() ? std::optional(message.first_offset()) : std::nullopt;
}

}  // namespace

FollowerLearnSession::FollowerLearnSession(Store& store, const StreamLimits& limits,
                                           Connect connect, WriterAddress writer_address,
                                           FollowedRows& rows)
    : limits_(limits),
      store_(store),
      connect_(std::move(connect)),
      writer_address_(std::move(writer_address)),
      rows_(rows),
      handle_(store) {}

FollowerLearnSession::~FollowerLearnSession() {
  if (call_ == nullptr) return;
  bool is_answered = false;
  {
    MutexLock lock(&mutex_);
    is_answered = forwarded_.empty();
    if (is_answered) Flush();
  }
  // A client that is gone needs no more answers.
  is_answered ? call_->EndInput() : call_->End(CancelledError());
}

WorkSize FollowerLearnSession::SizeOf(const Request& request) const {
  std::shared_ptr<Model> model = handle_.GetIfLoaded();
  if (model == nullptr)
    model = store_.GetIfLoaded(call_ == nullptr ? request.model() : target_.model());
  return PlacementOfExamples(store_, model.get(), request).size;
}

absl::Status FollowerLearnSession::Accept(const Request& request, size_t bytes, bool /*more*/) {
  const Message& message = request.message;
  const bool is_first = call_ == nullptr;
  if (is_first) {
    if (absl::Status status = Begin(message); !status.ok()) return status;
  }
  if (absl::Status status = batch_.AppendStreamNames(message.columns()); !status.ok())
    return status;
  evaluated_.rows = 0;
  counted_rows_ = 0;
  needs_update_ = false;
  if (!is_first) {
    if (const std::shared_ptr<Model> copy = FindCopy(message); copy != nullptr) {
      const absl::StatusOr<bool> whole = Evaluate(*copy, request);
      if (!whole.ok()) return whole.status();
      if (*whole) {
        AnswerHere(message, copy->settings());
        return absl::OkStatus();
      }
      if (evaluated_.rows > 0) {
        ForwardRest(request, bytes, copy->settings());
        return absl::OkStatus();
      }
    }
  }
  ForwardWhole(request, bytes);
  if (!is_first) return absl::OkStatus();
  // While the writer opens the stream.
  const absl::StatusOr<std::shared_ptr<Model>> copy = handle_.Acquire(target_.model());
  if (!copy.ok() || target_.include_report() || !CanEvaluateElsewhere(**copy))
    return absl::OkStatus();
  {
    MutexLock lock(&mutex_);
    evaluates_ = true;
    copy_ = *copy;
    waiters_ = (*copy)->core().waiters;
  }
  // The answer may have come before.
  AwaitCopy();
  return absl::OkStatus();
}

absl::Status FollowerLearnSession::Begin(const Message& first) {
  if (absl::Status status = target_.Read(first); !status.ok()) return status;
  batch_.MakeStreamNames(target_.name_table_size());
  call_ = connect_(weak_from_this());
  MutexLock lock(&mutex_);
  progress_.emplace(target_.relaxed());
  return absl::OkStatus();
}

std::shared_ptr<Model> FollowerLearnSession::FindCopy(const Message& message) {
  {
    MutexLock lock(&mutex_);
    if (!evaluates_ || IsEnding() || !progress_->Continues(StatedOffset(message))) return nullptr;
  }
  if (message.completed_pass() != 0 || !target_.CheckSame(message).ok()) return nullptr;
  const absl::StatusOr<std::shared_ptr<Model>> copy = handle_.Acquire(target_.model());
  if (!copy.ok()) return nullptr;
  // Of a text split otherwise, what is right here may be a mistake there.
  if ((*copy)->settings().example_space.text.has_value() &&
      !store_.fleet()->WriterSplitsTextsAlike((*copy)->id()))
    return nullptr;
  ModelCore& core = (*copy)->core();
  MutexLock lock(&mutex_);
  copy_ = *copy;
  waiters_ = core.waiters;
  const bool usable = (*copy)->uid() == model_uid_ && core.follows.load(std::memory_order_acquire);
  return usable && progress_->IsOpen(copy_revision()) ? *copy : nullptr;
}

absl::StatusOr<bool> FollowerLearnSession::Evaluate(const Model& copy, const Request& request) {
  absl::Status status = batch_.Read(request, copy.settings(), ExampleBatch::Use::kLearn);
  // What is wrong with it the writer says.
  if (!status.ok()) return false;
  counted_rows_ = batch_.batch().rows();
  status =
      EvaluateCorrectRows(copy, batch_.batch(), batch_.row_errors(), target_.detail(), evaluated_);
  if (Stopped()) return StoppedError();
  {
    // The log may have lost what the stream's writer acknowledged: an answer from a later writer's state would claim it.
    MutexLock lock(&mutex_);
    if (evaluated_.outcome.epoch > epoch_) status = WriterChangedError();
  }
  if (!status.ok()) evaluated_.rows = 0;
  needs_update_ = status.ok() && evaluated_.rows < counted_rows_;
  return status.ok() && evaluated_.rows == counted_rows_;
}

void FollowerLearnSession::NotePending(bool whole) {
  // A copy that was loaded again may be older.
  if (evaluated_.outcome.revision < pending_.last_revision()) Flush();
  pending_.Add(progress_->position(), evaluated_.rows, evaluated_.outcome.revision,
               evaluated_.tally);
  progress_->OnEvaluated(evaluated_.rows, whole);
  rows_.evaluated.fetch_add(evaluated_.rows, std::memory_order_relaxed);
  name_table_bytes_ = batch_.stream_names_bytes();
}

void FollowerLearnSession::AnswerHere(const Message& message, const ModelSettings& settings) {
  MutexLock lock(&mutex_);
  // The stream ends, after what was answered before.
  if (IsEnding()) return;
  NotePending(/*whole=*/true);
  if (message.columns().has_stream_names() && batch_.name_table_size() > 0)
    pending_.AddNames(message.columns().stream_names());
  evaluated_.outcome.next_offset = progress_->position();
  Answer& answer = answers_.emplace_back();
  answer.result.set_message_number(messages_++);
  ToProto(evaluated_.outcome, batch_, settings, target_.detail(), answer.result);
  answer.ready = true;
  answer.bytes = MemoryOf(answer.result);
  bytes_ += answer.bytes;
  CountReady();
  if (pending_.name_bytes() > kMostPendingNames || pending_.rows() > kMostPendingRows)
    return Flush();
  if (flush_is_due_ || pending_.empty()) return;
  flush_is_due_ = true;
  SetAlarm(flush_alarm_, kFlushDelay, [](FollowerLearnSession& self) {
    MutexLock lock_self(&self.mutex_);
    self.flush_is_due_ = false;
    self.Flush();
  });
}

void FollowerLearnSession::SetAlarm(std::unique_ptr<grpc::Alarm>& alarm, absl::Duration delay,
                                    void (*on_time)(FollowerLearnSession& self)) {
  const std::function<void(bool)> call = [weak = weak_from_this(), on_time](bool /*ok*/) {
    if (const std::shared_ptr<FollowerLearnSession> self = weak.lock()) on_time(*self);
  };
  // Another one each time: an alarm may not be set while it is pending or runs.
  alarm = std::make_unique<grpc::Alarm>();
  alarm->Set(absl::ToChronoTime(absl::Now() + delay), call);
}

void FollowerLearnSession::ForwardRest(const Request& request, size_t bytes,
                                       const ModelSettings& settings) {
  MutexLock lock(&mutex_);
  if (IsEnding()) return;
  const int64_t begin = progress_->position();
  NotePending(/*whole=*/false);
  Answer answer;
  answer.evaluated = evaluated_.rows;
  ToProto(evaluated_.outcome, batch_, settings, target_.detail(), answer.result);
  const size_t rest = counted_rows_ - evaluated_.rows;
  progress_->OnForwarded(rest);
  rows_.forwarded.fetch_add(rest, std::memory_order_relaxed);
  Forward(request, bytes, begin, std::move(answer));
}

void FollowerLearnSession::ForwardWhole(const Request& request, size_t bytes) {
  const size_t rows = CountRequestRows(request);
  // ExampleBatch counts those that it reads.
  CountExamples(rows - std::min(rows, counted_rows_));
  MutexLock lock(&mutex_);
  if (IsEnding()) return;
  const int64_t begin = progress_->position();
  // What this server did not read may be refused.
  needs_update_ ? progress_->OnForwarded(rows) : progress_->OnForwardedUnread(rows);
  rows_.forwarded.fetch_add(rows, std::memory_order_relaxed);
  Forward(request, bytes, begin, {});
}

void FollowerLearnSession::Forward(const Request& request, size_t bytes, int64_t begin,
                                   Answer answer) {
  answer.bytes = bytes;
  bytes_ += bytes;
  answers_.push_back(std::move(answer));
  name_table_bytes_ = batch_.stream_names_bytes();
  Send(request.bytes, begin, messages_++);
}

void FollowerLearnSession::Send(const grpc::ByteBuffer& request, int64_t request_offset,
                                std::optional<int64_t> message_number) {
  ::perceptron::fleet::v1::Segment segment;
  pending_.MoveTo(request_offset, segment);
  forwarded_.push_back(message_number);
  call_->Send(Serialize(segment, request));
}

void FollowerLearnSession::Flush() {
  if (!pending_.empty() && failure_.ok()) Send({}, progress_->position(), std::nullopt);
}

void FollowerLearnSession::SendRest() {
  if (input_ended_) return;
  Flush();
  writer_ends_ = true;
  call_->EndInput();
}

void FollowerLearnSession::EndInput() {
  if (call_ == nullptr) return;
  MutexLock lock(&mutex_);
  Flush();
  input_ended_ = true;
  call_->EndInput();
}

void FollowerLearnSession::OnAnswer(Response& response) {
  {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    if (response.ByteSizeLong() == 0) SendRest();
    if (response.has_opened()) {
      model_uid_ = response.opened().model_uid();
      epoch_ = response.opened().epoch();
      progress_->OnOpened(response.opened().next_offset());
      opened_.reset(response.release_opened());
    }
    for (v1::LearnResult& result : *response.mutable_results()) TakeAnswer(result);
    if (response.has_report() && ready_answers_ > 0)
      answers_[ready_answers_ - 1].report.reset(response.release_report());
  }
  AwaitCopy();
  ready_();
}

void FollowerLearnSession::AwaitCopy() {
  std::shared_ptr<Model> copy;
  uint64_t floor = 0;
  {
    MutexLock lock(&mutex_);
    floor = progress_->floor();
    if (evaluates_ && progress_->is_answered() && copy_revision() < floor) copy = copy_.lock();
  }
  if (copy == nullptr) return;
  // The waiting callback keeps the copy in memory: what is evicted reaches nothing.
  copy->core().waiters->Await(floor, [copy, weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->ready_();
  });
}

void FollowerLearnSession::TakeAnswer(v1::LearnResult& result) {
  if (forwarded_.empty()) return;
  const std::optional<int64_t> number = forwarded_.front();
  forwarded_.pop_front();
  // Rows that were sent alone.
  if (!number.has_value()) return;
  const auto first = messages_ - static_cast<int64_t>(answers_.size());
  Answer& answer = answers_[static_cast<size_t>(*number - first)];
  progress_->OnAnswered(result, answer.evaluated);
  if (answer.evaluated > 0 && !result.has_error())
    AddEvaluated(answer.result, answer.evaluated, result);
  const bool refused = result.has_error();
  answer.result.Swap(&result);
  answer.result.set_message_number(*number);
  answer.ready = true;
  bytes_ -= answer.bytes;
  answer.bytes = MemoryOf(answer.result);
  bytes_ += answer.bytes;
  // Rows after a refused message were evaluated here as if it had been learned.
  const auto after = static_cast<size_t>(*number - first) + 1;
  const bool evaluated_after =
      std::any_of(answers_.begin() + static_cast<ptrdiff_t>(after), answers_.end(),
                  [](const Answer& one) { return one.ready; });
  if (refused && evaluated_after) Fail(WriterChangedError(), after);
  CountReady();
}

void FollowerLearnSession::Fail(const absl::Status& why, size_t answers) {
  if (failure_.ok()) failure_ = why;
  forwarded_.clear();
  for (; answers_.size() > answers; answers_.pop_back()) bytes_ -= answers_.back().bytes;
}

void FollowerLearnSession::CountReady() {
  while (ready_answers_ < answers_.size() && answers_[ready_answers_].ready) ++ready_answers_;
}

void FollowerLearnSession::OnEnd(const absl::Status& why) {
  {
    MutexLock lock(&mutex_);
    if (why.ok() && input_ended_ && !writer_ends_ && forwarded_.empty()) return;
    const absl::Status ended =
        writer_ends_ ? WriterChangedError() : WriterUnreachableError("it has ended the stream");
    // No message after one without an answer is answered.
    Fail(why.ok() ? ended : why, ready_answers_);
  }
  ready_();
}

uint64_t FollowerLearnSession::copy_revision() const {
  return waiters_ == nullptr ? 0 : waiters_->reached();
}

bool FollowerLearnSession::Waits() {
  const uint64_t revision = copy_revision();
  const absl::Duration late =
      absl::FromChrono(progress_->TimeBehind(revision, StreamProgress::Clock::now()));
  if (!progress_->ShouldWait(revision)) return false;
  const std::shared_ptr<Model> copy = copy_.lock();
  if (copy == nullptr) return false;
  if (revision >= progress_->floor()) return true;
  const absl::Duration rest = store_.fleet()->LongestWait(copy->id()) - late;
  if (rest <= absl::ZeroDuration()) return false;
  if (std::exchange(wait_is_timed_, true)) return true;
  SetAlarm(wait_alarm_, rest, [](FollowerLearnSession& self) {
    {
      MutexLock lock(&self.mutex_);
      self.wait_is_timed_ = false;
    }
    self.ready_();
  });
  return true;
}

SessionState FollowerLearnSession::Poll(Response* response) {
  MutexLock lock(&mutex_);
  const bool has_response = response != nullptr && Take(*response);
  SessionState state(limits_, answers_.size(), bytes_);
  // A stream whose writer ends must not end before that with OK: messages may be unanswered.
  const bool must_fail = writer_ends_ && failure_.ok();
  state.idle = answers_.empty() && forwarded_.empty() && !must_fail;
  state.name_table_bytes = name_table_bytes_;
  state.failure = failure_;
  state.has_response = has_response;
  state.ready_answers = ready_answers_;
  if (must_fail || (evaluates_ && failure_.ok() && Waits())) state.room_messages = 0;
  return state;
}

bool FollowerLearnSession::Take(Response& response) {
  if (ready_answers_ == 0) return false;
  response.Clear();
  if (opened_ != nullptr) response.set_allocated_opened(opened_.release());
  if (!writer_is_named_ && progress_->mostly_forwarded()) {
    response.set_writer_address(writer_address_());
    writer_is_named_ = !response.writer_address().empty();
  }
  for (; ready_answers_ > 0; --ready_answers_) {
    Answer& answer = answers_.front();
    bytes_ -= answer.bytes;
    response.add_results()->Swap(&answer.result);
    // The response keeps the last report.
    response.set_allocated_report(answer.report.release());
    answers_.pop_front();
  }
  return true;
}

}  // namespace perceptrond
