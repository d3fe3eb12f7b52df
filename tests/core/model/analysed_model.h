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
  EXPECT_OK(lone.journal.Commit({&entry, 1}, true));
  return Model::Load(lone.journal.Find(lone.model->name()).value(), lone.journal, Model::Limits())
      .value();
}

inline v1::Model Sampled(uint32_t dimension, uint32_t sample = 10'000) {
  v1::Model settings = DenseSettings("m", dimension);
  settings.mutable_stored_examples()->set_max_sample(sample);
  return settings;
}

}  // namespace perceptrond::testing
