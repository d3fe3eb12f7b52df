#include "core/model/model.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_cat.h"
#include "core/features/hashing.h"
#include "core/learner/catalogue.h"
#include "core/learner/multiclass.h"
#include "core/model/error.h"
#include "core/model/retention_codec.h"
#include "core/model/snapshot_codec.h"

namespace perceptrond {
namespace {

absl::Time UpdateTime(const ::perceptron::v1::Model& settings) {
  return absl::FromUnixSeconds(settings.update_time().seconds()) +
         absl::Nanoseconds(settings.update_time().nanos());
}

bool HasTheorem(const LearnerSettings& learner) {
  const bool even = learner.class_weights[0] == 1 && learner.class_weights[1] == 1;
  return FindLearner(learner.kind).convergence_theorem && learner.start.all_zero() && even &&
         learner.classes.max == 0;
}

// So much of what is retained does not keep a snapshot waiting.
constexpr size_t kSmallRetention = Retention::kMaxUpdateBytes;

}  // namespace

Model::Model(const storage::ModelHeader& header, ModelSettings settings,
             std::shared_ptr<const Expansion> expansion, const Limits& limits,
             ComponentSource components, const CommittedState& standing)
    : id_(header.id()),
      name_(header.model().name()),
      uid_(header.model().uid()),
      settings_(std::move(settings)),
      weight_space_(settings_.space.mapped()),
      expansion_(std::move(expansion)),
      limits_(limits),
      components_(std::move(components)),
      theorem_(HasTheorem(settings_.learner)),
      frozen_(header.model().state() == ::perceptron::v1::MODEL_STATE_FROZEN),
      settings_time_(UpdateTime(header.model())),
      learner_(MakeLearner(settings_.learner, settings_.space.initial_weights() +
                                                  settings_.learner.start.names.size())),
      margin_of_interest_(header.model().margin_of_interest()),
      ledger_(standing, settings_.retention) {
  for (const std::string& name : settings_.learner.start.names) dictionary_.Add(name);
  if (!settings_.is_multiclass()) return;
  for (const std::string& name : settings_.label_names) class_names_.Add(name);
}

absl::StatusOr<std::shared_ptr<Model>> Model::Load(const storage::ModelHeader& header,
                                                   Journal& journal, const Limits& limits,
                                                   ComponentSource components) {
  absl::StatusOr<ModelSettings> settings = ReadSettings(header.model());
  if (!settings.ok()) {
    return MakeError(absl::StatusCode::kDataLoss, "JOURNAL_CORRUPT",
                     absl::StrCat("the journal holds settings this server cannot read: ",
                                  settings.status().message()));
  }
  absl::StatusOr<CommittedState> standing = journal.LoadCommittedState(header.id());
  if (!standing.ok()) return standing.status();
  std::shared_ptr<const Expansion> expansion = MakeExpansion(settings->space);
  std::shared_ptr<Model> model(new Model(header, *std::move(settings), std::move(expansion), limits,
                                         std::move(components), *standing));
  if (absl::Status status = model->Rebuild(journal, standing->counters); !status.ok())
    return status;
  return model;
}

uint64_t Model::Age() const {
  return FindLearner(settings_.learner.kind).counts_examples ? ledger_.examples() : 0;
}

uint64_t Model::revision() const {
  ReaderMutexLock lock(&mutex_);
  return revision_;
}

std::optional<StateFingerprint> Model::FingerprintComponents(bool load) const {
  if (settings_.components.empty()) return std::nullopt;
  return FingerprintOf(settings_.components, components_, load);
}

StateFingerprint Model::OwnFingerprint() const {
  const bool ages = FindLearner(settings_.learner.kind).separate_prediction_weights;
  const std::array<uint64_t, 3> parts = {
      revision_, std::bit_cast<uint64_t>(learner_->augmented_squared_norm()), ages ? Age() : 0};
  return HashBytes(parts.data(), sizeof(parts), 0);
}

std::optional<StateFingerprint> Model::Fingerprint(bool load_components) const {
  const std::optional<StateFingerprint> components = FingerprintComponents(load_components);
  if (!settings_.components.empty() && !components.has_value()) return std::nullopt;
  ReaderMutexLock lock(&mutex_);
  return components.has_value() ? CombineFingerprints(OwnFingerprint(), *components)
                                : OwnFingerprint();
}

TheoremContext Model::MakeTheoremContext(std::optional<StateFingerprint> components) const {
  return {.applies = theorem_,
          .step_size = settings_.learner.step_size,
          .margin_of_interest = margin_of_interest_,
          .separate_prediction_weights =
              FindLearner(settings_.learner.kind).separate_prediction_weights,
          .composed = !settings_.components.empty(),
          .components = components};
}

ConvergenceReport Model::MakeReport(bool load_components) const {
  const std::optional<StateFingerprint> components = FingerprintComponents(load_components);
  ReaderMutexLock lock(&mutex_);
  return ledger_.MakeReport(learner_->augmented_squared_norm(), MakeTheoremContext(components));
}

Model::View Model::MakeView() const {
  View view;
  const std::optional<StateFingerprint> components = FingerprintComponents(true);
  ReaderMutexLock lock(&mutex_);
  view.report =
      ledger_.MakeReport(learner_->augmented_squared_norm(), MakeTheoremContext(components));
  if (const Multiclass* const several = learner_->multiclass()) {
    for (size_t k = 0; k < several->classes(); ++k)
      view.weights_by_class.push_back(ListWeights(several->ClassHypothesis(k, Age())));
    view.weights.revision = revision_;
    return view;
  }
  view.weights = ListWeights(learner_->AnswerHypothesis(Age()));
  return view;
}

WeightList Model::ListWeights(const Hypothesis& hypothesis) const {
  WeightList list;
  const FloatArray& weights = hypothesis.weights;
  const bool named = weight_space_.kind == FeatureSpace::Kind::kNamed;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    list.values.push_back(weights[i]);
    if (named) {
      list.names.push_back(dictionary_.Name(i));
    } else {
      list.indices.push_back(i);
    }
  }
  list.offset = hypothesis.offset;
  list.revision = revision_;
  return list;
}

