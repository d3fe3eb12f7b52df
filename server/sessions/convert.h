// Converts the core's types to the API's, and the limits of an analysis from them. The other
// direction is in server/sessions/example_batch.h for examples, and in core/settings/settings.h for
// settings, which are stored in the API's own form.
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/explain.h"
#include "core/model/model.h"
#include "core/model/model_analysis.h"
#include "core/model/views.h"
#include "core/store/store.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond {

class ExampleBatch;

// INVALID_ARGUMENT (INVALID_FIELD) for a number that is not a value of the enum.
absl::Status CheckResultDetail(int detail);
absl::Status CheckStreamOrder(int order);
absl::Status CheckUnknownFeatures(int choice);
absl::Status CheckModelView(int view);

// Settings, revision and report.
::perceptron::v1::Model ToProto(const ModelSummary& summary);
void ToProto(const WeightList& weights, ::perceptron::v1::WeightVector& proto);
// Report, revision and learning curve.
void ToProto(const LearningCurve& curves, ::perceptron::v1::Model& proto);
void ToProto(const ExplainOutcome& outcome, ::perceptron::v1::ExplainResponse& proto);

// The error of one row, naming the field by its path from the request.
absl::Status ToStatus(const RowError& row_error, const ExampleBatch& batch);
// With scores or margins and predicted labels if `detail`. Does not set message_number.
void ToProto(const LearnOutcome& outcome, const ExampleBatch& batch, const ModelSettings& settings,
             bool detail, ::perceptron::v1::LearnResult& proto);
void ToProto(const PredictOutcome& outcome, const ExampleBatch& batch,
             ::perceptron::v1::PredictResponse& proto);

// The memory of an answer: about its size on the wire, but for row errors, which are many
// small objects.
template <typename Answer>
size_t MemoryOf(const Answer& answer) {
  constexpr size_t kRowError = 256;
  return answer.ByteSizeLong() + kRowError * static_cast<size_t>(answer.row_errors_size());
}

// INVALID_ARGUMENT (INVALID_FIELD).
absl::StatusOr<AnalysisOptions> ReadAnalysisOptions(
    const ::perceptron::v1::AnalyzeRequest& request);

// The examples with the features in the form of the model's weights. O(features).
std::vector<::perceptron::v1::StoredExample> ToProto(const Model& model,
                                                     std::span<const StoredUpdate> examples);
void ToProto(const ModelAnalysisProgress& progress, ::perceptron::v1::AnalysisProgress& proto);
// Sets everything except the new revision and the duration.
void ToProto(const Model& model, const ModelAnalysis& analysis,
             ::perceptron::v1::AnalysisResult& proto);

}  // namespace perceptrond
