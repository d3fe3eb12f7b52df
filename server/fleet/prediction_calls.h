// How the server that writes a model joins predictions that another server of the fleet keeps with
// their labels. proto/perceptron/fleet/v1/prediction.proto.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/store/waiting_predictions.h"
#include "core/sync/mutex.h"
#include "server/fleet/writer_calls.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"

namespace perceptrond {

class Store;

inline constexpr char kPredictionsPath[] = "/perceptron.fleet.v1.PredictionService/Join";

// What answers such calls here.
Call::Method AnswerPredictionCalls(const Backend& backend);

// Makes them. Thread contract: safe for any number of threads.
class PredictionCalls {
 public:
  // Both must outlive the calls: until Stop, and until `calls` has ended all.
  PredictionCalls(Store& store, WriterCalls& calls) : store_(store), calls_(calls) {}

  // As WaitingPredictions::Elsewhere. Nothing is found on a server that is gone for good
  // (Members::FindAddress).
  void Call(uint32_t server, uint64_t model_id, const WaitingPredictions::Exchange& exchange,
            std::function<void(std::vector<WaitingPredictions::Found>)> done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // No call begins from now on.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Store& store_;
  WriterCalls& calls_;
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perceptrond
