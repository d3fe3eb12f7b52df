// PredictStream: predictions for many rows, pipelined: the next messages are on their way while
// answers come back.
//
// Predictions change nothing, so a broken connection is no matter: the stream reconnects and asks
// again for what was not answered, until the retry policy gives up.
//
// Threads: Push, Flush and Finish from one thread at a time. Cancel from any. The callbacks run on
// the stream's own thread, in the order of the rows, and must not call back into the stream. The
// destructor breaks off what was not finished.
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
  // One score and label a tag; response.errors names refused rows by their position in tags.
  const perceptron::v1::PredictResponse& response;
};

struct PredictOptions {
  // As LearnOptions has them.
  size_t rows_per_message = 512;
  size_t bytes_per_message = 1 << 20;
  size_t window_messages = 64;
  size_t window_bytes = 32 << 20;
  // Refuse answers from an older state: the stream then ends with ABORTED (REVISION_TOO_OLD).
  // Default 0: any.
  int64_t min_revision = 0;
  // Of models of several classes: every class's score.
  bool all_scores = false;
  RetryPolicy retry;
  absl::Duration patience = absl::Minutes(1);
  // Required.
  std::function<void(const PredictAnswer&)> on_answer;
  // As LearnOptions has them.
  std::function<void(const absl::Status&)> on_reconnect;
  std::function<void()> on_end;
};

class PredictStream {
 public:
  using Options = PredictOptions;
  using Answer = PredictAnswer;

  // Connects with the first message, so errors come from Push, Flush or Finish.
  PredictStream(std::shared_ptr<Connection> connection, std::string_view model, Options options);
  ~PredictStream();
  PredictStream(const PredictStream&) = delete;
  PredictStream& operator=(const PredictStream&) = delete;

  // Takes a copy of the row. Blocks while the window is full. INVALID_ARGUMENT: the row is
  // malformed and was not taken. Anything else: the stream has failed with that error.
  absl::Status Push(const Row& row, uint64_t tag = 0);
  // Sends what is gathered without waiting for more.
  absl::Status Flush();
  // Flushes, waits until all is answered, ends the stream.
  absl::Status Finish();
  // Breaks the stream off: calls that block return CANCELLED.
  void Cancel();

 private:
  std::unique_ptr<PredictStreamCore> core_;
};

}  // namespace perceptrond::client
