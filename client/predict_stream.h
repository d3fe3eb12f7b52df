// PredictStream: predictions for many rows, pipelined.
//
//   PredictStream::Options options;
//   options.on_answer = [](const PredictStream::Answer& answer) { ... };
//   PredictStream stream(client->connection(), "iris", std::move(options));
//   while (read(&row)) if (absl::Status s = stream.Push(row); !s.ok()) ...
//   absl::Status status = stream.Finish();
//
// Predictions change nothing, so after a lost connection the stream reconnects and sends unanswered
// messages again, until the retry policy gives up.
//
// Threads: Push, Flush and Finish from one thread at a time; Cancel from any. The callbacks run on
// the stream's own thread, in the order of the rows; they must not call the stream. The destructor
// cancels a stream that was not finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/retry.h"
#include "client/row.h"

namespace perceptrond::client {

class PredictStreamCore;

// The answer to one message.
struct PredictAnswer {
  // The tags of its rows, as given to Push().
  const std::vector<uint64_t>& tags;
  // One score and label per tag; response.errors has the rows with validation errors, by their
  // index in tags.
  const perceptron::v1::PredictResponse& response;
};

struct PredictOptions {
  // These six have the meaning of LearnOptions' fields of the same name.
  size_t rows_per_message = 512;
  size_t bytes_per_message = 1 << 20;
  size_t window_messages = 64;
  size_t window_bytes = 32 << 20;
  uint32_t name_table_size = 1 << 16;
  bool compact = false;
  // Oldest acceptable revision; the stream ends with ABORTED (REVISION_TOO_OLD) if the model is
  // older. Default 0: any.
  int64_t min_revision = 0;
  // Multiclass models: request the scores of all classes. Default false.
  bool include_class_scores = false;
  // Have the server keep the features until their labels come, and answer with prediction_ids, by
  // which they are then learned. After a lost connection the server may keep some twice, until they
  // expire. Default false.
  bool include_prediction_ids = false;
  // Refuse rows that have names without a weight, as validation errors (UNKNOWN_FEATURES_REFUSE). Default
  // false: they add nothing to the score.
  bool refuse_unknown_features = false;
  // These two have the meaning of LearnOptions' fields of the same name.
  RetryPolicy retry;
  absl::Duration response_timeout = absl::Minutes(1);
  // Called with each answer. Required.
  std::function<void(const PredictAnswer&)> on_answer;
  // See LearnOptions::on_reconnect.
  std::function<void(const absl::Status&)> on_reconnect;
  std::function<void()> on_end;
};

class PredictStream {
 public:
  using Options = PredictOptions;
  using Answer = PredictAnswer;

  // Connects; errors are returned by Push, Flush or Finish.
  PredictStream(std::shared_ptr<Connection> connection, std::string_view model, Options options);
  ~PredictStream();
  PredictStream(const PredictStream&) = delete;
  PredictStream& operator=(const PredictStream&) = delete;

  // Queues a copy of the row; its answer has `tag`. Blocks while the window is full, and until the stream is open.
  // INVALID_ARGUMENT while status() is OK: the row is malformed and was not queued; the stream continues. Other errors:
  // the stream has failed.
  absl::Status Push(const Row& row, uint64_t tag = 0);
  // Sends the gathered rows now. Errors: the stream has failed.
  absl::Status Flush();
  // Flushes, waits for all answers, and ends the stream. Call at most once.
  absl::Status Finish();
  // Cancels the stream: blocked calls return CANCELLED.
  void Cancel();
  // OK while the stream is open or after a successful Finish(), else the error that ended it.
  absl::Status status() const;

 private:
  std::unique_ptr<PredictStreamCore> core_;
};

}  // namespace perceptrond::client
