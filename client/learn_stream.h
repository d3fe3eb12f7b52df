// LearnStream: pushes examples to a model as fast as the server takes them, and exactly once.
//
//   LearnStream::Options options;
//   options.on_result = [](const LearnStream::Answer& answer) { ... };
//   auto stream = LearnStream::Open(client.connection(), "iris", std::move(options));
//   if (!stream.ok()) ...
//   while (read(&row)) if (absl::Status s = (*stream)->Push(row); !s.ok()) ...
//   absl::StatusOr<v1::PassSummary> pass = (*stream)->MarkPass();
//   absl::StatusOr<LearnStream::Totals> totals = (*stream)->Finish();
//
// Rows are gathered into messages; messages wait in a bounded window until they are answered;
// Push() blocks while the window is full. A numbered stream (the default) survives a broken
// connection: it reconnects, tells the server what it was told, asks what the server has, drops
// what is accounted for and sends the rest again. Nothing is lost and nothing is learned twice,
// also when the server crashed in between.
//
// Where the server accounted for a message but its answer got lost, the rows are reported as an
// Answer with `lost` set: what became of each is not known any more, only that each was learned
// from exactly once.
//
// Threads: Push, Flush, MarkPass and Finish from one thread at a time. Cancel from any. on_result,
// on_reconnect and on_end run on the stream's own thread, one at a time, in the order of the rows;
// they must not call back into the stream. The destructor breaks off what was not finished.
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

// What became of one message.
struct LearnAnswer {
  // The tags of its rows, as given to Push().
  const std::vector<uint64_t>& tags;
  // The number of its first row.
  int64_t first_offset;
  // The server's answer; result.errors names refused rows by their position in tags. If lost:
  // empty.
  const perceptron::v1::LearnResult& result;
  // The rows are accounted for, but the answer that said how got lost.
  bool lost;
};

struct LearnOptions {
  // Who numbers the rows; see Producer in learning_service.proto. Default "": a random one, for
  // this stream alone. A model remembers 10,000 producers, and then refuses new ones
  // (PRODUCER_LIMIT): who opens many streams names its producers, or does without numbers.
  std::string producer_id;
  // False: no numbers. A broken connection then ends the stream with an error once rows are in
  // flight. Default true.
  bool numbered = true;
  // The number of the first row pushed. Default: what the server expects next of this producer, so
  // that new rows are appended. Give it to push rows again that may have been learned already:
  // those below the server's position are acknowledged as duplicates and not learned again.
  std::optional<int64_t> start_offset;
  // How many passes this producer had marked before the first row pushed. Default: 0 with
  // start_offset 0, else what the server says.
  std::optional<int64_t> passes_before;

  // Rows in a message, 1 to 65,536. More cost latency, fewer throughput. Default 512.
  size_t rows_per_message = 512;
  // A message is sent before it grows past about so many bytes. Default 1 MiB; gRPC servers refuse
  // 4 MiB by default.
  size_t bytes_per_message = 1 << 20;
  // Messages, and bytes, that may be unanswered before Push() blocks. Default 64 and 32 MiB.
  size_t window_messages = 64;
  size_t window_bytes = 32 << 20;

  perceptron::v1::AnswerDetail answer_detail = perceptron::v1::ANSWER_DETAIL_UPDATES;
  // Ask for the model's report with the answers: LearnStream::report(). Costs the server some
  // microseconds a message. Default false.
  bool with_report = false;
  // Give-up time counts from the last progress, and only while an answer is due. An error after it
  // has GaveUpAfter() (retry.h).
  RetryPolicy retry;
  // No answer for so long while one is due: the connection counts as broken. Default 1 minute.
  absl::Duration patience = absl::Minutes(1);

  std::function<void(const LearnAnswer&)> on_result;
  // Why a connection broke, before the next is tried.
  std::function<void(const absl::Status&)> on_reconnect;
  // The stream has ended, well or not: for who waits for something else meanwhile.
  std::function<void()> on_end;
};

// Sums over all answers.
struct LearnTotals {
  uint64_t examples = 0;
  uint64_t mistakes = 0;
  uint64_t updates = 0;
  uint64_t duplicates = 0;
  // Rows the server refused.
  uint64_t refused = 0;
  // Rows accounted for whose answers got lost; they are in none of the figures above.
  uint64_t lost_answers = 0;
  // The model's revision after the last answer.
  int64_t revision = 0;
  // The producer's position; -1 before its first example.
  int64_t acknowledged_through = -1;
  int reconnects = 0;
};

class LearnStream {
 public:
  using Options = LearnOptions;
  using Answer = LearnAnswer;
  using Totals = LearnTotals;

  // Opens the stream and waits for the server's first answer; retries as the policy says. The
  // server's errors (NOT_FOUND and others); OUT_OF_RANGE (OFFSET_GAP) if start_offset lies beyond
  // what the server expects; INVALID_ARGUMENT for options out of range.
  static absl::StatusOr<std::unique_ptr<LearnStream>> Open(std::shared_ptr<Connection> connection,
                                                           std::string_view model,
                                                           Options options = {});
  ~LearnStream();
  LearnStream(const LearnStream&) = delete;
  LearnStream& operator=(const LearnStream&) = delete;

  // Takes a copy of the row; `tag` comes back with its answer. Blocks while the window is full.
  // INVALID_ARGUMENT: the row is malformed (batch_builder.h names the reasons), was not taken and
  // got no number; the stream goes on. Anything else: the stream has failed, with that error.
  absl::Status Push(const Row& row, uint64_t tag = 0);

  // Sends what is gathered without waiting for more. Errors: the stream has failed.
  absl::Status Flush();

  // Ends a pass over the data: flushes, and waits until everything is answered. Where the server
  // has forgotten the figures of a mark that it knows, they are zero but for the number.
  absl::StatusOr<perceptron::v1::PassSummary> MarkPass();

  // Flushes, waits until everything is answered, and ends the stream. Only once, and nothing after
  // it.
  absl::StatusOr<Totals> Finish();

  // Breaks the stream off: calls that block return CANCELLED. What was not answered may or may not
  // have been learned.
  void Cancel();

  // OK while the stream works, then what ended it.
  absl::Status status() const;
  // The sums so far.
  Totals totals() const;
  // With Options::with_report the model's report as the latest answer brought it: of the model
  // right after the last message answered, and perhaps some of what other streams taught it
  // meanwhile.
  std::optional<perceptron::v1::ConvergenceReport> report() const;
  // The server's first answer.
  const perceptron::v1::StreamOpened& opened() const;
  // The producer in use; empty if rows are not numbered.
  const std::string& producer_id() const;

 private:
  explicit LearnStream(std::unique_ptr<LearnStreamCore> core);
  std::unique_ptr<LearnStreamCore> core_;
};

}  // namespace perceptrond::client
