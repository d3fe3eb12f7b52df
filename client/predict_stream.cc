#include "client/predict_stream.h"

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "client/batch_builder.h"
#include "client/connection.h"
#include "client/error.h"
#include "client/message_encoder.h"
#include "client/stream_worker.h"

namespace perceptrond::client {
namespace {

constexpr char kTooCostly[] = "MESSAGE_TOO_COSTLY";

// One of the rows to predict, as a message of its own.
perceptron::v1::ExampleColumns RowOf(const perceptron::v1::ExampleColumns& rows, int row) {
  perceptron::v1::ExampleColumns one;
  if (rows.has_feature_names()) *one.mutable_feature_names() = rows.feature_names();
  if (row < rows.texts_size()) one.add_texts(rows.texts(row));
  if (row < rows.prediction_ids_size()) one.add_prediction_ids(rows.prediction_ids(row));
  if (row < rows.weights_size()) one.add_weights(rows.weights(row));
  one.set_dense_width(rows.dense_width());
  const int width = static_cast<int>(rows.dense_width());
  int begin = row * width;
  int end = begin + width;
  if (row < rows.row_ends_size()) {
    begin = row == 0 ? 0 : static_cast<int>(rows.row_ends(row - 1));
    end = static_cast<int>(rows.row_ends(row));
    one.add_row_ends(static_cast<uint32_t>(end - begin));
    one.mutable_indices()->Add(rows.indices().begin() + begin, rows.indices().begin() + end);
  }
  if (!rows.values().empty())
    one.mutable_values()->Add(rows.values().begin() + begin, rows.values().begin() + end);
  return one;
}

}  // namespace

class PredictStreamCore final
    : public StreamWorker<perceptron::v1::PredictRequest, perceptron::v1::PredictResponse> {
 public:
  PredictStreamCore(std::shared_ptr<Connection> connection, std::string model,
                    PredictOptions options)
      : StreamWorker(options.retry, options.response_timeout),
        connection_(std::move(connection)),
        model_(std::move(model)),
        options_(std::move(options)),
        batch_(options_.rows_per_message, options_.bytes_per_message,
               MostAppended(NameTableSize(options_.name_table_size))),
        encoder_(options_.name_table_size, options_.compact, options_.bytes_per_message) {
    Start();
  }
  ~PredictStreamCore() override { Stop(); }

  absl::Status status() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return ended_.value_or(absl::OkStatus());
  }

