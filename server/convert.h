// From the core's types to the API's. The other direction is server/example_batch.h for examples,
// and core/model/settings.h for settings, which are stored in the API's own form.
#pragma once

#include "absl/status/status.h"
#include "core/model/model.h"
#include "core/model/store.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {

// A report; last_pass included.
void ToProto(const Report& report, ::perceptron::v1::ConvergenceReport& proto);
// Settings, revision and report.
::perceptron::v1::Model ToProto(const ModelSummary& summary);
void ToProto(const WeightList& weights, ::perceptron::v1::Weights& proto);

// Whether a message's rows came in columns: it decides how a refused row's field is called.
enum class ExampleForm : uint8_t { kExamples, kColumns };

// Why a row was refused, with the field's path from the request's root.
absl::Status ToStatus(const RefusedRow& refused, ExampleForm form);
// `detail`: with scores and predicted labels. Leaves message_number to the caller.
void ToProto(const LearnOutcome& outcome, ExampleForm form, bool detail,
             ::perceptron::v1::LearnResult& proto);
void ToProto(const PredictOutcome& outcome, ExampleForm form,
             ::perceptron::v1::PredictResponse& proto);

}  // namespace perceptrond
