// The output tensors of a model in the Open Inference Protocol, and their contents for a
// prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/model.h"
#include "inference/inference_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

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
  // -1 for a size that depends on the request or on what was learned.
  std::vector<int64_t> shape;
};

// All outputs of a model, in the order of Kind.
std::vector<InferenceOutput> OutputsOf(const Model& model);

// The outputs that the request asks for, in its order; all if it names none. INVALID_ARGUMENT
// (UNKNOWN_TENSOR, DUPLICATE_TENSOR).
absl::StatusOr<std::vector<InferenceOutput>> ChooseOutputs(
    const ::inference::ModelInferRequest& request, const Model& model);

// Whether the outputs need PredictRequest.include_class_scores.
bool NeedAllScores(const std::vector<InferenceOutput>& outputs);

// Appends the outputs for `prediction`, which must have no row errors, to the response; to
// raw_output_contents if `raw`. O(size of the outputs).
void AppendOutputs(const std::vector<InferenceOutput>& outputs, const Model& model,
                   const ::perceptron::v1::PredictResponse& prediction, bool raw,
                   ::inference::ModelInferResponse& response);

}  // namespace perceptrond
