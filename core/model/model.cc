#include "core/model/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/learner/multiclass.h"
#include "core/model/class_answers.h"
#include "core/model/error.h"
#include "core/model/ledger_codec.h"
#include "core/model/retention_codec.h"
#include "core/model/snapshot_codec.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

// Answers each row that is not refused, and refuses what else is bad. outcome.refused holds the
// rows found bad beforehand.
template <typename Answer>
void PredictRows(Mapper& mapper, size_t rows, PredictOutcome& outcome, const Answer& answer) {
  const size_t before = outcome.refused.size();
  size_t skip = 0;
  for (size_t i = 0; i < rows; ++i) {
    if (skip < before && outcome.refused[skip].row == i) {
      ++skip;
      continue;
    }
    double row_norm = 0;
    if (const Fault fault = mapper.Check(i, &row_norm); fault != Fault::kNone) {
      outcome.refused.push_back({static_cast<uint32_t>(i), mapper.Describe(i, fault)});
      continue;
    }
    answer(i, mapper.Map(i));
  }
  std::stable_sort(outcome.refused.begin(), outcome.refused.end(),
                   [](const RefusedRow& a, const RefusedRow& b) { return a.row < b.row; });
}

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

void PredictOutcome::Clear() {
  revision = 0;
  scores.clear();
  labels.clear();
  distances.clear();
  probabilities.clear();
  class_scores.clear();
  class_probabilities.clear();
  refused.clear();
}

Model::Model(const storage::ModelHeader& header, ModelSettings settings,
             std::shared_ptr<const Expansion> expansion, const Limits& limits,
             ComponentSource components, const JournalStanding& standing)
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
  if (!settings_.several_classes()) return;
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
  absl::StatusOr<JournalStanding> standing = journal.LoadStanding(header.id());
  if (!standing.ok()) return standing.status();
  std::shared_ptr<const Expansion> expansion = MakeExpansion(settings->space);
  std::shared_ptr<Model> model(new Model(header, *std::move(settings), std::move(expansion), limits,
                                         std::move(components), *standing));
  if (absl::Status status = model->Rebuild(journal, standing->counters); !status.ok())
    return status;
  return model;
}

absl::Status Model::Rebuild(Journal& journal, const storage::Counters& committed) {
  MutexLock lock(&mutex_);
  absl::StatusOr<std::optional<storage::Snapshot>> snapshot = journal.LoadSnapshot(id_);
  if (!snapshot.ok()) return snapshot.status();
  JournalUse use;
  if (snapshot->has_value()) {
    if (absl::Status status = RestoreSnapshot(**snapshot); !status.ok()) return status;
    use.snapshot_time = absl::FromUnixSeconds((*snapshot)->time().seconds()) +
                        absl::Nanoseconds((*snapshot)->time().nanos());
  }
  const auto replay = [&](const storage::UpdateRecord& record, size_t bytes)
                          ABSL_NO_THREAD_SAFETY_ANALYSIS {
                            use.bytes += bytes;
                            return ReplayRecord(record);
                          };
  if (absl::Status status = journal.Replay(id_, revision_, replay); !status.ok()) return status;
  if (revision_ != committed.updates()) {
    return absl::DataLossError(absl::StrCat("the journal of \"", name_, "\" ends at revision ",
                                            revision_, " but its counters stand at ",
                                            committed.updates()));
  }
  ledger_.retention().Settle(committed.examples() == 0 || committed.sample_complete(),
                             committed.sampled());
  MutexLock use_lock(&use_mutex_);
  use_ = use;
  return absl::OkStatus();
}

absl::Status Model::RestoreSnapshot(const storage::Snapshot& snapshot) {
  const bool named = weight_space_.kind == FeatureSpace::Kind::kNamed;
  // Before room is made for them: no array is wider than the space and the weight of unknown names.
  const bool fits = std::all_of(snapshot.arrays().begin(), snapshot.arrays().end(),
                                [this](const storage::StateArray& array) {
                                  return array.size() <= uint64_t{weight_space_.size} + 1;
                                });
  if (!fits || static_cast<size_t>(snapshot.arrays_size()) > learner_->most_arrays()) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_, "\" has another model's shape"));
  }
  absl::StatusOr<LearnerState> state = ReadState(snapshot);
  if (!state.ok()) return state.status();
  if (!learner_->Restore(*std::move(state))) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_,
                     "\" has another learner's shape, or weights that are no numbers"));
  }
  dictionary_ = Dictionary();
  for (const std::string& name : snapshot.names()) dictionary_.Add(name);
  if (!TakeClassNames(snapshot.class_names()) ||
      (settings_.named_classes() && class_names_.size() != classes())) {
    return absl::DataLossError(absl::StrCat("the snapshot of \"", name_, "\" has other classes"));
  }
  const size_t size = learner_->size();
  if (named ? size != size_t{dictionary_.size()} + 1 || !UnknownNamesWeighNothing()
            : size != weight_space_.size || dictionary_.size() > 0) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_, "\" has ", size, " weights"));
  }
  revision_ = snapshot.revision();
  if (absl::Status status = RestoreRetained(snapshot.retained()); !status.ok()) return status;
  if (!snapshot.has_history()) return absl::OkStatus();
  absl::StatusOr<History> history = FromStorage(snapshot.history());
  if (!history.ok()) return history.status();
  if (!history->points().empty() && history->points().back().revision > revision_) {
    return absl::DataLossError(
        absl::StrCat("the snapshot of \"", name_, "\" has curves beyond its revision"));
  }
  ledger_.RestoreHistory(*std::move(history));
  return absl::OkStatus();
}

