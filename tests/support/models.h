// Short ways to settings, models and learning.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/journal/memory_journal.h"
#include "core/ledger/stored_examples.h"
#include "core/model/model.h"
#include "core/model/snapshot.h"
#include "core/model/views.h"
#include "core/store/store.h"
#include "perceptron/v1/model.pb.h"
#include "tests/support/columns.h"
#include "tests/support/status.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

inline v1::Model DenseSettings(const std::string& name, uint32_t dimension) {
  v1::Model settings;
  settings.set_name(name);
  settings.mutable_feature_space()->mutable_dense()->set_dimension(dimension);
  return settings;
}
inline v1::Model HashedSettings(const std::string& name, uint32_t bits) {
  v1::Model settings;
  settings.set_name(name);
  settings.mutable_feature_space()->mutable_hashed()->set_bits(bits);
  return settings;
}
inline v1::Model NamedSettings(const std::string& name, uint32_t cap = 0) {
  v1::Model settings;
  settings.set_name(name);
  settings.mutable_feature_space()->mutable_named()->set_max_features(cap);
  return settings;
}

// The values of a stored example by its features' names, or indices where they have none.
inline std::map<std::string, float> ValuesByName(const Model& model, const StoredRow& row) {
  std::map<std::string, float> values;
  const Row features = row.row();
  size_t unknown = 0;
  for (size_t i = 0; i < features.size; ++i) {
    const uint32_t index = features.index(i);
    std::string name = absl::StrCat(index);
    if (model.has_names())
      name = index == 0 ? row.unknown[unknown++] : FeatureNames(model, {&index, 1})[0];
    values[name] = features.value(i);
  }
  return values;
}

// Adds a model to a journal and loads it, without a store.
inline std::shared_ptr<Model> MakeModel(Journal& journal, v1::Model settings) {
  FillDefaults(settings);
  storage::ModelHeader header;
  *header.mutable_model() = std::move(settings);
  EXPECT_OK(journal.Create(header));
  auto model = Model::Load(header, journal, Model::Limits());
  EXPECT_OK(model.status());
  return *model;
}

// A model alone, with a producer of its own.
struct LoneModel {
  explicit LoneModel(const v1::Model& settings) : model(MakeModel(journal, settings)) {}

  // Learns the batch, and ends the pass if a number is given.
  LearnOutcome Learn(const Batch& batch, int64_t completed_pass = 0) {
    LearnCall call;
    call.batch = batch;
    call.producer = &producer;
    call.completed_pass = completed_pass;
    LearnOutcome outcome;
    EXPECT_OK(model->Learn(call, outcome));
    return outcome;
  }
  PredictOutcome Predict(const Batch& batch) const {
    PredictOutcome outcome;
    EXPECT_OK(model->Predict(batch, {}, 0, outcome));
    return outcome;
  }
  // Every weight, zeros too, of a dense or hashed model.
  std::vector<float> Weights(size_t dimension) const {
    std::vector<float> weights(dimension);
    const WeightList list = ListWeights(*model).at(0);
    for (size_t i = 0; i < list.indices.size(); ++i) weights[list.indices[i]] = list.values[i];
    return weights;
  }
  double Offset() const { return ListWeights(*model).at(0).bias; }

  MemoryJournal journal;
  std::shared_ptr<Model> model;
  Producer producer{""};
};

// Where the producer is.
inline ProducerPosition PositionOf(Producer& producer) {
  MutexLock turn(&producer.turn);
  return producer.position();
}

// As freezing and unfreezing do, without a store.
inline void Freeze(Model& model, bool frozen) {
  v1::Model settings;
  settings.set_state(frozen ? v1::MODEL_STATE_FROZEN : v1::MODEL_STATE_ACTIVE);
  model.Change(settings);
}

// What must be the same of two models that learned the same, and of one before and after it was
// away, to the bit. Snapshot's time is left out, and so are the curves, whose points have times;
// tests/core/model/history_test.cc is about those.
inline std::string StateBytes(const Model& model) {
  storage::Snapshot snapshot = MakeSnapshot(model);
  snapshot.clear_learning_curve();
  return snapshot.SerializeAsString();
}

// One message of a named producer through a store, acknowledged: learned and committed.
struct Sent {
  absl::Status status;
  LearnOutcome outcome;
};
inline Sent Send(Store& store, const std::string& name, const std::string& producer,
                 const Batch& batch, std::optional<int64_t> first_offset = std::nullopt,
                 int64_t completed_pass = 0) {
  Sent sent;
  auto model = store.Acquire(name);
  if (!model.ok()) return {model.status(), {}};
  if (absl::Status writable = (*model)->core().CheckWritable(); !writable.ok())
    return {writable, {}};
  auto found = (*model)->ledger().FindProducer(producer);
  if (!found.ok()) return {found.status(), {}};
  MutexLock turn(&(*found)->turn);
  LearnCall call;
  call.batch = batch;
  call.producer = found->get();
  call.first_offset = first_offset;
  call.completed_pass = completed_pass;
  sent.status = (*model)->Learn(call, sent.outcome);
  if (sent.status.ok()) sent.status = store.committer().Commit(*model);
  return sent;
}

}  // namespace perceptrond::testing
