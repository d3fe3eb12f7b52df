#include "client/learn_stream.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "client/batch_builder.h"
#include "client/error.h"
#include "client/message_encoder.h"
#include "client/preferred_server.h"
#include "client/stream_models.h"
#include "client/stream_worker.h"
#include "client/window.h"

namespace perceptrond::client {

// A state machine between the caller's thread, which the batch belongs to, and the worker's.
// Public methods and threads: as LearnStream.
class LearnStreamCore final
    : public StreamWorker<perceptron::v1::LearnStreamRequest, perceptron::v1::LearnStreamResponse> {
 public:
  LearnStreamCore(std::shared_ptr<Connection> connection, std::string model, LearnOptions options);
  ~LearnStreamCore() override { Stop(); }

  // Starts the worker and waits for the server's first response.
  absl::Status Open() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Push(const Row& row, uint64_t tag) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<perceptron::v1::PassSummary> MarkPass() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<LearnTotals> Finish() ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel() { CancelStream(); }

  absl::Status status() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return ended_.value_or(absl::OkStatus());
  }
  LearnTotals totals(size_t model) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<perceptron::v1::ConvergenceReport> report(size_t model) ABSL_LOCKS_EXCLUDED(mutex_);
  perceptron::v1::PassSummary last_pass(size_t model) ABSL_LOCKS_EXCLUDED(mutex_);
  // Constant once Open() returned OK.
  const perceptron::v1::StreamOpened& opened(size_t model) const { return first_opened_[model]; }
  const std::string& producer_id() const { return producer_id_; }

 private:
  std::shared_ptr<Outgoing> TakeBatch();
  // Numbers the message and queues it; blocks while the window is full.
  absl::Status Send(std::shared_ptr<Outgoing> message) ABSL_LOCKS_EXCLUDED(mutex_);
  void Prepare(grpc::ClientContext* context, Reactor* reactor) override;
  std::shared_ptr<const perceptron::v1::LearnStreamRequest> Rewind() override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const perceptron::v1::LearnStreamRequest> NextToSend() override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const perceptron::v1::LearnStreamRequest> Encode() override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool Unanswered() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !window_.empty();
  }
  absl::Status OnResponse(perceptron::v1::LearnStreamResponse* response) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayRetry(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AskForLess(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // Rows in flight are sent again, which unnumbered ones must not be.
    return (numbered() || !opened_once_) && encoder_.AskForLess(status);
  }
  void OnDisconnect(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd() override ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status OnOpened(const StreamModels::Opened& opened) ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls on_result for messages that all models have learned, whose answers from the model number
  // `first` on, of the oldest one, were lost.
  void ReportLost(const std::vector<std::shared_ptr<Outgoing>>& settled, size_t first) const;
  absl::Status OnResult(const perceptron::v1::LearnResult& result) ABSL_LOCKS_EXCLUDED(mutex_);
  bool numbered() const { return !producer_id_.empty(); }
  // Why the stream accepts no more messages. Precondition: it has ended.
  absl::Status EndStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LearnOptions options_;
  const std::string producer_id_;
  RowBatch batch_;

  // The worker's.
  MessageEncoder encoder_;
  PreferredServer server_;
  // The result of the last NextToSend().
  std::shared_ptr<Outgoing> sending_;

  // Written on the worker's thread until opened_once_, constant afterwards.
  StreamModels::Opened first_opened_;
  const size_t model_count_;
  // Models whose answer to the oldest message has come.
  size_t answered_ = 0;

  bool opened_once_ ABSL_GUARDED_BY(mutex_) = false;
  Window window_ ABSL_GUARDED_BY(mutex_);
  int64_t next_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t passes_ ABSL_GUARDED_BY(mutex_) = 0;
  StreamModels models_ ABSL_GUARDED_BY(mutex_);
};

namespace {

std::string ProducerId(const LearnOptions& options) {
  if (!options.numbered) return "";
  return options.producer_id.empty() ? RandomId() : options.producer_id;
}

std::vector<std::string> AllNames(std::string first, const LearnOptions& options) {
  std::vector<std::string> names = {std::move(first)};
  for (const std::string& name : options.additional_models) names.push_back(ModelName(name));
  return names;
}

}  // namespace

LearnStreamCore::LearnStreamCore(std::shared_ptr<Connection> connection, std::string model,
                                 LearnOptions options)
    : StreamWorker(options.retry, options.response_timeout),
      options_(std::move(options)),
      producer_id_(ProducerId(options_)),
      batch_(options_.rows_per_message, options_.bytes_per_message,
             MostAppended(NameTableSize(options_.name_table_size))),
      encoder_(options_.name_table_size, options_.compact, options_.bytes_per_message),
      server_(std::move(connection)),
      model_count_(1 + options_.additional_models.size()),
      models_(AllNames(std::move(model), options_), producer_id_) {}

absl::Status LearnStreamCore::Open() {
  Start();
  MutexLock lock(&mutex_);
  const auto opened = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return opened_once_ || ended_.has_value();
  };
  mutex_.Await(absl::Condition(&opened));
  return opened_once_ ? absl::OkStatus() : EndStatus();
}

