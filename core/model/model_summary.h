// One model as it is seen from outside: its stored settings and its report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "core/convergence/progress.h"
#include "core/journal/journal.h"
#include "core/model/model.h"
#include "core/model/stored_examples.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {

struct ModelSummary {
  // Settings and state. Report, revision and weights are not set.
  ::perceptron::v1::Model settings;
  ConvergenceReport report;
  uint64_t revision = 0;
  // Absent: not in memory, and so not known.
  std::optional<JournalUse> journal;
  size_t memory_bytes = 0;
  // Absent: not in memory, and so not known.
  std::optional<StoredExamplesStatistics> stored_examples;
  // False: the report is of the journal's counters; its window and norm, and what depends on them,
  // are absent.
  bool in_memory = false;
};

// The summary of `header`, from the model in memory, or from the journal's counters if `loaded` is
// null or another model of that name. Errors of the journal.
absl::StatusOr<ModelSummary> Summarize(const storage::ModelHeader& header,
                                       const std::shared_ptr<Model>& loaded, Journal& journal,
                                       ComponentAccess access);
// The same for lists: asks only components in memory, and leaves out starting weights, which are as
// large as the model.
absl::StatusOr<ModelSummary> SummarizeForList(const storage::ModelHeader& header,
                                              const std::shared_ptr<Model>& loaded,
                                              Journal& journal);

}  // namespace perceptrond
