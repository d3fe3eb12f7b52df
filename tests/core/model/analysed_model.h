// What the tests of analyses share: models with stored examples, their analysis, and their reload.
#pragma once

#include <memory>

#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/support/models.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

inline bool GoOn(const ModelAnalysisProgress& /*progress*/) { return true; }

inline absl::StatusOr<ModelAnalysis> Analyzed(Model& model) {
  return AnalyzeModel(model, {}, GoOn);
}

// What the journal makes of the model, as after a crash.
inline std::shared_ptr<Model> Reload(LoneModel& lone) {
  JournalEntry entry = lone.model->ledger().TakePending();
  entry.model_id = lone.model->id();
  EXPECT_OK(lone.journal.Commit({&entry, 1}, {}).status());
  return Model::Load(lone.journal.Find(lone.model->name()).value(), lone.journal, Model::Limits())
      .value();
}

inline v1::Model Sampled(uint32_t dimension, uint32_t sample = 10'000) {
  v1::Model settings = DenseSettings("m", dimension);
  settings.mutable_stored_examples()->set_max_sample(sample);
  return settings;
}

// What the model has learned, without its stored examples and its curve, whose points have times.
inline std::string LearnedState(const Model& model) {
  storage::Snapshot snapshot = MakeSnapshot(model);
  snapshot.clear_stored_rows();
  snapshot.clear_learning_curve();
  return snapshot.SerializeAsString();
}

// After its weights were replaced: the model from its journal and from a snapshot equals it to the
// bit, also after `learn` of each.
template <class Learn>
void ExpectReplayedToTheBit(LoneModel& lone, const Learn& learn) {
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_FALSE(report.has_bound_in_use());
  EXPECT_FALSE(report.has_update_bound());
  EXPECT_FALSE(report.has_updates_left());
  const std::shared_ptr<Model> replayed = Reload(lone);
  EXPECT_EQ(LearnedState(*replayed), LearnedState(*lone.model));
  ASSERT_OK(lone.journal.SaveSnapshot(lone.model->id(), MakeSnapshot(*lone.model)));
  const std::shared_ptr<Model> restored = Reload(lone);
  EXPECT_EQ(StateBytes(*restored), StateBytes(*lone.model));
  for (const std::shared_ptr<Model>& model : {lone.model, replayed, restored}) learn(*model);
  EXPECT_EQ(LearnedState(*replayed), LearnedState(*lone.model));
  EXPECT_EQ(LearnedState(*restored), LearnedState(*lone.model));
}

}  // namespace perceptrond::testing