absl::Status LearnStreamCore::EndStatus() const {
  if (!ended_->ok()) return *ended_;
  return absl::FailedPreconditionError("the stream is finished");
}

absl::Status LearnStreamCore::Send(std::shared_ptr<Outgoing> message) {
  MutexLock lock(&mutex_);
  const auto has_room = [this, bytes = message->bytes]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_.has_value() || window_.empty() ||
           (window_.size() < options_.window_messages &&
            window_.bytes() + bytes <= options_.window_bytes);
  };
  mutex_.Await(absl::Condition(&has_room));
  if (ended_.has_value()) return EndStatus();
  message->first_offset = next_offset_;
  if (numbered()) message->request.set_first_offset(next_offset_);
  next_offset_ += static_cast<int64_t>(message->tags.size());
  window_.Add(std::move(message));
  WakeWorker();
  return absl::OkStatus();
}

std::shared_ptr<Outgoing> LearnStreamCore::TakeBatch() {
  auto message = std::make_shared<Outgoing>();
  if (batch_.empty()) return message;
  message->bytes = batch_.bytes();
  message->tags = batch_.Take(message->request.mutable_columns(), &message->names);
  return message;
}

absl::Status LearnStreamCore::Push(const Row& row, uint64_t tag) {
  return batch_.Push(row, tag, [this] { return Flush(); });
}

absl::Status LearnStreamCore::Flush() { return batch_.empty() ? status() : Send(TakeBatch()); }

absl::StatusOr<perceptron::v1::PassSummary> LearnStreamCore::MarkPass() {
  std::shared_ptr<Outgoing> message = TakeBatch();
  int64_t number = 0;
  {
    MutexLock lock(&mutex_);
    number = ++passes_;
  }
  message->request.set_completed_pass(number);
  if (absl::Status status = Send(std::move(message)); !status.ok()) return status;
  MutexLock lock(&mutex_);
  const auto answered = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_.has_value() || window_.empty();
  };
  mutex_.Await(absl::Condition(&answered));
  if (!window_.empty()) return EndStatus();
  models_.OnMarked(number);
  return models_.last_pass(0);
}

absl::StatusOr<LearnTotals> LearnStreamCore::Finish() {
  if (!batch_.empty()) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  if (absl::Status status = WaitForEnd(); !status.ok()) return status;
  return totals(0);
}

LearnTotals LearnStreamCore::totals(size_t model) {
  MutexLock lock(&mutex_);
  LearnTotals totals = models_.totals(model);
  totals.reconnects = reconnects_;
  return totals;
}

std::optional<perceptron::v1::ConvergenceReport> LearnStreamCore::report(size_t model) {
  MutexLock lock(&mutex_);
  return models_.report(model);
}

perceptron::v1::PassSummary LearnStreamCore::last_pass(size_t model) {
  MutexLock lock(&mutex_);
  return models_.last_pass(model);
}

void LearnStreamCore::Prepare(grpc::ClientContext* context, Reactor* reactor) {
  server_.current().LearnStream(context, reactor);
}

std::shared_ptr<const perceptron::v1::LearnStreamRequest> LearnStreamCore::Rewind() {
  window_.Restart();
  auto first = std::make_shared<perceptron::v1::LearnStreamRequest>();
  models_.SetFirst(*first);
  first->set_result_detail(options_.result_detail);
  first->set_include_report(options_.include_report);
  first->set_name_table_size(encoder_.wanted_table_size());
  return first;
}

std::shared_ptr<const perceptron::v1::LearnStreamRequest> LearnStreamCore::NextToSend() {
  sending_ = window_.NextToSend();
  if (sending_ == nullptr) return nullptr;
  return {sending_, &sending_->request};
}

std::shared_ptr<const perceptron::v1::LearnStreamRequest> LearnStreamCore::Encode() {
  const perceptron::v1::LearnStreamRequest& message = sending_->request;
  if (!encoder_.Changes(message.columns())) return {sending_, &message};
  auto encoded = std::make_shared<perceptron::v1::LearnStreamRequest>();
  encoder_.Encode(message.columns(), sending_->names, encoded->mutable_columns());
  if (message.has_first_offset()) encoded->set_first_offset(message.first_offset());
  encoded->set_completed_pass(message.completed_pass());
  return encoded;
}

absl::Status LearnStreamCore::OnResponse(perceptron::v1::LearnStreamResponse* response) {
  if (response->has_opened()) {
    const absl::StatusOr<StreamModels::Opened> opened =
        StreamModels::ReadOpened(*response, model_count_);
    if (!opened.ok()) return opened.status();
    if (absl::Status status = OnOpened(*opened); !status.ok()) return status;
  }
  {
    // Before the result is counted, so that callers waiting for it find it.
    MutexLock lock(&mutex_);
    models_.SetReports(*response);
  }
  for (const perceptron::v1::LearnResult& result : response->results()) {
    if (absl::Status status = OnResult(result); !status.ok()) return status;
  }
  if (numbered() && server_.Prefer(response->writer_address())) {
    MutexLock lock(&mutex_);
    Move();
  }
  return absl::OkStatus();
}

