#include "client/learn_stream.h"

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "client/batch_builder.h"
#include "client/connection.h"
#include "client/error.h"
#include "client/message_encoder.h"
#include "client/stream_worker.h"
#include "client/window.h"

namespace perceptrond::client {

// Which of several servers a stream goes to: the one that the channel chooses, or the writer of its model,
// once an answer has named it. Not thread-safe.
class PreferredServer {
 public:
  explicit PreferredServer(std::shared_ptr<Connection> any) : any_(std::move(any)) {}

  Connection& current() const { return preferred_ != nullptr ? *preferred_ : *any_; }
  // Prefers the server of this address. False if it is none of the connection's, or was named last and
  // could not be reached. May block.
  bool Prefer(const std::string& address) {
    if (address.empty() || address == std::exchange(unreached_, address)) return false;
    preferred_ = any_->ConnectTo(address);
    return preferred_ != nullptr;
  }
  // The server has opened the stream.
  void OnReached() {
    if (preferred_ != nullptr) unreached_.clear();
  }
  // The connection was lost: any server will do.
  void Reset() { preferred_.reset(); }

 private:
  const std::shared_ptr<Connection> any_;
  std::shared_ptr<Connection> preferred_;
  // The address that was named last, until it is reached.
  std::string unreached_;
};

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
  LearnTotals totals() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<perceptron::v1::ConvergenceReport> report() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return report_;
  }
  // Constant once Open() returned OK.
  const perceptron::v1::StreamOpened& opened() const { return first_opened_; }
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

  absl::Status OnOpened(const perceptron::v1::StreamOpened& opened) ABSL_LOCKS_EXCLUDED(mutex_);
  // Begins where the options and the first connection say. OUT_OF_RANGE (OFFSET_GAP).
  absl::Status Begin(const perceptron::v1::StreamOpened& opened)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a later connection. ABORTED (MODEL_REPLACED); DATA_LOSS (POSITION_LOST).
  absl::Status CheckSame(const perceptron::v1::StreamOpened& opened) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Everything below the opened offset is learned.
  void Acknowledge(const perceptron::v1::StreamOpened& opened)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const perceptron::v1::LearnResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The largest revision received, and the epoch received with it.
  void ClaimState(int64_t revision, int64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto state =
        std::max(std::pair(claim_.acknowledged_revision(), claim_.acknowledged_epoch()),
                 std::pair(revision, epoch));
    claim_.set_acknowledged_revision(state.first);
    claim_.set_acknowledged_epoch(state.second);
  }
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
  perceptron::v1::StreamOpened first_opened_;

  bool opened_once_ ABSL_GUARDED_BY(mutex_) = false;
  Window window_ ABSL_GUARDED_BY(mutex_);
  int64_t next_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t passes_ ABSL_GUARDED_BY(mutex_) = 0;
  // As the caller names the model; once a connection was opened, as the server does.
  std::string model_ ABSL_GUARDED_BY(mutex_);
  LearnTotals totals_ ABSL_GUARDED_BY(mutex_);
  // What a later connection claims, but for the offset.
  perceptron::v1::Producer::Resume claim_ ABSL_GUARDED_BY(mutex_);
  perceptron::v1::PassSummary last_pass_ ABSL_GUARDED_BY(mutex_);
  std::optional<perceptron::v1::ConvergenceReport> report_ ABSL_GUARDED_BY(mutex_);
};

