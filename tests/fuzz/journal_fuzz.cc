// Any bytes as what a journal holds: a model loads and is sound, or the load says DATA_LOSS, or UNAVAILABLE of updates
// with a newer server's arithmetic. The first byte chooses the feature space, the learner and what the rest is: a
// snapshot (0x80), a record, or (0x40) a byte that says how long the snapshot is, that snapshot, and a record after it.
// After 0xff the rest is the header of a model that has learned nothing.
#include <cmath>
#include <cstdint>
#include <optional>

#include "core/journal/memory_journal.h"
#include "core/learner/catalogue.h"
#include "core/model/model.h"
#include "core/model/snapshot.h"
#include "core/model/views.h"
#include "core/settings/settings.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/learners.h"

namespace {

namespace storage = ::perceptron::storage::v1;
using perceptrond::CommittedState;
using perceptrond::Model;
using perceptrond::testing::Check;

// Returns the given snapshot and record, whatever they are.
class GivenJournal final : public perceptrond::testing::JournalDecorator {
 public:
  GivenJournal() : JournalDecorator(std::make_unique<perceptrond::MemoryJournal>()) {}

  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t /*model_id*/) override {
    CommittedState state;
    state.counters.mutable_report()->set_updates(revision());
    return state;
  }
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t /*model_id*/) override {
    return snapshot;
  }
  absl::Status Replay(uint64_t /*model_id*/, uint64_t /*after_revision*/,
                      const perceptrond::ReplayCallback& replay) override {
    return record.has_value() ? replay(*record, record->ByteSizeLong()) : absl::OkStatus();
  }
  // The counters' revision.
  uint64_t revision() const {
    return (snapshot.has_value() ? snapshot->revision() : 0) +
           (record.has_value() ? static_cast<uint64_t>(record->labels_size()) : 0);
  }

  std::optional<storage::Snapshot> snapshot;
  std::optional<storage::UpdateRecord> record;
};

bool Fill(const uint8_t* data, size_t size, GivenJournal& journal) {
  const uint8_t choice = data[0];
  ++data;
  --size;
  size_t snapshot_size = (choice & 0x80) != 0 ? size : 0;
  if ((choice & 0xc0) == 0x40) {
    if (size == 0 || size - 1 < data[0]) return false;
    snapshot_size = data[0];
    ++data;
    --size;
  }
  if ((choice & 0xc0) != 0) {
    journal.snapshot.emplace();
    if (!journal.snapshot->ParseFromArray(data, static_cast<int>(snapshot_size))) return false;
  }
  if ((choice & 0x80) != 0) return true;
  journal.record.emplace();
  return journal.record->ParseFromArray(data + snapshot_size,
                                        static_cast<int>(size - snapshot_size));
}

storage::ModelHeader Header(uint8_t choice) {
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/m");
  perceptron::v1::FeatureSpace& space = *header.mutable_model()->mutable_feature_space();
  if (choice % 3 == 0) space.mutable_dense()->set_dimension(4);
  if (choice % 3 == 1) space.mutable_hashed()->set_bits(3);
  if (choice % 3 == 2) space.mutable_named()->set_max_features(4);
  // 0 to 2: the perceptron. After the last learner they begin again, with several classes.
  const auto learners = static_cast<int>(perceptrond::Catalogue().size());
  const int number = (choice & 0x3f) / 3;
  const perceptrond::CatalogueEntry& entry =
      perceptrond::Catalogue()[static_cast<size_t>(number % learners)];
  perceptron::v1::Learner& learner = *header.mutable_model()->mutable_learner();
  perceptrond::testing::SetLearner(learner, entry.name);
  if (number >= learners && entry.has_classes()) {
    learner.mutable_classes()->set_max_classes(3);
    learner.mutable_classes()->set_new_classes(choice % 2 == 0
                                                   ? perceptron::v1::Classes::NEW_CLASSES_NAMED
                                                   : perceptron::v1::Classes::NEW_CLASSES_NUMBERED);
  }
  perceptrond::FillDefaults(*header.mutable_model());
  return header;
}

// It answers as a model does, and what it would journal is a model again.
void CheckSound(const Model& model, const storage::ModelHeader& header, uint64_t revision) {
  Check(model.revision() == revision);
  for (const perceptrond::WeightList& weights : perceptrond::ListWeights(model)) {
    for (const float weight : weights.values) Check(std::isfinite(weight));
    Check(std::isfinite(weights.bias));
  }
  perceptrond::Batch batch;
  const uint32_t row_ends[] = {0};
  batch.row_ends = row_ends;
  perceptrond::PredictOutcome outcome;
  Check(model.Predict(batch, {}, 0, outcome).ok() && std::isfinite(outcome.scores[0]));
  GivenJournal journal;
  journal.snapshot = MakeSnapshot(model);
  const auto again = Model::Load(header, journal, {});
  Check(again.ok());
  Check(MakeSnapshot(**again).SerializeAsString() == journal.snapshot->SerializeAsString());
}

void CheckHeader(const uint8_t* data, size_t size) {
  storage::ModelHeader header;
  if (!header.ParseFromArray(data, static_cast<int>(size))) return;
  const auto settings = perceptrond::ReadSettings(header.model());
  // As the store refuses what has no room.
  if (settings.ok() &&
      EstimateWeightBytes(settings->learner, settings->space.initial_weights()) > 1 << 20)
    return;
  GivenJournal journal;
  const auto model = Model::Load(header, journal, {});
  Check(model.ok() ? (*model)->revision() == 0 : absl::IsDataLoss(model.status()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && data[0] == 0xff) return CheckHeader(data + 1, size - 1), 0;
  GivenJournal journal;
  if (size == 0 || !Fill(data, size, journal)) return 0;
  const storage::ModelHeader header = Header(data[0]);
  const auto model = Model::Load(header, journal, {});
  if (model.ok()) {
    CheckSound(**model, header, journal.revision());
  } else {
    const bool is_newer = journal.record.has_value() && journal.record->arithmetic_version() > 1;
    Check(absl::IsDataLoss(model.status()) || (is_newer && absl::IsUnavailable(model.status())));
  }
  return 0;
}
