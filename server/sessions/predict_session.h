// One PredictStream as a state machine without a transport: one response per message, in order.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "core/model/model.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/prediction_service.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call_timing.h"
#include "server/rpc/revision_wait.h"
#include "server/sessions/example_batch.h"
#include "server/sessions/nested_examples.h"
#include "server/sessions/session_state.h"

namespace perceptrond {

// Predicts the examples of one message, for the unary method and the stream. Reuses its memory from
// one message to the next. Not thread-safe.
class MessagePredictor {
 public:
  using Request = RequestWithExamples<::perceptron::v1::PredictRequest>;

  explicit MessagePredictor(Store& store) : store_(store), handle_(store) {}
  // Rows with validation errors are reported in the response; an error is about the message as a
  // whole.
  absl::Status Predict(const std::string& model_name, const Request& request,
                       ::perceptron::v1::PredictResponse& response);
  // Predicts with a model that the caller has looked up.
  absl::Status Predict(const Model& model, const Request& request,
                       ::perceptron::v1::PredictResponse& response);

  // The caller refuses a message in which a row has an error: nothing of it is kept for labels.
  void RefuseRowErrors() { refuses_row_errors_ = true; }
  // Releases the memory that is kept for the next message.
  void DropSpareMemory() {
    batch_.DropSpareMemory();
    outcome_ = {};
  }

  // Where the messages' examples are read.
  ExampleBatch& batch() { return batch_; }
  // The model that was predicted with last, if it is in memory.
  std::shared_ptr<Model> GetIfLoaded() const { return handle_.GetIfLoaded(); }

 private:
  // Keeps the features of what was predicted for the labels, and answers with the ids.
  absl::Status KeepFeatures(const Model& model, ::perceptron::v1::PredictResponse& response);

  Store& store_;
  ModelHandle handle_;
  ExampleBatch batch_;
  PredictOutcome outcome_;
  // Model::id() of the model that the latest answer named or followed; no model has 0.
  uint64_t named_id_ = 0;
  bool refuses_row_errors_ = false;
};

// The methods are those of LearnSession. Thread contract: Accept is called by one thread at a time,
// the other methods by any thread, also while Accept runs.
class PredictSession {
 public:
  using Request = MessagePredictor::Request;
  using Response = ::perceptron::v1::PredictResponse;

  static constexpr bool kAnswersSynchronously = true;
  static constexpr Part kAwaited = Part::kCommit;

  PredictSession(Store& store, const StreamLimits& limits)
      : store_(store), predictor_(store), limits_(limits) {}

  void OnReady(std::function<void()> /*ready*/) {}
  bool CanRunInline() const { return perceptrond::CanRunInline(predictor_.GetIfLoaded().get()); }
  // How large the work of a message is. Not to be called while Accept runs.
  WorkSize SizeOf(const Request& request) const;
  // What a message must wait for before Accept. Loads its model. Not to be called while Accept runs.
  AwaitedRevision Awaits(const Request& request) const;
  // Predicts the examples of one message. An error ends the stream.
  absl::Status Accept(const Request& request, size_t bytes, bool more = false);
  void DropSpareMemory() { predictor_.DropSpareMemory(); }
  void EndInput() {}
  SessionState Poll(Response* response) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Answer {
    Response response;
    size_t bytes = 0;
  };

  Store& store_;
  MessagePredictor predictor_;
  const StreamLimits limits_;
  // Used by Accept alone.
  std::string model_name_;
  // PredictRequest.name_table_size of the first message.
  uint32_t asked_table_size_ = 0;

  mutable Mutex mutex_;
  std::deque<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The stream's table of names.
  size_t name_table_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perceptrond
