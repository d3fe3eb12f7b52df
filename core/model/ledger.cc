#include "core/model/ledger.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/model/error.h"

namespace perceptrond {
namespace {

// A record of the log is closed when its rows have this many features: reading one back takes
// little memory.
constexpr int kRecordFeatures = 1 << 17;

std::shared_ptr<Producer> Restore(const storage::ProducerPosition& position) {
  auto producer = std::make_shared<Producer>(position.id());
  producer->next_offset = position.next_offset();
  producer->passes = position.passes();
  producer->pass = PassProgress(position.pass());
  if (position.has_last_pass()) producer->last_pass = position.last_pass();
  return producer;
}

// What a producer takes, approximately: itself, its name here and as a key, and its place.
size_t MemoryOf(const Producer& producer) {
  using Place = std::pair<std::string, std::shared_ptr<Producer>>;
  return sizeof(Producer) + 2 * sizeof(Place) + 2 * producer.id.size();
}

// What an update takes in its record, approximately.
size_t MemoryOf(const Ledger::Update& update) {
  size_t bytes = update.row.size * (sizeof(float) + sizeof(uint32_t)) + sizeof(Ledger::Update) +
                 update.new_class.size();
  for (const absl::string_view name : update.new_names) bytes += sizeof(std::string) + name.size();
  return bytes;
}

absl::Status TooManyProducers() {
  return WithRetry(
      MakeError(absl::StatusCode::kResourceExhausted, "PRODUCER_LIMIT",
                absl::StrCat("the model remembers ", Ledger::kMaxProducers,
                             " producers already, and forgets none, or it would learn what they "
                             "send again twice: waiting does not help. Use the id of a producer "
                             "that is done and go on at its position, send without a producer, or "
                             "create a new model")),
      absl::Hours(24));
}

void AppendRow(storage::UpdateRecord& record, const Ledger::Update& update) {
  const Row& row = update.row;
  if (row.indices != nullptr) {
    record.mutable_indices()->Add(row.indices, row.indices + row.size);
    record.add_row_ends(record.indices_size());
  }
  if (row.values != nullptr) {
    record.mutable_values()->Add(row.values, row.values + row.size);
  } else {
    record.mutable_values()->Resize(record.values_size() + static_cast<int>(row.size), 1.0F);
  }
  if (update.batch_end) record.add_batch_ends(static_cast<uint32_t>(record.labels_size()));
  record.add_labels(update.label);
  if (update.weight != 1 || record.weights_size() > 0) {
    record.mutable_weights()->Resize(record.labels_size() - 1, 1.0F);
    record.add_weights(update.weight);
  }
  if (update.age.has_value()) record.add_ages(*update.age);
  for (const absl::string_view name : update.new_names) record.add_new_names(std::string(name));
  if (!update.new_class.empty()) record.add_new_classes(std::string(update.new_class));
  record.set_squared_norm(update.squared_norm);
}

}  // namespace

Ledger::Ledger(const CommittedState& standing, const RetentionSettings& retention)
    : retention_(retention), progress_(standing.counters) {
  for (const storage::ProducerPosition& position : standing.positions) {
    Keep(Restore(position));
  }
}

absl::StatusOr<std::shared_ptr<Producer>> Ledger::FindProducer(absl::string_view id) {
  MutexLock lock(&mutex_);
  if (const auto found = producers_.find(id); found != producers_.end()) return found->second;
  if (const auto found = newcomers_.find(id); found != newcomers_.end()) {
    if (std::shared_ptr<Producer> producer = found->second.lock()) return producer;
  }
  if (producers_.size() + newcomers_.size() >= kMaxProducers)
    absl::erase_if(newcomers_, [](const auto& newcomer) { return newcomer.second.expired(); });
  if (producers_.size() + newcomers_.size() >= kMaxProducers) return TooManyProducers();
  auto producer = std::make_shared<Producer>(std::string(id));
  newcomers_[id] = producer;
  return producer;
}

void Ledger::Keep(std::shared_ptr<Producer> producer) {
  producers_bytes_ += MemoryOf(*producer);
  producers_.emplace(producer->id, producer);
}

void Ledger::Touch(Producer& producer) {
  if (producer.id.empty() || producer.dirty) return;
  if (const auto newcomer = newcomers_.find(producer.id); newcomer != newcomers_.end()) {
    Keep(newcomer->second.lock());  // the caller holds it
    newcomers_.erase(newcomer);
  }
  producer.dirty = true;
  dirty_.push_back(producers_.at(producer.id));
}

ProducerPosition Ledger::Standing(const Producer& producer) {
  MutexLock lock(&mutex_);
  return {producer.next_offset, producer.passes, producer.last_pass};
}

void Ledger::Resume(Producer& producer, int64_t next_offset) {
  MutexLock lock(&mutex_);
  if (next_offset <= producer.next_offset) return;
  progress_.AddRecovered(next_offset - producer.next_offset);
  retention_.Miss();
  // Their scores are not known, so that the pass they belong to cannot be certified.
  producer.pass.SetChanged();
  Move(Tally(), producer, next_offset - producer.next_offset, 0);
}

void Ledger::Move(const Tally& tally, Producer& producer, int64_t rows, uint64_t revision) {
  const uint64_t changes = progress_.counters().component_changes();
  progress_.Add(tally);
  // Those before are held as they were, not as the components would answer to them.
  if (progress_.counters().component_changes() > changes) retention_.Miss();
  producer.pass.Add(tally, revision);
  producer.next_offset += rows;
  Touch(producer);
}

void Ledger::Add(const Tally& tally, Producer& producer, int64_t rows, uint64_t revision,
                 const Offers& offers) {
  MutexLock lock(&mutex_);
  Move(tally, producer, rows, revision);
  retention_.Add(offers.candidates, offers.names);
}

void Ledger::AddUpdate(const Tally& tally, Producer& producer, int64_t rows, const Update& update,
                       const Offers& offers) {
  MutexLock lock(&mutex_);
  Move(tally, producer, rows, update.revision - 1);
  retention_.Add(offers.candidates, offers.names);
  if (update.retained != nullptr)
    retention_.AddUpdate(
        {update.retained, update.revision, update.weight, update.score, update.age});
  storage::UpdateRecord& record = OpenRecord(update);
  AppendRow(record, update);
  records_bytes_ += MemoryOf(update);
  if (!history_.Wants(update.revision)) return;
  const HistoryPoint point =
      MakePoint(progress_.MakeReport(update.squared_norm, update.theorem), absl::Now());
  if (history_.Add(point)) *record.add_history() = point;
}

void Ledger::AddWeightReplacement(const Update& update, float offset_weight) {
  MutexLock lock(&mutex_);
  progress_.AddWeightReplacement(update.revision);
  storage::UpdateRecord& record = records_.emplace_back();
  record.set_first_revision(update.revision);
  record.set_adopted(true);
  record.set_adopted_offset_weight(offset_weight);
  AppendRow(record, update);
  records_bytes_ += MemoryOf(update);
}

void Ledger::AddAnalysis(const ::perceptron::v1::Analysis& analysis) {
  MutexLock lock(&mutex_);
  progress_.AddAnalysis(analysis);
}

storage::UpdateRecord& Ledger::OpenRecord(const Update& update) {
  const uint32_t dense_width =
      update.row.indices == nullptr ? static_cast<uint32_t>(update.row.size) : 0;
  if (records_.empty() || records_.back().adopted() ||
      records_.back().dense_width() != dense_width ||
      records_.back().values_size() > kRecordFeatures) {
    storage::UpdateRecord& record = records_.emplace_back();
    record.set_first_revision(update.revision);
    record.set_dense_width(dense_width);
  }
  return records_.back();
}

History Ledger::history() {
  MutexLock lock(&mutex_);
  return history_;
}

LearningCurve Ledger::MakeLearningCurve(double squared_norm, TheoremContext context) {
  MutexLock lock(&mutex_);
  AddSample(context);
  LearningCurve curves{history_.points(), progress_.MakeReport(squared_norm, context)};
  HistoryPoint present = MakePoint(curves.report, absl::Now());
  // What the update made stays: answers that were right since lie between it and the present.
  if (!curves.points.empty() && curves.points.back().revision() == present.revision() &&
      curves.points.back().examples() == present.examples())
    curves.points.pop_back();
  curves.points.push_back(std::move(present));
  return curves;
}

void Ledger::RestoreHistory(History history) {
  MutexLock lock(&mutex_);
  history_ = std::move(history);
}

void Ledger::ReplayHistory(const HistoryPoint& point) {
  MutexLock lock(&mutex_);
  history_.Add(point);
}

PassSummary Ledger::EndPass(Producer& producer, int64_t number, uint64_t revision, double norm) {
  MutexLock lock(&mutex_);
  if (number <= producer.passes) {
    if (producer.last_pass.has_value() && producer.last_pass->number() == number)
      return *producer.last_pass;
    PassSummary forgotten;
    forgotten.set_number(number);
    return forgotten;
  }
  // Others were judged since, by other answers of components.
  const PassProgress::Stored& pass = producer.pass.stored();
  const storage::Counters& counters = progress_.counters();
  const bool same_components = pass.has_components() == counters.has_components() &&
                               pass.components() == counters.components();
  if (pass.examples() > 0 && !same_components) producer.pass.SetChanged();
  PassSummary summary = producer.pass.End(number, revision, norm);
  progress_.AddPass(summary, pass.squared_radius());
  producer.passes = number;
  producer.pass = PassProgress();
  producer.last_pass = summary;
  Move(Tally(), producer, 0, revision);
  return summary;
}

JournalEntry Ledger::TakePending() {
  MutexLock lock(&mutex_);
  JournalEntry entry;
  entry.records = std::exchange(records_, {});
  records_bytes_ = 0;
  entry.counters = progress_.counters();
  const RetentionStatistics standing = retention_.Standing();
  entry.counters.set_sampled(standing.sampled);
  entry.counters.set_sample_complete(standing.complete);
  for (const std::shared_ptr<Producer>& producer : dirty_) {
    producer->dirty = false;
    storage::ProducerPosition& position = entry.positions.emplace_back();
    position.set_id(producer->id);
    position.set_next_offset(producer->next_offset);
    position.set_passes(producer->passes);
    if (!producer->pass.IsEmpty()) *position.mutable_pass() = producer->pass.stored();
    if (producer->last_pass.has_value()) *position.mutable_last_pass() = *producer->last_pass;
  }
  dirty_.clear();
  return entry;
}

uint64_t Ledger::examples() {
  MutexLock lock(&mutex_);
  return progress_.counters().report().examples();
}

std::optional<uint64_t> Ledger::adopted_revision() {
  MutexLock lock(&mutex_);
  return progress_.counters().replaced_at();
}

std::optional<uint64_t> Ledger::components() {
  MutexLock lock(&mutex_);
  const storage::Counters& counters = progress_.counters();
  return counters.has_components() ? std::optional(counters.components()) : std::nullopt;
}

size_t Ledger::memory_bytes() {
  MutexLock lock(&mutex_);
  return producers_bytes_ + newcomers_.size() * sizeof(Producer) + records_bytes_ +
         progress_.memory_bytes() + history_.memory_bytes();
}

ConvergenceReport Ledger::MakeReport(double squared_norm, TheoremContext context) {
  MutexLock lock(&mutex_);
  AddSample(context);
  return progress_.MakeReport(squared_norm, context);
}

void Ledger::AddSample(TheoremContext& context) const {
  const RetentionStatistics standing = retention_.Standing();
  context.sampled = standing.sampled;
  context.sample_complete = standing.complete;
}

}  // namespace perceptrond
