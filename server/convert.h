// From the core's types to the API's. The other direction is server/example_batch.h for examples,
// and core/model/settings.h for settings, which are stored in the API's own form.
#pragma once

#include "absl/status/status.h"
#include "core/model/explain.h"
#include "core/model/model.h"
#include "core/model/store.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {

class ExampleBatch;

// INVALID_ARGUMENT, INVALID_FIELD, for a number that is none of the enum's.
absl::Status CheckAnswerDetail(int detail);
absl::Status CheckModelView(int view);

// Settings, revision and report.
::perceptron::v1::Model ToProto(const ModelSummary& summary);
void ToProto(const WeightList& weights, ::perceptron::v1::Weights& proto);
// Report, revision and history.
void ToProto(const LearningCurve& curves, ::perceptron::v1::Model& proto);
void ToProto(const ExplainOutcome& outcome, ::perceptron::v1::ExplainResponse& proto);

// Why a row of the batch was refused, with the field's path from the request's root.
absl::Status ToStatus(const RowError& row_errors, const ExampleBatch& batch);
// `detail`: with scores and predicted labels. Leaves message_number to the caller.
void ToProto(const LearnOutcome& outcome, const ExampleBatch& batch, bool detail,
             ::perceptron::v1::LearnResult& proto);
void ToProto(const PredictOutcome& outcome, const ExampleBatch& batch,
             ::perceptron::v1::PredictResponse& proto);

}  // namespace perceptrond