  absl::Status Push(const Row& row, uint64_t tag) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!knows_limit_) {
      MutexLock lock(&mutex_);
      const auto opened = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return most_bytes_.has_value() || ended_.has_value();
      };
      mutex_.Await(absl::Condition(&opened));
      if (!most_bytes_.has_value()) return Failure();
      if (*most_bytes_ > 0) batch_.SetMostBytes(*most_bytes_);
      knows_limit_ = true;
    }
    return batch_.Push(row, tag, [this] { return Flush(); });
  }

  absl::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (batch_.empty()) return absl::OkStatus();
    auto message = std::make_shared<Question>();
    message->bytes = batch_.bytes();
    // Each message names the model, because any may be the first of a connection.
    message->request.set_model(model_);
    message->request.set_min_revision(options_.min_revision);
    message->request.set_include_class_scores(options_.include_class_scores);
    message->request.set_include_prediction_ids(options_.include_prediction_ids);
    if (options_.refuse_unknown_features)
      message->request.set_unknown_features(perceptron::v1::UNKNOWN_FEATURES_REFUSE);
    message->tags = batch_.Take(message->request.mutable_columns(), &message->names);
    MutexLock lock(&mutex_);
    const auto has_room = [this, bytes = message->bytes]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ended_.has_value() || unanswered_.empty() ||
             (unanswered_.size() < options_.window_messages &&
              bytes_ + bytes <= options_.window_bytes);
    };
    mutex_.Await(absl::Condition(&has_room));
    if (ended_.has_value()) return Failure();
    bytes_ += message->bytes;
    unanswered_.push_back(std::move(message));
    WakeWorker();
    return absl::OkStatus();
  }

  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (absl::Status status = Flush(); !status.ok()) return status;
    return WaitForEnd();
  }

  void Cancel() { CancelStream(); }

 private:
  // A message of rows to predict.
  struct Question {
    // Its indices of named rows are numbers of `names` until MessageEncoder sends it.
    perceptron::v1::PredictRequest request;
    NameNumbers names;
    std::vector<uint64_t> tags;
    size_t bytes = 0;
  };

  void Prepare(grpc::ClientContext* context, Reactor* reactor) override {
    connection_->PredictStream(context, reactor);
  }

  std::shared_ptr<const perceptron::v1::PredictRequest> Rewind() override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    sent_ = 0;
    // The answer says what table there is, and how large messages may be.
    auto opening = std::make_shared<perceptron::v1::PredictRequest>();
    opening->set_model(model_);
    opening->set_name_table_size(encoder_.wanted_table_size());
    return opening;
  }

  std::shared_ptr<const perceptron::v1::PredictRequest> NextToSend() override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (sent_ == unanswered_.size()) return nullptr;
    sending_ = unanswered_[sent_++];
    return {sending_, &sending_->request};
  }

  std::shared_ptr<const perceptron::v1::PredictRequest> Encode() override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    const perceptron::v1::PredictRequest& message = sending_->request;
    if (!encoder_.Changes(message.columns())) return {sending_, &message};
    auto encoded = std::make_shared<perceptron::v1::PredictRequest>();
    encoder_.Encode(message.columns(), sending_->names, encoded->mutable_columns());
    encoded->set_model(message.model());
    encoded->set_min_revision(message.min_revision());
    encoded->set_include_class_scores(message.include_class_scores());
    encoded->set_include_prediction_ids(message.include_prediction_ids());
    encoded->set_unknown_features(message.unknown_features());
    return encoded;
  }

  bool Unanswered() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !unanswered_.empty();
  }

  absl::Status OnResponse(perceptron::v1::PredictResponse* response) override
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (response->has_error()) return ToAbslStatus(response->error());
    std::shared_ptr<Question> message;
    {
      MutexLock lock(&mutex_);
      if (!ready_) {
        most_bytes_ = static_cast<size_t>(response->max_message_bytes());
        encoder_.StartConnection(response->name_table_size(), *most_bytes_);
        named_model_ = std::move(*response->mutable_model());
        ready_ = true;
        return absl::OkStatus();
      }
      if (sent_ == 0) return absl::InternalError("the server sent an answer without a question");
      message = unanswered_.front();
    }
    const auto rows = static_cast<int>(message->tags.size());
    if (response->scores_size() != rows || response->predicted_labels_size() != rows) {
      return absl::InternalError("the answer and its message differ in the number of rows");
    }
    if (response->model().empty()) response->set_model(named_model_);
    named_model_.clear();
    options_.on_answer({message->tags, *response});
    MutexLock lock(&mutex_);
    unanswered_.pop_front();
    --sent_;
    bytes_ -= message->bytes;
    return absl::OkStatus();
  }

  bool MayRetry(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return IsTransient(status);
  }

  bool AskForLess(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ErrorReason(status) != kTooCostly || unanswered_.empty() ||
        unanswered_.front()->tags.size() < 2)
      return encoder_.AskForLess(status);
    SplitOldest();
    return true;
  }
  // Makes a message of each of its rows.
  void SplitOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::shared_ptr<Question> whole = unanswered_.front();
    unanswered_.pop_front();
    bytes_ -= whole->bytes;
    perceptron::v1::PredictRequest settings = whole->request;
    settings.clear_columns();
    for (int row = static_cast<int>(whole->tags.size()) - 1; row >= 0; --row) {
      auto one = std::make_shared<Question>();
      one->request = settings;
      *one->request.mutable_columns() = RowOf(whole->request.columns(), row);
      one->names = whole->names;
      one->tags = {whole->tags[static_cast<size_t>(row)]};
      one->bytes = whole->bytes / whole->tags.size();
      bytes_ += one->bytes;
      unanswered_.push_front(std::move(one));
    }
  }

  void OnDisconnect(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_) {
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
  // Belong to the caller's thread.
  RowBatch batch_;
  bool knows_limit_ = false;

  // The worker's.
  MessageEncoder encoder_;
  // The result of the last NextToSend().
  std::shared_ptr<Question> sending_;
  // The model that the connection's opening named, for the first answer to rows.
  std::string named_model_;

  std::deque<std::shared_ptr<Question>> unanswered_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  // The server accepts no larger message; 0: it does not say. Absent until a connection was opened.
  std::optional<size_t> most_bytes_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

PredictStream::PredictStream(std::shared_ptr<Connection> connection, std::string_view model,
                             Options options)
    : core_(std::make_unique<PredictStreamCore>(std::move(connection), ModelName(model),
                                                std::move(options))) {}
PredictStream::~PredictStream() = default;

absl::Status PredictStream::Push(const Row& row, uint64_t tag) { return core_->Push(row, tag); }
absl::Status PredictStream::Flush() { return core_->Flush(); }
absl::Status PredictStream::Finish() { return core_->Finish(); }
void PredictStream::Cancel() { core_->Cancel(); }
absl::Status PredictStream::status() const { return core_->status(); }

}  // namespace perceptrond::client
