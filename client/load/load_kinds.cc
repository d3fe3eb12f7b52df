// The kinds of load: learn streams, predict streams and unary calls.
#include <utility>

#include "client/batch_builder.h"
#include "client/connection.h"
#include "client/learn_stream.h"
#include "client/load/load.h"
#include "client/predict_stream.h"

namespace perceptrond::client {
namespace {

template <typename Stream>
absl::Status SendMessage(Stream& stream, SyntheticRows& rows, size_t count, uint64_t tag) {
  for (size_t i = 0; i < count; ++i) {
    if (absl::Status status = stream.Push(rows.Next(), tag); !status.ok()) return status;
  }
  return stream.Flush();
}

// The options common to both kinds of stream.
template <typename Options>
Options StreamOptions(const LoadOptions& load) {
  Options options;
  options.rows_per_message = load.rows_per_message;
  options.window_messages = load.window;
  options.compact = load.compact;
  options.retry = load.retry;
  options.response_timeout = load.response_timeout;
  return options;
}

class LearnLoad final : public Load {
 public:
  LearnLoad(const Client& client, const LoadOptions& options, const SyntheticRowsOptions& rows)
      : Load(options, rows), client_(client) {}

 private:
  absl::Status Open() override {
    auto options = StreamOptions<LearnOptions>(options_);
    options.numbered = options_.numbered;
    options.on_result = [this](const LearnAnswer& answer) {
      LoadTally tally;
      if (answer.lost) {
        tally.lost = answer.tags.size();
      } else {
        tally.messages = 1;
        tally.examples = answer.result.examples();
        tally.mistakes = answer.result.mistakes();
        tally.updates = answer.result.updates();
        tally.row_errors = static_cast<uint64_t>(answer.result.row_errors_size());
      }
      OnAnswer(answer.tags.front(), tally);
    };
    options.on_reconnect = [this](const absl::Status&) { OnDisconnect(); };
    options.on_end = [this] { OnEnd(); };
    auto stream = LearnStream::Open(client_.connection(), options_.model, std::move(options));
    if (!stream.ok()) return stream.status();
    stream_ = *std::move(stream);
    return absl::OkStatus();
  }
  absl::Status Send(uint64_t tag) override {
    return SendMessage(*stream_, rows_, options_.rows_per_message, tag);
  }
  absl::Status Finish() override { return stream_->Finish().status(); }
  void CancelStream() override { stream_->Cancel(); }

  const Client client_;
  std::unique_ptr<LearnStream> stream_;
};

class PredictLoad final : public Load {
 public:
  PredictLoad(const Client& client, const LoadOptions& options, const SyntheticRowsOptions& rows)
      : Load(options, rows), client_(client) {}

 private:
  absl::Status Open() override {
    auto options = StreamOptions<PredictOptions>(options_);
    options.on_answer = [this](const PredictAnswer& answer) {
      LoadTally tally;
      tally.messages = 1;
      tally.row_errors = static_cast<uint64_t>(answer.response.row_errors_size());
      tally.examples = answer.tags.size() - tally.row_errors;
      OnAnswer(answer.tags.front(), tally);
    };
    options.on_reconnect = [this](const absl::Status&) { OnDisconnect(); };
    options.on_end = [this] { OnEnd(); };
    stream_ =
        std::make_unique<PredictStream>(client_.connection(), options_.model, std::move(options));
    return absl::OkStatus();
  }
  absl::Status Send(uint64_t tag) override {
    return SendMessage(*stream_, rows_, options_.rows_per_message, tag);
  }
  absl::Status Finish() override { return stream_->Finish(); }
  void CancelStream() override { stream_->Cancel(); }

  const Client client_;
  std::unique_ptr<PredictStream> stream_;
};

// A single attempt per call, limited by response_timeout; CallLoad retries.
ClientOptions AttemptOptions(const LoadOptions& load) {
  ClientOptions options;
  options.timeout = load.response_timeout;
  options.retry.give_up_after = absl::ZeroDuration();
  return options;
}

class CallLoad final : public Load {
 public:
  CallLoad(const Client& client, const LoadOptions& options, const SyntheticRowsOptions& rows)
      : Load(options, rows),
        client_(client.connection(), AttemptOptions(options)),
        retry_(Reconnecting(options.retry, client.connection())) {}

 private:
  absl::Status Send(uint64_t tag) override {
    BatchBuilder batch;
    for (size_t i = 0; i < options_.rows_per_message; ++i) {
      if (absl::Status status = batch.Add(rows_.Next()); !status.ok()) return status;
    }
    v1::ExampleColumns columns;
    batch.Build(&columns);
    const absl::Status status = CallWithRetry(retry_, true, [&] { return TryOnce(columns); });
    if (IsTransient(status)) return WithGaveUpAfter(status, retry_.give_up_after);
    if (!status.ok()) return status;
    LoadTally tally;
    tally.messages = 1;
    tally.examples = options_.rows_per_message;
    OnAnswer(tag, tally);
    return absl::OkStatus();
  }

  absl::Status TryOnce(const v1::ExampleColumns& columns) {
    absl::Status status = client_.Predict(options_.model, columns).status();
    if (!IsTransient(status)) return status;
    OnDisconnect();
    return stopped() ? absl::CancelledError("stopped while the connection was lost") : status;
  }

  const Client client_;
  const RetryPolicy retry_;
};

}  // namespace

std::unique_ptr<Load> MakeLearnLoad(const Client& client, const LoadOptions& options,
                                    const SyntheticRowsOptions& rows) {
  return std::make_unique<LearnLoad>(client, options, rows);
}

std::unique_ptr<Load> MakePredictLoad(const Client& client, const LoadOptions& options,
                                      const SyntheticRowsOptions& rows) {
  return std::make_unique<PredictLoad>(client, options, rows);
}

std::unique_ptr<Load> MakeCallLoad(const Client& client, const LoadOptions& options,
                                   const SyntheticRowsOptions& rows) {
  return std::make_unique<CallLoad>(client, options, rows);
}

}  // namespace perceptrond::client
