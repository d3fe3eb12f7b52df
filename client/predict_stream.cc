#include "client/predict_stream.h"

#include <deque>
#include <string>
#include <utility>

#include "client/batch_builder.h"
#include "client/error.h"
#include "client/names.h"
#include "client/stream_worker.h"

namespace perceptrond::client {
namespace {

struct Asked {
  perceptron::v1::PredictRequest request;
  std::vector<uint64_t> tags;
  size_t bytes = 0;
};

}  // namespace

class PredictStreamCore final
    : public StreamWorker<perceptron::v1::PredictRequest, perceptron::v1::PredictResponse> {
 public:
  PredictStreamCore(std::shared_ptr<Connection> connection, std::string model,
                    PredictOptions options)
      : StreamWorker(options.retry, options.patience),
        connection_(std::move(connection)),
        model_(std::move(model)),
        options_(std::move(options)) {
    Start();
  }
  ~PredictStreamCore() override { Stop(); }

  absl::Status SendBatch() ABSL_LOCKS_EXCLUDED(mutex_) {
    auto message = std::make_shared<Asked>();
    message->bytes = batch.bytes();
    // Any of them may be the first on its connection, so each names the model.
    message->request.set_model(model_);
    message->request.set_min_revision(options_.min_revision);
    message->request.set_all_scores(options_.all_scores);
    batch.Build(message->request.mutable_columns());
    message->tags = std::move(tags);
    tags.clear();
    MonitorLock lock(&mutex_);
    while (!ended_.has_value() && !asked_.empty() &&
           (asked_.size() >= options_.window_messages ||
            bytes_ + message->bytes > options_.window_bytes)) {
      mutex_.Wait();
    }
    if (ended_.has_value()) return Failure();
    bytes_ += message->bytes;
    asked_.push_back(std::move(message));
    mutex_.NotifyAll();
    return absl::OkStatus();
  }

  absl::Status FinishAndWait() ABSL_LOCKS_EXCLUDED(mutex_) {
    MonitorLock lock(&mutex_);
    finishing_ = true;
    mutex_.NotifyAll();
    while (!ended_.has_value()) mutex_.Wait();
    return *ended_;
  }

  void Cancel() { BreakOff(); }

  const PredictOptions& options() const { return options_; }

  // The batch being gathered belongs to the caller's thread.
  BatchBuilder batch;
  std::vector<uint64_t> tags;

 private:
  void Prepare(grpc::ClientContext* context, Reactor* reactor) override {
    connection_->PredictStream(context, reactor);
  }

  std::shared_ptr<const perceptron::v1::PredictRequest> Rewind() override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    sent_ = 0;
    return nullptr;
  }

  std::shared_ptr<const perceptron::v1::PredictRequest> NextToSend() override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (sent_ == asked_.size()) return nullptr;
    const std::shared_ptr<Asked>& next = asked_[sent_++];
    return {next, &next->request};
  }

  bool Unanswered() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !asked_.empty(); }

  absl::Status OnResponse(perceptron::v1::PredictResponse* response) override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (response->has_error()) return ToAbslStatus(response->error());
    std::shared_ptr<Asked> message;
    {
      MonitorLock lock(&mutex_);
      if (sent_ == 0) return absl::InternalError("the server answered what it was not asked");
      message = asked_.front();
    }
    const auto rows = static_cast<int>(message->tags.size());
    if (response->scores_size() != rows || response->labels_size() != rows) {
      return absl::InternalError("the server answered another number of rows than it was asked");
    }
    options_.on_answer({message->tags, *response});
    MonitorLock lock(&mutex_);
    asked_.pop_front();
    --sent_;
    bytes_ -= message->bytes;
    mutex_.NotifyAll();
    return absl::OkStatus();
  }

  bool MayRetry(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return IsTransient(status);
  }

  void OnBroken(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (options_.on_reconnect) options_.on_reconnect(status);
  }

  void OnEnd() override ABSL_LOCKS_EXCLUDED(mutex_) {
    if (options_.on_end) options_.on_end();
  }

  absl::Status Failure() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_->ok() ? absl::FailedPreconditionError("the stream is finished") : *ended_;
  }

  const std::shared_ptr<Connection> connection_;
  const std::string model_;
  const PredictOptions options_;

  std::deque<std::shared_ptr<Asked>> asked_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

PredictStream::PredictStream(std::shared_ptr<Connection> connection, std::string_view model,
                             Options options)
    : core_(std::make_unique<PredictStreamCore>(std::move(connection), ModelName(model),
                                                std::move(options))) {}
PredictStream::~PredictStream() = default;

absl::Status PredictStream::Push(const Row& row, uint64_t tag) {
  if (!core_->batch.Fits(row)) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  if (absl::Status status = core_->batch.Add(row); !status.ok()) return status;
  core_->tags.push_back(tag);
  if (core_->batch.rows() >= core_->options().rows_per_message ||
      core_->batch.bytes() >= core_->options().bytes_per_message) {
    return Flush();
  }
  return absl::OkStatus();
}

absl::Status PredictStream::Flush() {
  return core_->batch.empty() ? absl::OkStatus() : core_->SendBatch();
}

absl::Status PredictStream::Finish() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  return core_->FinishAndWait();
}

void PredictStream::Cancel() { core_->Cancel(); }

}  // namespace perceptrond::client