size_t Model::classes() const {
  const Multiclass* const several = learner_->multiclass();
  return several == nullptr ? 0 : several->classes();
}

bool Model::TakesLabel(int32_t label) const {
  if (!settings_.is_multiclass()) return label == 1 || label == -1;
  const uint32_t limit =
      settings_.named_classes() ? class_names_.size() : settings_.learner.classes.max;
  return label >= 0 && static_cast<uint32_t>(label) < limit;
}

bool Model::TakeClassNames(const google::protobuf::RepeatedPtrField<std::string>& names) {
  for (const std::string& name : names) {
    // A record that a snapshot covers in part brings names that the snapshot has already.
    if (class_names_.Find(name) != Dictionary::kUnknown) continue;
    if (settings_.new_classes != NewClasses::kNamed ||
        class_names_.size() == settings_.learner.classes.max)
      return false;
    class_names_.Add(name);
  }
  return true;
}

bool Model::UnknownNamesWeighNothing() const {
  const Multiclass* const several = learner_->multiclass();
  if (several == nullptr) {
    const std::vector<std::span<const float>> arrays = learner_->State().arrays;
    return arrays.empty() || arrays[0][0] == 0;
  }
  for (size_t k = 0; k < several->classes(); ++k) {
    if (several->ClassWeights(k)[0] != 0) return false;
  }
  return true;
}

std::vector<std::string> Model::LabelNames() const {
  if (!settings_.is_multiclass()) return settings_.label_names;
  ReaderMutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (uint32_t number = 1; number <= class_names_.size(); ++number)
    names.push_back(class_names_.Name(number));
  return names;
}

LearningCurve Model::MakeLearningCurve(bool load_components) const {
  const std::optional<StateFingerprint> components = FingerprintComponents(load_components);
  ReaderMutexLock lock(&mutex_);
  return ledger_.MakeLearningCurve(learner_->augmented_squared_norm(),
                                   MakeTheoremContext(components));
}

size_t Model::memory_bytes() const {
  const size_t retained = ledger_.retention().memory_bytes();
  return sizeof(Model) + state_bytes() + std::min(retained, kSmallRetention) +
         ledger_.memory_bytes();
}

size_t Model::state_bytes() const {
  ReaderMutexLock lock(&mutex_);
  const size_t retained = ledger_.retention().memory_bytes();
  size_t bytes =
      dictionary_.bytes() + class_names_.bytes() + retained - std::min(retained, kSmallRetention);
  const LearnerStateView state = learner_->State();
  for (const std::span<const float> array : state.arrays) bytes += array.size_bytes();
  if (state.rows != nullptr) bytes += state.rows->memory_bytes();
  return bytes;
}

void Model::Change(const ::perceptron::v1::Model& settings) {
  MutexLock gate(&gate_);
  const absl::Time time = UpdateTime(settings);
  if (time < settings_time_) return;
  settings_time_ = time;
  frozen_ = settings.state() == ::perceptron::v1::MODEL_STATE_FROZEN;
  MutexLock lock(&mutex_);
  margin_of_interest_ = settings.margin_of_interest();
}

void Model::Close(absl::Status why) {
  MutexLock lock(&mutex_);
  if (closed_.ok()) closed_ = std::move(why);
}

absl::Status Model::closed() const {
  ReaderMutexLock lock(&mutex_);
  return closed_;
}

storage::Snapshot Model::MakeSnapshot() const {
  ReaderMutexLock lock(&mutex_);
  storage::Snapshot snapshot = WriteState(learner_->State());
  snapshot.set_revision(revision_);
  for (uint32_t number = 1; number <= dictionary_.size(); ++number)
    snapshot.add_names(dictionary_.Name(number));
  for (uint32_t number = 1; number <= class_names_.size(); ++number)
    snapshot.add_class_names(class_names_.Name(number));
  const History history = ledger_.history();
  if (!history.points().empty()) *snapshot.mutable_history() = history.ToStorage();
  const RetainedExamples retained = ledger_.retention().Copy();
  if (!retained.updates.empty() || !retained.sample.empty())
    *snapshot.mutable_retained() = ToStorage(retained);
  return snapshot;
}

Model::JournalUse Model::journal_use() const {
  MutexLock lock(&use_mutex_);
  return use_;
}

void Model::AddJournalBytes(uint64_t bytes) {
  MutexLock lock(&use_mutex_);
  use_.bytes += bytes;
}

void Model::SnapshotSaved(uint64_t covered, absl::Time time) {
  MutexLock lock(&use_mutex_);
  use_.bytes -= covered;
  use_.snapshot_time = time;
}

}  // namespace perceptrond