absl::Status LearnStreamCore::OnOpened(const StreamModels::Opened& opened) {
  encoder_.StartConnection(opened.front().name_table_size());
  server_.OnReached();
  std::vector<std::shared_ptr<Outgoing>> settled;
  const size_t answered = std::exchange(answered_, 0);
  {
    MutexLock lock(&mutex_);
    if (!opened_once_) {
      const absl::StatusOr<StreamModels::Start> start = models_.Begin(opened, options_);
      if (!start.ok()) return start.status();
      next_offset_ = start->next_offset;
      passes_ = start->passes;
      first_opened_ = opened;
      opened_once_ = true;
    } else if (absl::Status status = models_.CheckSame(first_opened_, opened); !status.ok()) {
      return status;
    }
    if (numbered()) settled = window_.Settle(StreamModels::LeastOffset(opened));
    models_.OnOpened(opened);
    ready_ = true;
    for (const auto& message : settled) {
      for (size_t i = message == settled.front() ? answered : 0; i < model_count_; ++i)
        models_.AddLostAnswers(i, message->tags.size());
    }
  }
  if (options_.on_result) ReportLost(settled, answered);
  return absl::OkStatus();
}

void LearnStreamCore::ReportLost(const std::vector<std::shared_ptr<Outgoing>>& settled,
                                 size_t first) const {
  const perceptron::v1::LearnResult unknown;
  for (const auto& message : settled) {
    for (size_t i = message == settled.front() ? first : 0; i < model_count_; ++i)
      options_.on_result({message->tags, message->first_offset, unknown, true, i});
  }
}

absl::Status LearnStreamCore::OnResult(const perceptron::v1::LearnResult& result) {
  // The message that opens the stream has no rows.
  if (result.message_number() == 0) return absl::OkStatus();
  if (result.has_error()) return ToAbslStatus(result.error());
  std::shared_ptr<Outgoing> message;
  {
    MutexLock lock(&mutex_);
    message = window_.Oldest(result.message_number());
  }
  const size_t model = answered_;
  if (message == nullptr || result.model_number() != model) {
    return absl::InternalError(
        absl::StrCat("the server answered message ", result.message_number(), " out of order"));
  }
  // The callback runs before callers that wait for the answer.
  if (options_.on_result && !message->rows_settled) {
    options_.on_result({message->tags, message->first_offset, result, false, model});
  }
  answered_ = (model + 1) % model_count_;
  MutexLock lock(&mutex_);
  if (answered_ == 0) window_.RemoveOldest();
  models_.AddResult(model, result);
  return absl::OkStatus();
}

bool LearnStreamCore::MayRetry(const absl::Status& status) {
  // Waiting does not free producers, and unnumbered rows would break the exactly-once guarantee.
  if (ErrorReason(status) == "PRODUCER_LIMIT") return false;
  // Without numbers the results of the rows in flight, and of their pass, are unknown.
  if (!numbered() && opened_once_) return false;
  return IsTransient(status) || MayBeLostConnection(status);
}

void LearnStreamCore::OnDisconnect(const absl::Status& status) {
  server_.Reset();
  if (options_.on_reconnect) options_.on_reconnect(status);
}

void LearnStreamCore::OnEnd() {
  if (options_.on_end) options_.on_end();
}

absl::StatusOr<std::unique_ptr<LearnStream>> LearnStream::Open(
    std::shared_ptr<Connection> connection, std::string_view model, Options options) {
  if (absl::Status status = CheckLearnOptions(options); !status.ok()) return status;
  auto core = std::make_unique<LearnStreamCore>(std::move(connection), ModelName(model),
                                                std::move(options));
  if (absl::Status status = core->Open(); !status.ok()) return status;
  return std::unique_ptr<LearnStream>(new LearnStream(std::move(core)));
}

LearnStream::LearnStream(std::unique_ptr<LearnStreamCore> core) : core_(std::move(core)) {}
LearnStream::~LearnStream() = default;

absl::Status LearnStream::Push(const Row& row, uint64_t tag) { return core_->Push(row, tag); }
absl::Status LearnStream::Flush() { return core_->Flush(); }
absl::StatusOr<perceptron::v1::PassSummary> LearnStream::MarkPass() { return core_->MarkPass(); }
absl::StatusOr<LearnTotals> LearnStream::Finish() { return core_->Finish(); }
void LearnStream::Cancel() { core_->Cancel(); }
absl::Status LearnStream::status() const { return core_->status(); }
LearnTotals LearnStream::totals(size_t model) const { return core_->totals(model); }
std::optional<perceptron::v1::ConvergenceReport> LearnStream::report(size_t model) const {
  return core_->report(model);
}
perceptron::v1::PassSummary LearnStream::last_pass(size_t model) const {
  return core_->last_pass(model);
}
const perceptron::v1::StreamOpened& LearnStream::opened(size_t model) const {
  return core_->opened(model);
}
const std::string& LearnStream::producer_id() const { return core_->producer_id(); }

}  // namespace perceptrond::client