namespace {

std::string ProducerId(const LearnOptions& options) {
  if (!options.numbered) return "";
  return options.producer_id.empty() ? RandomId() : options.producer_id;
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
      model_(std::move(model)) {}

absl::Status LearnStreamCore::Open() {
  Start();
  MutexLock lock(&mutex_);
  const auto opened = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return opened_once_ || ended_.has_value();
  };
  mutex_.Await(absl::Condition(&opened));
  if (!opened_once_) return EndStatus();
  if (first_opened_.max_message_bytes() > 0)
    batch_.SetMostBytes(static_cast<size_t>(first_opened_.max_message_bytes()));
  return absl::OkStatus();
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
  if (last_pass_.number() != number) {
    last_pass_.Clear();
    last_pass_.set_number(number);
  }
  return last_pass_;
}

absl::StatusOr<LearnTotals> LearnStreamCore::Finish() {
  if (!batch_.empty()) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  if (absl::Status status = WaitForEnd(); !status.ok()) return status;
  return totals();
}

LearnTotals LearnStreamCore::totals() {
  MutexLock lock(&mutex_);
  LearnTotals totals = totals_;
  totals.reconnects = reconnects_;
  return totals;
}

void LearnStreamCore::Prepare(grpc::ClientContext* context, Reactor* reactor) {
  server_.current().LearnStream(context, reactor);
}

std::shared_ptr<const perceptron::v1::LearnStreamRequest> LearnStreamCore::Rewind() {
  window_.Restart();
  auto first = std::make_shared<perceptron::v1::LearnStreamRequest>();
  first->set_model(model_);
  if (numbered()) first->mutable_producer()->set_id(producer_id_);
  if (totals_.acknowledged_offset >= 0) {
    *first->mutable_producer()->mutable_resume() = claim_;
    first->mutable_producer()->mutable_resume()->set_acknowledged_offset(
        totals_.acknowledged_offset);
  }
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
    if (absl::Status status = OnOpened(response->opened()); !status.ok()) return status;
  }
  if (response->has_report()) {
    // Before the result is counted, so that callers waiting for it find it.
    MutexLock lock(&mutex_);
    report_ = std::move(*response->mutable_report());
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

absl::Status LearnStreamCore::OnOpened(const perceptron::v1::StreamOpened& opened) {
  encoder_.StartConnection(opened.name_table_size(),
                           static_cast<size_t>(opened.max_message_bytes()));
  server_.OnReached();
  std::vector<std::shared_ptr<Outgoing>> settled;
  {
    MutexLock lock(&mutex_);
    absl::Status status = opened_once_ ? CheckSame(opened) : Begin(opened);
    if (!status.ok()) return status;
    if (numbered()) settled = window_.Settle(opened.next_offset());
    for (const auto& message : settled) totals_.lost_answers += message->tags.size();
    Acknowledge(opened);
    ready_ = true;
  }
  if (!options_.on_result) return absl::OkStatus();
  const perceptron::v1::LearnResult unknown;
  for (const auto& message : settled)
    options_.on_result({message->tags, message->first_offset, unknown, true});
  return absl::OkStatus();
}

absl::Status LearnStreamCore::Begin(const perceptron::v1::StreamOpened& opened) {
  next_offset_ = options_.start_offset.value_or(opened.next_offset());
  if (numbered() && next_offset_ > opened.next_offset()) {
    return MakeError(absl::StatusCode::kOutOfRange, "OFFSET_GAP",
                     absl::StrCat("the first example would have offset ", next_offset_,
                                  ", but the server expects ", opened.next_offset(),
                                  " next from producer \"", producer_id_, "\""));
  }
  const bool from_start = options_.start_offset == 0;
  passes_ = options_.passes_before.value_or(from_start ? 0 : opened.passes());
  first_opened_ = opened;
  opened_once_ = true;
  return absl::OkStatus();
}

absl::Status LearnStreamCore::CheckSame(const perceptron::v1::StreamOpened& opened) const {
  if (opened.model_uid() != first_opened_.model_uid()) {
    return MakeError(absl::StatusCode::kAborted, "MODEL_REPLACED",
                     absl::StrCat(model_,
                                  " was deleted and created again while examples were "
                                  "being sent to it"));
  }
  if (numbered() && opened.next_offset() <= totals_.acknowledged_offset) {
    return MakeError(
        absl::StatusCode::kDataLoss, "POSITION_LOST",
        absl::StrCat("the server acknowledged examples through ", totals_.acknowledged_offset,
                     " but now expects ", opened.next_offset()));
  }
  return absl::OkStatus();
}

void LearnStreamCore::Acknowledge(const perceptron::v1::StreamOpened& opened) {
  if (numbered())
    totals_.acknowledged_offset = std::max(totals_.acknowledged_offset, opened.next_offset() - 1);
  totals_.revision = std::max(totals_.revision, opened.revision());
  // Later connections stay on the model of an alias.
  if (!opened.model().empty()) model_ = opened.model();
  claim_.set_model_uid(opened.model_uid());
  ClaimState(opened.revision(), opened.epoch());
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
  if (message == nullptr) {
    return absl::InternalError(
        absl::StrCat("the server answered message ", result.message_number(), " out of order"));
  }
  // The callback runs before callers that wait for the answer.
  if (options_.on_result && !message->rows_settled)
    options_.on_result({message->tags, message->first_offset, result, false});
  MutexLock lock(&mutex_);
  window_.RemoveOldest();
  Count(result);
  return absl::OkStatus();
}

void LearnStreamCore::Count(const perceptron::v1::LearnResult& result) {
  totals_.examples += result.examples();
  totals_.mistakes += result.mistakes();
  totals_.updates += result.updates();
  totals_.duplicates += result.duplicates();
  totals_.row_errors += static_cast<uint64_t>(result.row_errors_size());
  totals_.revision = result.revision();
  ClaimState(result.revision(), result.epoch());
  if (numbered()) {
    totals_.acknowledged_offset =
        std::max(totals_.acknowledged_offset, result.acknowledged_offset());
  }
  if (result.has_completed_pass()) last_pass_ = result.completed_pass();
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
LearnTotals LearnStream::totals() const { return core_->totals(); }
std::optional<perceptron::v1::ConvergenceReport> LearnStream::report() const {
  return core_->report();
}
const perceptron::v1::StreamOpened& LearnStream::opened() const { return core_->opened(); }
const std::string& LearnStream::producer_id() const { return core_->producer_id(); }

}  // namespace perceptrond::client
