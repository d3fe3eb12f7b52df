// One PredictStream as a state machine that knows nothing of the transport: one answer a message,
// in order.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "core/model/model.h"
#include "core/model/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/example_batch.h"
#include "server/quick.h"
#include "server/stream_limits.h"

namespace perceptrond {

// Predicts one message: shared by the unary call and the stream. Keeps its memory. Not thread-safe.
class BatchPredictor {
 public:
  explicit BatchPredictor(Store& store) : store_(store) {}
  // Rows that are refused are in the response; an error refuses the message.
  absl::Status Predict(const std::string& model_name,
                       const ::perceptron::v1::PredictRequest& request,
                       ::perceptron::v1::PredictResponse& response);
  // The same of a model that was looked up.
  absl::Status Predict(const Model& model, const ::perceptron::v1::PredictRequest& request,
                       ::perceptron::v1::PredictResponse& response);

 private:
  Store& store_;
  ExampleBatch batch_;
  PredictOutcome outcome_;
};

// Thread contract: Accept is called by one thread at a time; the other methods by any, also while
// Accept runs.
class PredictSession {
 public:
  using Request = ::perceptron::v1::PredictRequest;
  using Response = ::perceptron::v1::PredictResponse;

  static constexpr bool kAnswersAtOnce = true;

  PredictSession(Store& store, const StreamLimits& limits)
      : store_(store), predictor_(store), limits_(limits) {}

  void OnReady(std::function<void()> /*ready*/) {}
  // As LearnSession::Quick.
  bool Quick() const { return IsQuick(store_, model_name_); }
  // Predicts a message. An error ends the stream.
  absl::Status Accept(const Request& request, size_t bytes);
  bool Take(Response& response) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Full(size_t messages = 0, size_t bytes = 0) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool Idle() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status failure() const { return absl::OkStatus(); }

 private:
  struct Answer {
    Response response;
    size_t bytes = 0;
  };

  Store& store_;
  BatchPredictor predictor_;
  const StreamLimits limits_;
  // Accept's.
  std::string model_name_;

  mutable Mutex mutex_;
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
