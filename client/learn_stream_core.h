// LearnStreamCore: the implementation of LearnStream (learn_stream.h), a state machine between the
// caller's thread and the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "client/batch_builder.h"
#include "client/learn_stream.h"
#include "client/stream_worker.h"
#include "client/window.h"

namespace perceptrond::client {

// Threads: as LearnStream; the batch belongs to the caller's thread.
class LearnStreamCore final
    : public StreamWorker<perceptron::v1::LearnStreamRequest, perceptron::v1::LearnStreamResponse> {
 public:
  LearnStreamCore(std::shared_ptr<Connection> connection, std::string model, LearnOptions options);
  ~LearnStreamCore() override { Stop(); }

  // Starts the worker and waits for the server's first response.
  absl::Status Open() ABSL_LOCKS_EXCLUDED(mutex_);
  // As LearnStream has them.
  absl::Status Push(const Row& row, uint64_t tag) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<perceptron::v1::PassSummary> MarkPass() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<LearnTotals> Finish() ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel() { CancelStream(); }

  absl::Status status() ABSL_LOCKS_EXCLUDED(mutex_);
  LearnTotals totals() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<perceptron::v1::ConvergenceReport> report() ABSL_LOCKS_EXCLUDED(mutex_);
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
  bool Unanswered() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !window_.empty();
  }
  absl::Status OnResponse(perceptron::v1::LearnStreamResponse* response) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayRetry(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnDisconnect(const absl::Status& status) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd() override ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status OnOpened(const perceptron::v1::StreamOpened& opened) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartNumbering(const perceptron::v1::StreamOpened& opened)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnResult(const perceptron::v1::LearnResult& result) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddToTotals(const perceptron::v1::LearnResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool numbered() const { return !producer_id_.empty(); }
  // Why the stream accepts no more messages. Precondition: it has ended.
  absl::Status EndStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Connection> connection_;
  const std::string model_;
  const LearnOptions options_;
  const std::string producer_id_;
  RowBatch batch_;

  // Written on the worker's thread until opened_once_, constant afterwards.
  perceptron::v1::StreamOpened first_opened_;

  bool opened_once_ ABSL_GUARDED_BY(mutex_) = false;
  Window window_ ABSL_GUARDED_BY(mutex_);
  int64_t next_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t passes_ ABSL_GUARDED_BY(mutex_) = 0;
  LearnTotals totals_ ABSL_GUARDED_BY(mutex_);
  perceptron::v1::PassSummary last_pass_ ABSL_GUARDED_BY(mutex_);
  std::optional<perceptron::v1::ConvergenceReport> report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond::client
