// Which output tensors a model has in the Open Inference Protocol, and a prediction as these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/model.h"
#include "inference/inference_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond {

struct InferenceOutput {
  enum class Kind : uint8_t {
    kLabel,
    kScore,
    kDistance,
    kProbability,
    kClassScores,
    kClassProbabilities,
    kClassNames,
    kComponentRevisions,
  };
  Kind kind;
  absl::string_view name;
  absl::string_view datatype;
  // -1: what differs from request to request, or with what was learned.
  std::vector<int64_t> shape;
};

// All that a model has, in the order of Kind.
std::vector<InferenceOutput> OutputsOf(const Model& model);

// Those that the request asks for, in its order. INVALID_ARGUMENT (UNKNOWN_TENSOR,
// DUPLICATE_TENSOR).
absl::StatusOr<std::vector<InferenceOutput>> ChooseOutputs(
    const ::inference::ModelInferRequest& request, const Model& model);

// Whether they need PredictRequest.all_scores.
bool NeedAllScores(const std::vector<InferenceOutput>& outputs);

// Appends the outputs to the response. `prediction`: all rows of one batch, none of them refused.
// `raw`: to raw_output_contents. O(what is written).
void AppendOutputs(const std::vector<InferenceOutput>& outputs, const Model& model,
                   const ::perceptron::v1::PredictResponse& prediction, bool raw,
                   ::inference::ModelInferResponse& response);

}  // namespace perceptrond
