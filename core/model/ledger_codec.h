// Counters and passes, to and from their stored form.
#pragma once

#include "core/convergence/progress.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

::perceptron::storage::v1::Counters ToStorage(const Counters& counters);
Counters FromStorage(const ::perceptron::storage::v1::Counters& stored);

::perceptron::storage::v1::PassProgress ToStorage(const PassProgress& pass);
PassProgress FromStorage(const ::perceptron::storage::v1::PassProgress& stored);

::perceptron::v1::PassSummary ToProto(const PassSummary& pass);
PassSummary FromProto(const ::perceptron::v1::PassSummary& stored);

// `current` is left out: the books do not know it.
::perceptron::v1::Analysis ToProto(const AnalysisRecord& analysis);
AnalysisRecord FromProto(const ::perceptron::v1::Analysis& stored);

}  // namespace perceptrond
