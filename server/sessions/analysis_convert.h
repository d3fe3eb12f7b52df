// Converts analyses and stored examples to the API's types, and the limits of an analysis from
// them.
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/model_analysis.h"
#include "perceptron/v1/analysis_service.pb.h"

namespace perceptrond {

// INVALID_ARGUMENT (INVALID_FIELD).
absl::StatusOr<AnalysisOptions> ReadAnalysisOptions(
    const ::perceptron::v1::AnalyzeRequest& request);

// The examples with the features in the form of the model's weights. O(features).
std::vector<::perceptron::v1::StoredExample> ToProto(const Model& model,
                                                     std::span<const StoredUpdate> examples);
void ToProto(const ModelAnalysisProgress& progress, ::perceptron::v1::AnalysisProgress& proto);
// Sets everything except the adopted revision and the duration.
void ToProto(const Model& model, const ModelAnalysis& analysis,
             ::perceptron::v1::AnalysisResult& proto);

}  // namespace perceptrond
