#include "core/model/model_summary.h"

#include "core/model/error.h"
#include "core/model/views.h"

namespace perceptrond {

absl::StatusOr<ModelSummary> Summarize(const storage::ModelHeader& header,
                                       const std::shared_ptr<Model>& loaded, Journal& journal,
                                       ComponentAccess access) {
  ModelSummary summary;
  summary.settings = header.model();
  if (loaded != nullptr && loaded->id() == header.id()) {
    summary.report = MakeReport(*loaded, access);
    summary.journal = *Guarded<JournalUse>::Reader(loaded->core().journal_use);
    summary.memory_bytes = MeasureMemory(loaded->core()).total;
    summary.retained = loaded->ledger().stored_examples().statistics();
    summary.in_memory = true;
    if (loaded->settings().new_classes == NewClasses::kNamed) {
      const std::vector<std::string> names = LabelNames(*loaded);
      summary.settings.mutable_label_names()->Assign(names.begin(), names.end());
    }
  } else {
    absl::StatusOr<storage::Counters> counters = journal.LoadCounters(header.id());
    if (!counters.ok()) return JournalError(counters.status(), header.model().name());
    summary.report = Progress(*counters).MakeStoredReport();
  }
  summary.revision = summary.report.updates();
  return summary;
}

absl::StatusOr<ModelSummary> SummarizeForList(const storage::ModelHeader& header,
                                              const std::shared_ptr<Model>& loaded,
                                              Journal& journal) {
  absl::StatusOr<ModelSummary> summary =
      Summarize(header, loaded, journal, ComponentAccess::kOnlyInMemory);
  if (summary.ok() && summary->settings.learner().has_starting_weights())
    summary->settings.mutable_learner()->mutable_starting_weights()->Clear();
  return summary;
}

}  // namespace perceptrond
