#include "core/ledger/ledger.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"

namespace perceptrond {

TornByException::~TornByException() {
  if (std::uncaught_exceptions() > exceptions_) ledger_.MarkTorn();
}

Ledger::Ledger(const CommittedState& committed, const StoredExamplesSettings& stored_examples,
               const TheoremContext& theorem, size_t max_producers)
    : theorem_(theorem),
      stored_examples_(stored_examples),
      epochs_(committed.epochs),
      progress_(committed.counters),
      producers_(max_producers),
      examples_(ExamplesOf(committed.counters)) {
  for (const storage::ProducerPosition& position : committed.positions)
    producers_.Restore(position);
}

void Ledger::BeginEpoch(EpochBegin begin) {
  MutexLock lock(&mutex_);
  if (!epochs_.empty() && epochs_.back().epoch >= begin.epoch) return;
  // The one before made no update.
  if (!epochs_.empty() && epochs_.back().revision == begin.revision) epochs_.pop_back();
  epochs_.push_back(begin);
}

bool Ledger::HasState(int64_t epoch, uint64_t revision, uint64_t current) {
  MutexLock lock(&mutex_);
  const auto next = std::ranges::upper_bound(epochs_, epoch, {}, &EpochBegin::epoch);
  if (next != epochs_.begin() && std::prev(next)->epoch == epoch)
    return revision <= (next == epochs_.end() ? current : next->revision);
  // An epoch without an update has one state, that in which the next one began.
  if (next != epochs_.end()) return revision == next->revision;
  return revision <= (epochs_.empty() ? current : epochs_.back().revision);
}

std::vector<EpochBegin> Ledger::EpochsBegunBy(uint64_t first_revision) {
  MutexLock lock(&mutex_);
  return EpochsBegunByLocked(first_revision);
}

std::vector<EpochBegin> Ledger::EpochsBegunByLocked(uint64_t first_revision) const {
  const bool begins =
      !epochs_.empty() && epochs_.back().epoch > 0 && first_revision == epochs_.back().revision + 1;
  return begins ? std::vector{epochs_.back()} : std::vector<EpochBegin>();
}

void Ledger::Follow(const storage::Counters& counters,
                    std::span<const storage::ProducerPosition> positions) {
  MutexLock lock(&mutex_);
  const TornByException torn(*this);
  progress_ = Progress(counters);
  for (const storage::ProducerPosition& position : positions) producers_.Restore(position);
  PublishExamples();
}

absl::StatusOr<std::shared_ptr<Producer>> Ledger::FindProducer(absl::string_view id) {
  MutexLock lock(&mutex_);
  return producers_.Find(id);
}

void Ledger::Resume(Producer& producer, int64_t next_offset) {
  MutexLock lock(&mutex_);
  const TornByException torn(*this);
  producer.turn.AssertHeld();
  if (next_offset <= producer.position().next_offset) return;
  has_moved_ = true;
  stored_examples_.MarkIncomplete();
  const ProducerTable::Mutable moved = producers_.Move(producer);
  moved.position.next_offset = next_offset;
  // A claim is not evidence: the examples are not counted, and the pass they belong to cannot be
  // certified.
  moved.pass.SetChanged();
}

Ledger::Applied Ledger::Apply(Producer& producer, const Segment& segment, const Dictionary& names,
                              absl::FunctionRef<void()> on_locked) {
  MutexLock lock(&mutex_);
  const TornByException torn(*this);
  on_locked();
  has_moved_ = true;
  const size_t pending_bytes = pending_.memory_bytes();
  const ProducerTable::Mutable moved = producers_.Move(producer);
  auto unchanged = segment.unchanged.begin();
  for (const UpdateRow& update : segment.updates) {
    for (; unchanged != segment.unchanged.end() && unchanged->revision < update.revision;
         ++unchanged)
      AddTally(unchanged->tally, unchanged->revision, moved);
    AddTally(update.tally, update.revision - 1, moved);
    AddUpdate(update, segment.components);
  }
  for (; unchanged != segment.unchanged.end(); ++unchanged)
    AddTally(unchanged->tally, unchanged->revision, moved);
  PublishExamples();
  stored_examples_.Add(segment.sample, names);
  learned_predictions_.insert(learned_predictions_.end(), segment.predictions.begin(),
                              segment.predictions.end());
  if (!segment.predictions.empty()) ++changes_;
  moved.position.next_offset += segment.rows;
  Applied applied;
  applied.pending_bytes = pending_.memory_bytes() - pending_bytes;
  if (segment.completed_pass > 0) applied.pass = EndPass(producer, segment);
  applied.next_offset = moved.position.next_offset;
  return applied;
}

void Ledger::AddTally(const Tally& tally, uint64_t revision,
                      const ProducerTable::Mutable& producer) {
  const uint64_t changes = progress_.counters().component_changes();
  const auto source =
      producer.position.passes > 0 ? Progress::Source::kKnownData : Progress::Source::kStream;
  if (tally.updates == 0 && revision < progress_.counters().report().updates()) {
    progress_.AddLate(tally, source);
  } else {
    progress_.Add(tally, source);
  }
  // Earlier examples are stored as the components' outputs were then, which they no longer are.
  if (progress_.counters().component_changes() > changes) stored_examples_.MarkIncomplete();
  producer.pass.Add(tally, revision);
}

void Ledger::AddUpdate(const UpdateRow& update, std::optional<uint64_t> components) {
  if (update.row != nullptr) {
    stored_examples_.AddUpdate(
        {update.row, update.revision, update.weight, update.score, update.age, update.rival});
  }
  pending_.Add(update);
  NoteUpdate();
  if (!curve_points_.Wants(update.revision)) return;
  TheoremContext context = theorem_;
  context.components = components;
  const LearningCurvePoint point =
      MakePoint(progress_.MakeReport(update.squared_norm, context), absl::Now());
  if (curve_points_.Add(point)) pending_.AddCurvePoint(point);
}

PassSummary Ledger::EndPass(Producer& producer, const Segment& segment) {
  const ProducerTable::Mutable ending = producers_.Move(producer);
  if (segment.completed_pass <= ending.position.passes) {
    if (ending.position.last_pass.has_value() &&
        ending.position.last_pass->number() == segment.completed_pass)
      return *ending.position.last_pass;
    PassSummary unknown;
    unknown.set_number(segment.completed_pass);
    return unknown;
  }
  // Other streams' examples were outputs of components in another state.
  const PassProgress::Stored& pass = ending.pass.stored();
  const storage::Counters& counters = progress_.counters();
  const bool same_components = pass.has_components() == counters.has_components() &&
                               pass.components() == counters.components();
  if (pass.summary().examples() > 0 && !same_components) ending.pass.SetChanged();
  const PassSummary summary =
      ending.pass.End(segment.completed_pass, segment.revision, segment.weight_norm);
  progress_.AddPass(summary, pass.squared_radius());
  ending.position.passes = segment.completed_pass;
  ending.position.last_pass = summary;
  ending.pass = PassProgress();
  ++changes_;
  return summary;
}

void Ledger::AddWeightReplacement(const UpdateRow& update,
                                  std::span<const ReplacementVector> vectors) {
  MutexLock lock(&mutex_);
  const TornByException torn(*this);
  has_moved_ = true;
  progress_.AddWeightReplacement(update.revision);
  pending_.AddWeightReplacement(update, vectors);
  NoteUpdate();
}

void AddFrequencyChange(const UpdateRow& update, const DocumentCounts& counts, Ledger& ledger) {
  MutexLock lock(&ledger.mutex_);
  const TornByException torn(ledger);
  ledger.has_moved_ = true;
  ledger.progress_.AddInputChange(update.revision);
  ledger.stored_examples_.DropAll();
  ledger.pending_.AddFrequencyChange(update, counts);
  ledger.NoteUpdate();
}

void Ledger::AddAnalysis(const ::perceptron::v1::Analysis& analysis) {
  MutexLock lock(&mutex_);
  const TornByException torn(*this);
  has_moved_ = true;
  progress_.AddAnalysis(analysis);
  ++changes_;
}

bool Ledger::must_be_written() {
  MutexLock lock(&mutex_);
  return changes_ > taken_changes_;
}

bool Ledger::has_moved() {
  MutexLock lock(&mutex_);
  return has_moved_;
}

bool Ledger::has_uncommitted() {
  MutexLock lock(&mutex_);
  return changes_ > committed_changes_;
}

void Ledger::OnCommitted(uint64_t changes) {
  MutexLock lock(&mutex_);
  committed_changes_ = std::max(committed_changes_, changes);
}

Ledger::Pending Ledger::TakePending() {
  MutexLock lock(&mutex_);
  const TornByException torn(*this);
  Pending pending;
  has_moved_ = false;
  pending.changes = taken_changes_ = changes_;
  JournalEntry& entry = pending.entry;
  entry.records = pending_.Take();
  entry.counters = StoredCounters();
  entry.positions = producers_.TakeMoved();
  entry.learned_predictions = std::exchange(learned_predictions_, {});
  if (!entry.records.empty())
    entry.epochs = EpochsBegunByLocked(entry.records.front().first_revision());
  const size_t before = std::exchange(producer_bytes_, producers_.memory_bytes());
  pending.has_grown =
      !entry.records.empty() || producer_bytes_ > before || stored_examples_.samples();
  return pending;
}

storage::Counters Ledger::StoredCounters() const {
  storage::Counters counters = progress_.StoredCounters();
  if (!stored_examples_.samples()) return counters;
  const StoredExamplesStatistics statistics = stored_examples_.statistics();
  counters.set_sampled(statistics.sampled);
  counters.set_sample_complete(statistics.complete);
  counters.set_sample_bytes(statistics.sample_bytes);
  return counters;
}

storage::Counters Ledger::counters() {
  MutexLock lock(&mutex_);
  return StoredCounters();
}

CommittedState Ledger::CopyState() {
  MutexLock lock(&mutex_);
  CommittedState state;
  state.counters = StoredCounters();
  state.positions = producers_.CopyAll();
  return state;
}

size_t Ledger::memory_bytes() {
  MutexLock lock(&mutex_);
  return producers_.memory_bytes() + pending_.memory_bytes() + progress_.memory_bytes() +
         curve_points_.memory_bytes() + learned_predictions_.capacity() * sizeof(uint64_t) +
         epochs_.capacity() * sizeof(EpochBegin);
}

ConvergenceReport Ledger::MakeReport(const ReportContext& context) {
  MutexLock lock(&mutex_);
  return progress_.MakeReport(context.squared_norm, MakeTheoremContext(context));
}

LearningCurve Ledger::MakeLearningCurve(const ReportContext& context) {
  MutexLock lock(&mutex_);
  LearningCurve curve{curve_points_.points(),
                      progress_.MakeReport(context.squared_norm, MakeTheoremContext(context))};
  LearningCurvePoint current = MakePoint(curve.report, absl::Now());
  // The last update's own point stays if examples were evaluated after it.
  if (!curve.points.empty() && curve.points.back().revision() == current.revision() &&
      curve.points.back().examples() == current.examples())
    curve.points.pop_back();
  curve.points.push_back(std::move(current));
  return curve;
}

CurvePoints Ledger::curve_points() {
  MutexLock lock(&mutex_);
  return curve_points_;
}

void Ledger::RestoreCurvePoints(CurvePoints points) {
  MutexLock lock(&mutex_);
  curve_points_ = std::move(points);
}

void Ledger::ReplayCurve(const LearningCurvePoint& point) {
  MutexLock lock(&mutex_);
  curve_points_.Add(point);
}

TheoremContext Ledger::MakeTheoremContext(const ReportContext& context) const {
  TheoremContext theorem = theorem_;
  theorem.margin_of_interest = context.margin_of_interest;
  theorem.components = context.components;
  const StoredExamplesStatistics statistics = stored_examples_.statistics();
  theorem.sampled = statistics.sampled;
  theorem.sample_complete = statistics.complete;
  return theorem;
}

}  // namespace perceptrond
