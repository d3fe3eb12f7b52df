// LearnStream: sends examples to a model as fast as the server accepts them; each is learned
// exactly once.
//
//   LearnStream::Options options;
//   options.on_result = [](const LearnStream::Answer& answer) { ... };
//   auto stream = LearnStream::Open(client.connection(), "iris", std::move(options));
//   if (!stream.ok()) ...
//   while (read(&row)) if (absl::Status s = (*stream)->Push(row); !s.ok()) ...
//   absl::StatusOr<v1::PassSummary> pass = (*stream)->MarkPass();
//   absl::StatusOr<LearnStream::Totals> totals = (*stream)->Finish();
//
// Rows are gathered into messages, and messages wait in a bounded window for their answers; Push()
// blocks while the window is full. A numbered stream (the default) survives a lost connection and a
// crash of the server: it reconnects, asks for the producer's position, and sends the rows after it
// again. No row is lost and none is learned twice.
//
// If a message was learned but its answer was lost, its rows are reported as an Answer with `lost`
// set: each was learned exactly once, but their results are unknown.
//
// Threads: Push, Flush, MarkPass and Finish from one thread at a time; Cancel, status, totals and
// report from any. on_result, on_reconnect and on_end run on the stream's own thread, one at a
// time, in the order of the rows; they must not call the stream. The destructor cancels a stream
// that was not finished.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/retry.h"
#include "client/row.h"

namespace perceptrond::client {

class LearnStreamCore;

// The answer to one message.
struct LearnAnswer {
  // The tags of its rows, as given to Push().
  const std::vector<uint64_t>& tags;
  // Offset of its first row.
  int64_t first_offset;
  // The server's answer; result.errors has the rows with validation errors, by their index in tags.
  // Empty if `lost`.
  const perceptron::v1::LearnResult& result;
  // The rows were learned, but the answer was lost.
  bool lost;
};

struct LearnOptions {
  // Producer that numbers the rows; see Producer in learning_service.proto. Default "": a random
  // one for this stream. A model keeps the server's --max-producers; new ones are then an error
  // (PRODUCER_LIMIT), so clients that open many streams reuse a few producers or set `numbered` to
  // false.
  std::string producer_id;
  // False: rows have no numbers, and a lost connection ends the stream with an error once rows are
  // in flight. Default true.
  bool numbered = true;
  // Offset of the first row pushed, >= 0. Default: the producer's next offset, so that rows are
  // appended. Set it to push rows again that may have been learned: those below the producer's
  // position are acknowledged as duplicates and not learned again.
  std::optional<int64_t> start_offset;
  // Number of passes that the producer marked before the first row pushed, >= 0. Default: 0 with
  // start_offset 0, else the server's count.
  std::optional<int64_t> passes_before;

  // Rows per message, 1 to 65,536. More rows raise latency, fewer lower throughput. Default 512.
  size_t rows_per_message = 512;
  // A message is sent when it reaches about this size in bytes. Default 1 MiB; the default limit of
  // gRPC servers is 4 MiB.
  size_t bytes_per_message = 1 << 20;
  // Unanswered messages, and bytes, from which Push() blocks. Default 64 and 32 MiB.
  size_t window_messages = 64;
  size_t window_bytes = 32 << 20;

  // Most names in the stream's table, rounded down to a power of two. A message sends a name that
  // is in the table as its number. 0: each message sends its names. Without effect on rows by
  // index, or if the server has no tables. Default 262,144, the most that a server grants.
  uint32_t name_table_size = 1 << 18;
  // Send indices as differences, and values in 16 bits where that changes none of a message: fewer
  // bytes for more work. Faster where the network limits the rate, about 1 Gbit/s and less. Default
  // false.
  bool compact = false;

  // Which rows of a result are listed. Default: those that caused updates.
  perceptron::v1::ResultDetail result_detail = perceptron::v1::RESULT_DETAIL_UPDATES;
  // Request the model's report with the answers, for LearnStream::report(). Costs the server some
  // microseconds per message. Default false.
  bool include_report = false;
  // Retries after a lost connection. The give-up time counts from the last progress, while an
  // answer is due; an error after it has GaveUpAfter() (retry.h).
  RetryPolicy retry;
  // Time without a due answer after which the connection counts as lost, > 0. Default 1 minute.
  absl::Duration response_timeout = absl::Minutes(1);

  // Called with each answer. Default: none.
  std::function<void(const LearnAnswer&)> on_result;
  // Called with the reason when a connection was lost, before the next attempt. Default: none.
  std::function<void(const absl::Status&)> on_reconnect;
  // Called when the stream has ended, with or without an error. Default: none.
  std::function<void()> on_end;
};

// INVALID_ARGUMENT for options out of range.
absl::Status CheckLearnOptions(const LearnOptions& options);

// Totals over all answers. A plain value.
struct LearnTotals {
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  uint64_t duplicates = 0;
  // Rows with a validation error.
  uint64_t row_errors = 0;
  // Rows whose answers were lost; they are in no other total.
  uint64_t lost_answers = 0;
  // Revision of the model after the last answer.
  int64_t revision = 0;
  // Offset of the producer's last acknowledged row; -1 before the first.
  int64_t acknowledged_offset = -1;
  int reconnects = 0;
};

class LearnStream {
 public:
  using Options = LearnOptions;
  using Answer = LearnAnswer;
  using Totals = LearnTotals;

  // Opens the stream and waits for the server's first response, retrying by options.retry.
  // INVALID_ARGUMENT: an option is out of range. OUT_OF_RANGE (OFFSET_GAP): start_offset is above
  // the producer's next offset. NOT_FOUND and other errors of the server.
  static absl::StatusOr<std::unique_ptr<LearnStream>> Open(std::shared_ptr<Connection> connection,
                                                           std::string_view model,
                                                           Options options = {});
  ~LearnStream();
  LearnStream(const LearnStream&) = delete;
  LearnStream& operator=(const LearnStream&) = delete;

  // Queues a copy of the row; its answer has `tag`. Blocks while the window is full.
  // INVALID_ARGUMENT: the row is malformed (batch_builder.h lists the reasons), was not queued and
  // has no number; the stream continues. Other errors: the stream has failed.
  absl::Status Push(const Row& row, uint64_t tag = 0);

  // Sends the gathered rows now. Errors: the stream has failed.
  absl::Status Flush();

  // Marks the end of a pass over the data: flushes, waits for all answers, and returns the pass. If
  // a repeated mark is no longer known to the server, only its number is set. Errors: the stream
  // has failed.
  absl::StatusOr<perceptron::v1::PassSummary> MarkPass();

  // Flushes, waits for all answers, and ends the stream. Call at most once, and no method but the
  // getters afterwards. Errors: the stream has failed.
  absl::StatusOr<Totals> Finish();

  // Cancels the stream: blocked calls return CANCELLED. Unanswered rows may or may not have been
  // learned.
  void Cancel();

  // OK while the stream is open or after a successful Finish(), else the error that ended it.
  absl::Status status() const;
  // The totals so far.
  Totals totals() const;
  // With Options::include_report, the report in the latest answer; absent before the first. It may
  // include examples of other streams.
  std::optional<perceptron::v1::ConvergenceReport> report() const;
  // The server's first response.
  const perceptron::v1::StreamOpened& opened() const;
  // The producer in use; empty if rows are not numbered.
  const std::string& producer_id() const;

 private:
  explicit LearnStream(std::unique_ptr<LearnStreamCore> core);
  std::unique_ptr<LearnStreamCore> core_;
};

}  // namespace perceptrond::client