absl::Status Model::ReplayBatchEnd(const Row& row, int32_t label) {
  if (row.size > 0 || label != 0 || !learner_->BatchWaits())
    return absl::DataLossError(absl::StrCat("the journal of \"", name_, "\" at revision ",
                                            revision_, ": the end of a batch that there is not"));
  learner_->EndBatch();
  ++revision_;
  return absl::OkStatus();
}

absl::Status Model::ReplayRecord(const storage::UpdateRecord& record) {
  const auto loss = [&](absl::string_view what)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Contradiction(what); };
  if (record.first_revision() > revision_ + 1)
    return loss("records are missing before the next one");
  const bool named = weight_space_.kind == FeatureSpace::Kind::kNamed;
  if (!named && record.new_names_size() > 0) return loss("names where features have none");
  for (const std::string& name : record.new_names()) {
    // A record that a snapshot covers in part brings names that the snapshot has already.
    if (dictionary_.Find(name) == Dictionary::kUnknown) dictionary_.Add(name);
  }
  if (named && dictionary_.size() > weight_space_.size) return loss("more names than the cap");
  if (record.new_names_size() > 0) learner_->Grow(dictionary_.size() + 1);
  if (!TakeClassNames(record.new_classes())) return loss("more classes than the model may have");
  Batch batch;
  batch.row_ends = {record.row_ends().data(), static_cast<size_t>(record.row_ends_size())};
  batch.indices = {record.indices().data(), static_cast<size_t>(record.indices_size())};
  batch.values = {record.values().data(), static_cast<size_t>(record.values_size())};
  batch.labels = {record.labels().data(), static_cast<size_t>(record.labels_size())};
  batch.weights = {record.weights().data(), static_cast<size_t>(record.weights_size())};
  batch.dense_width = record.dense_width();
  if (Finding finding = CheckColumns(batch)) return loss(finding.description);
  if (batch.labels.size() != batch.rows()) return loss("a row has no label");
  const bool counts = FindLearner(settings_.learner.kind).counts_examples;
  if (static_cast<size_t>(record.ages_size()) != (counts ? batch.rows() : 0))
    return loss("a row has no age");
  for (size_t i = revision_ + 1 - record.first_revision(); i < batch.rows(); ++i) {
    if (std::binary_search(record.batch_ends().begin(), record.batch_ends().end(), i)) {
      if (absl::Status status = ReplayBatchEnd(batch.row(i), batch.labels[i]); !status.ok())
        return status;
      continue;
    }
    absl::Status status =
        record.adopted() ? ReplayAdoption(record, batch) : ReplayUpdate(record, batch, i);
    if (!status.ok()) return status;
  }
  if (settings_.named_classes() && class_names_.size() != classes())
    return loss("a class has a name and no example");
  if (learner_->augmented_squared_norm() != record.squared_norm() ||
      !std::isfinite(record.squared_norm()))
    return loss("replay ends at other weights");
  return ReplayHistory(record);
}

absl::Status Model::ReplayHistory(const storage::UpdateRecord& record) {
  for (const auto& stored : record.history()) {
    const HistoryPoint point = FromProto(stored);
    if (!IsSound(point) || point.revision < record.first_revision() || point.revision > revision_) {
      return absl::DataLossError(absl::StrCat("the journal of \"", name_, "\" at revision ",
                                              revision_, ": a point of its curves is wrong"));
    }
    // One that a snapshot covers is there already, or went when the curves were thinned.
    ledger_.ReplayHistory(point);
  }
  return absl::OkStatus();
}

absl::Status Model::CheckAnswers(uint64_t min_revision) const {
  if (!closed_.ok() || revision_ >= min_revision) return closed_;
  return MakeError(
      absl::StatusCode::kAborted, "REVISION_TOO_OLD",
      absl::StrCat("the model stands at revision ", revision_, ", below ", min_revision),
      {{"revision", absl::StrCat(revision_)}});
}

absl::Status Model::Contradiction(absl::string_view what) const {
  return absl::DataLossError(
      absl::StrCat("the journal of \"", name_, "\" at revision ", revision_, ": ", what));
}

