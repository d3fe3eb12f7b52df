// Analysis and reload of models.
#pragma once

#include <memory>

#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/support/models.h"

namespace perceptrond::testing {

inline absl::StatusOr<ModelAnalysis> Analyzed(Model& model, const AnalysisOptions& options = {}) {
  return AnalyzeModel(model, options, [](const ModelAnalysisProgress&) { return true; });
}

// Loads the model from the journal, as after a crash.
inline std::shared_ptr<Model> Reload(LoneModel& lone) {
  JournalEntry entry = lone.model->ledger().TakePending().entry;
  entry.model_id = lone.model->id();
  EXPECT_OK(lone.journal.Commit({&entry, 1}, {}).status());
  return Model::Load(lone.journal.Find(lone.model->name()).value(), lone.journal, Model::Limits())
      .value();
}

// The learned state without the stored examples and without the curve, whose points have times.
inline std::string LearnedState(const Model& model) {
  storage::Snapshot snapshot = MakeSnapshot(model);
  snapshot.clear_stored_rows();
  snapshot.clear_learning_curve();
  return snapshot.SerializeAsString();
}

}  // namespace perceptrond::testing
