// What the tests of analyses share: models with stored examples, their analysis, and their reload.
#pragma once

#include <memory>

#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/support/models.h"

namespace perceptrond::testing {

inline absl::StatusOr<ModelAnalysis> Analyzed(Model& model, const AnalysisOptions& options = {}) {
  return AnalyzeModel(model, options, [](const ModelAnalysisProgress&) { return true; });
}

// What the journal makes of the model, as after a crash.
inline std::shared_ptr<Model> Reload(LoneModel& lone) {
  JournalEntry entry = lone.model->ledger().TakePending();
  entry.model_id = lone.model->id();
  EXPECT_OK(lone.journal.Commit({&entry, 1}, {}).status());
  return Model::Load(lone.journal.Find(lone.model->name()).value(), lone.journal, Model::Limits())
      .value();
}

// What the model has learned, without its stored examples and its curve, whose points have times.
inline std::string LearnedState(const Model& model) {
  storage::Snapshot snapshot = MakeSnapshot(model);
  snapshot.clear_stored_rows();
  snapshot.clear_learning_curve();
  return snapshot.SerializeAsString();
}

}  // namespace perceptrond::testing