absl::Status Model::ReplayUpdate(const storage::UpdateRecord& record, const Batch& batch,
                                 size_t i) {
  const Row row = batch.row(i);
  const bool named = weight_space_.kind == FeatureSpace::Kind::kNamed;
  for (size_t j = 0; j < row.size; ++j) {
    // Index 0 of a named space is every unknown name's, and no update's.
    if (row.index(j) >= learner_->size() || (named && row.index(j) == 0))
      return Contradiction("a feature lies outside the model");
  }
  const int32_t label = batch.labels[i];
  if (!TakesLabel(label)) return Contradiction("a label is none of the model's");
  const bool counts = FindLearner(settings_.learner.kind).counts_examples;
  const Target target{label, batch.weight(i) * settings_.learner.class_weight(label),
                      counts ? record.ages(static_cast<int>(i)) : 0};
  const Judgement judgement = learner_->Judge(row, label);
  if (!judgement.update)
    return Contradiction("the next example calls for no update, but did when it was learned");
  learner_->Update(row, target, judgement);
  ++revision_;
  RetainReplayed({std::make_shared<const RetainedRow>(SeenExample{row, label, {}}), revision_,
                  batch.weight(i), Saturate(judgement.score)});
  return absl::OkStatus();
}

absl::Status Model::Predict(const Batch& batch, std::span<const RefusedRow> refused,
                            uint64_t min_revision, PredictOutcome& outcome, bool all_scores) const {
  if (settings_.components.empty())
    return PredictOwn(batch, refused, min_revision, outcome, all_scores);
  ComposedBatch composed;
  absl::Status status = Compose(settings_.components, components_, batch, refused, composed);
  if (!status.ok()) return status;
  return PredictOwn(composed.batch, composed.refused, min_revision, outcome, all_scores);
}

absl::Status Model::PredictOwn(const Batch& batch, std::span<const RefusedRow> refused,
                               uint64_t min_revision, PredictOutcome& outcome,
                               bool all_scores) const {
  outcome.Clear();
  if (Finding finding = CheckColumns(batch)) {
    return InvalidField(FaultReason(finding.fault), absl::StrCat("columns.", finding.field),
                        finding.description);
  }
  Mapper mapper(settings_.space, expansion_, limits_.max_example_features);
  if (Finding finding = mapper.Begin(batch)) {
    return InvalidField(FaultReason(finding.fault), absl::StrCat("columns.", finding.field),
                        finding.description);
  }
  const size_t rows = batch.rows();
  outcome.scores.resize(rows, std::numeric_limits<float>::quiet_NaN());
  outcome.labels.resize(rows, 0);
  outcome.refused.assign(refused.begin(), refused.end());

  ReaderMutexLock lock(&mutex_);
  if (absl::Status status = CheckAnswers(min_revision); !status.ok()) return status;
  outcome.revision = revision_;
  const uint64_t age = Age();
  const double squared_norm = learner_->answer_squared_norm(age);
  const double per_norm = squared_norm > 0 ? 1 / std::sqrt(squared_norm) : 0;
  mapper.Resolve(dictionary_);
  if (const Multiclass* const several = learner_->multiclass()) {
    ClassAnswers answers(*several, age, per_norm, all_scores, outcome);
    if (absl::Status status = answers.Begin(rows); !status.ok()) return status;
    PredictRows(mapper, rows, outcome, [&](size_t i, const Row& row) { answers.Answer(i, row); });
    return absl::OkStatus();
  }
  if (per_norm > 0) outcome.distances.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const bool has_probability = learner_->Probability(0).has_value();
  if (has_probability) outcome.probabilities.resize(rows, std::numeric_limits<float>::quiet_NaN());
  const Learner& learner = *learner_;
  PredictRows(mapper, rows, outcome, [&](size_t i, const Row& row) {
    const double score = learner.Answer(row, age);
    outcome.scores[i] = Saturate(score);
    outcome.labels[i] = learner.Predict(score);
    if (per_norm > 0) outcome.distances[i] = Saturate(score * per_norm);
    if (has_probability) outcome.probabilities[i] = Saturate(*learner.Probability(score));
  });
  return absl::OkStatus();
}

uint64_t Model::Age() const {
  return FindLearner(settings_.learner.kind).counts_examples ? ledger_.examples() : 0;
}

uint64_t Model::revision() const {
  ReaderMutexLock lock(&mutex_);
  return revision_;
}

TheoremContext Model::MakeTheoremContext() const {
  return {theorem_, settings_.learner.step_size, margin_of_interest_};
}

Report Model::MakeReport() const {
  ReaderMutexLock lock(&mutex_);
  return ledger_.MakeReport(learner_->augmented_squared_norm(), MakeTheoremContext());
}

Model::View Model::MakeView() const {
  View view;
  ReaderMutexLock lock(&mutex_);
  view.report = ledger_.MakeReport(learner_->augmented_squared_norm(), MakeTheoremContext());
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
  const std::vector<float>& weights = hypothesis.weights;
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
  if (!settings_.several_classes()) return label == 1 || label == -1;
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
  if (!settings_.several_classes()) return settings_.label_names;
  ReaderMutexLock lock(&mutex_);
  std::vector<std::string> names;
  for (uint32_t number = 1; number <= class_names_.size(); ++number)
    names.push_back(class_names_.Name(number));
  return names;
}

Curves Model::MakeCurves() const {
  ReaderMutexLock lock(&mutex_);
  return ledger_.MakeCurves(learner_->augmented_squared_norm(), MakeTheoremContext());
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
  if (!history.points().empty()) *snapshot.mutable_history() = ToStorage(history);
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
