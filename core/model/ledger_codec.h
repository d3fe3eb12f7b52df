// Counters, passes and curves, to and from their stored form.
#pragma once

#include "absl/status/statusor.h"
#include "core/convergence/history.h"
#include "core/convergence/progress.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

::perceptron::storage::v1::Counters ToStorage(const Counters& counters);
Counters FromStorage(const ::perceptron::storage::v1::Counters& stored);

::perceptron::storage::v1::PassProgress ToStorage(const PassProgress& pass);
PassProgress FromStorage(const ::perceptron::storage::v1::PassProgress& stored);

::perceptron::v1::PassSummary ToProto(const PassSummary& pass);
PassSummary FromProto(const ::perceptron::v1::PassSummary& stored);

::perceptron::v1::HistoryPoint ToProto(const HistoryPoint& point);
HistoryPoint FromProto(const ::perceptron::v1::HistoryPoint& stored);

::perceptron::storage::v1::History ToStorage(const History& history);
// DATA_LOSS if it is no history.
absl::StatusOr<History> FromStorage(const ::perceptron::storage::v1::History& stored);

// `current` is left out: the books do not know it.
::perceptron::v1::Analysis ToProto(const AnalysisRecord& analysis);
AnalysisRecord FromProto(const ::perceptron::v1::Analysis& stored);

}  // namespace perceptrond
