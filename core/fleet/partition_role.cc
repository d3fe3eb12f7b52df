#include "core/fleet/partition_role.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

// How long the log is waited for before the writer's signs of life are looked at.
constexpr absl::Duration kTurn = absl::Milliseconds(20);
constexpr absl::Duration kPause = absl::Milliseconds(200);
// How often it is asked where the log ends: also a partition in which nothing is learned, and so no
// commit fails.
constexpr absl::Duration kAskInterval = absl::Seconds(5);

PartitionRole::Clock::duration Steady(absl::Duration duration) {
  return absl::ToChronoNanoseconds(duration);
}

}  // namespace

PartitionRole::PartitionRole(Journal& journal, uint32_t partition, Members& members,
                             Settings settings, Hooks hooks)
    : journal_(journal),
      partition_(partition),
      members_(members),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      followers_(
          [this](const std::shared_ptr<Model>& model, const absl::Status& why) {
            hooks_.drop({model}, false, ReloadedError(model->name(), why));
          },
          hooks_.on_followed),
      begun_(settings_.now()),
      contact_(begun_),
      thread_([this] { Run(); }) {}

PartitionRole::~PartitionRole() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void PartitionRole::AddTo(fleet_proto::Heartbeat& heartbeat) const {
  const int64_t released = released_.load(std::memory_order_acquire);
  if (!writes() && released == 0) return;
  fleet_proto::WrittenPartition& written = *heartbeat.add_written();
  written.set_partition(partition_);
  written.set_epoch(writes() ? own_epoch_.load(std::memory_order_acquire) : released);
  written.set_released(!writes());
}

PartitionRole::Stats PartitionRole::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.writes = writes();
  stats.epoch = members_.WriterOf(partition_).epoch;
  stats.since_contact = absl::FromChrono(settings_.now() - contact_);
  stats.lag = Lag();
  return stats;
}

absl::Duration PartitionRole::Lag() const {
  return absl::FromChrono(lag_.At(reads_ ? settings_.now() : contact_));
}

void PartitionRole::Run() {
  NameThisThread("partition");
  while (!has_ended()) {
    if (failed_.exchange(false, std::memory_order_acq_rel))
      StopWriting(false, WriterChangedError());
    if (!Read()) Decide();
  }
}

bool PartitionRole::has_ended() const {
  MutexLock lock(&mutex_);
  return stopping_ || left_;
}

void PartitionRole::Pause() const {
  MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kPause);
}

void PartitionRole::AwaitLeft(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&left_), timeout);
}

bool PartitionRole::Read() {
  if (tail_ == nullptr) {
    // The models that are loaded have what came before.
    const absl::StatusOr<uint64_t> after = journal_.LastSequence(partition_);
    absl::StatusOr<std::unique_ptr<JournalTail>> tail =
        after.ok() ? journal_.Tail(partition_, *after)
                   : absl::StatusOr<std::unique_ptr<JournalTail>>(after.status());
    if (!tail.ok()) {
      OnTailError(tail.status());
      return true;
    }
    read_to_ = *after;
    tail_ = *std::move(tail);
    followers_.SetEpoch(tail_->epoch());
    // The take-over of another server may be among the entries that are not read.
    if (writes() && tail_->epoch() > own_epoch_.load(std::memory_order_relaxed))
      StopWriting(false, WriterChangedError());
  }
  // An answer that was long on its way says nothing of what has happened since.
  const Clock::time_point asked = settings_.now();
  const absl::StatusOr<std::vector<SequencedEntry>> entries = tail_->Next(kTurn);
  {
    MutexLock lock(&mutex_);
    const uint64_t read = entries.ok() ? entries->size() : 0;
    stats_.pending = tail_->pending() + read;
    reads_ = entries.ok();
    // Each entry that is pending has a sequence number of its own.
    if (reads_ && stats_.pending > 0)
      lag_.OnEnd((read == 0 ? read_to_ : entries->back().sequence) + tail_->pending(),
                 settings_.now());
  }
  if (!entries.ok()) {
    OnTailError(entries.status());
    return true;
  }
  // A read that failed once tells nothing of those that were silent.
  if (std::exchange(is_away_, false) && stats().since_contact > settings_.writer_timeout / 2)
    begun_ = settings_.now();
  for (const SequencedEntry& entry : *entries) Take(entry);
  MutexLock lock(&mutex_);
  contact_ = asked;
  stats_.pending = tail_->pending();
  if (entries->empty()) {
    if (stats_.pending == 0) lag_.OnLevel();
    return false;
  }
  stats_.entries += entries->size();
  lag_.OnApplied(entries->back().sequence);
  return true;
}

void PartitionRole::OnTailError(const absl::Status& why) {
  is_away_ = true;
  {
    MutexLock lock(&mutex_);
    reads_ = false;
  }
  if (absl::IsOutOfRange(why)) return Reload(why);
  if (leaving_.load(std::memory_order_acquire)) {
    // There is nothing to release it in.
    StopWriting(false, WriterChangedError());
    MutexLock lock(&mutex_);
    left_ = true;
    return;
  }
  CheckLog(settings_.now());
  Pause();
}

void PartitionRole::Reload(const absl::Status& why) {
  if (hooks_.on_reload != nullptr) hooks_.on_reload(partition_, why);
  tail_.reset();
  awaited_epoch_ = 0;
  {
    MutexLock lock(&mutex_);
    lag_.OnLevel();
  }
  // The log may not have it any more.
  released_.store(0, std::memory_order_release);
  begun_ = settings_.now();
  StopWriting(false, WriterChangedError());
  followers_.CancelLoads();
  for (const std::shared_ptr<Model>& model : followers_.All())
    hooks_.drop({model}, false, ReloadedError(model->name(), why));
}

void PartitionRole::Take(const SequencedEntry& entry) {
  read_to_ = entry.sequence;
  if (entry.take_over.has_value()) {
    OnTakeOver(entry);
  } else {
    followers_.Apply(entry);
  }
}

// This server's own take-over makes it the writer only once it is read: then every entry before it
// was applied here.
void PartitionRole::OnTakeOver(const SequencedEntry& entry) {
  members_.OnTakeOver(partition_, entry.epoch, entry.take_over->address(), settings_.now());
  if (entry.epoch != awaited_epoch_) {
    // The take-overs before this server's own are read first.
    if (entry.epoch > awaited_epoch_) awaited_epoch_ = 0;
    if (writes() && entry.epoch > own_epoch_.load(std::memory_order_relaxed))
      StopWriting(false, WriterChangedError());
    followers_.SetEpoch(entry.epoch);
    return;
  }
  awaited_epoch_ = 0;
  own_epoch_.store(entry.epoch, std::memory_order_release);
  released_.store(0, std::memory_order_release);
  failed_.store(false, std::memory_order_release);
  followers_.SetEpoch(entry.epoch);
  followers_.StartWriting();
  writes_.store(true, std::memory_order_release);
  {
    MutexLock lock(&mutex_);
    ++stats_.take_overs;
  }
  hooks_.on_change();
}

void PartitionRole::StopWriting(bool commit, const absl::Status& why) {
  if (!writes_.exchange(false, std::memory_order_acq_rel)) return;
  members_.OnWritten(partition_, own_epoch_.load(std::memory_order_relaxed), settings_.now());
  hooks_.drop(followers_.StopWriting(), commit, why);
  hooks_.on_change();
}

bool PartitionRole::HasBetterWriter(Clock::time_point now) const {
  return members_.MustYield(now) ||
         members_.RankOf(partition_, now, now - Steady(settings_.settle_time)) > 0;
}

void PartitionRole::Decide() {
  const Clock::time_point now = settings_.now();
  const bool leaving = leaving_.load(std::memory_order_acquire);
  if (!leaving) CheckLog(now);
  if (writes()) {
    if (!leaving && !HasBetterWriter(now)) return;
    hooks_.before_hand_over(followers_.All());
    StopWriting(true, WriterChangedError());
    released_.store(own_epoch_.load(std::memory_order_relaxed), std::memory_order_release);
    hooks_.on_change();
  }
  // It is in the log, and is read as soon as that can be.
  if (awaited_epoch_ != 0) return;
  if (leaving) {
    MutexLock lock(&mutex_);
    left_ = true;
    return;
  }
  if (members_.MustYield(now)) return;
  const Writer writer = members_.WriterOf(partition_);
  const bool own = writer.epoch > 0 && writer.epoch == own_epoch_.load(std::memory_order_relaxed);
  // The last writer was this server, which has stopped writing.
  const bool free = writer.released || own;
  const Clock::time_point since = std::max(writer.epoch == 0 ? begun_ : writer.seen, begun_);
  const absl::Duration silence =
      (free ? absl::ZeroDuration() : settings_.writer_timeout) +
      settings_.rank_delay * static_cast<double>(members_.RankOf(partition_, now));
  if (now - since >= Steady(silence)) TryTakeOver(writer.epoch);
}

absl::StatusOr<uint64_t> PartitionRole::AskForEnd() {
  absl::StatusOr<uint64_t> last = journal_.LastSequence(partition_);
  last_asked_ = settings_.now();
  MutexLock lock(&mutex_);
  stats_.answers = last.ok();
  return last;
}

void PartitionRole::CheckLog(Clock::time_point now) {
  if (now - last_asked_ < Steady(kAskInterval)) return;
  const absl::StatusOr<uint64_t> last = AskForEnd();
  if (!last.ok() || tail_ == nullptr || *last != read_to_) return;
  // All take-overs are read. A later one is one of a log that is lost, said by a server that has not noticed it yet.
  if (members_.WriterOf(partition_).epoch <= tail_->epoch()) return;
  members_.ForgetWriter(partition_);
  begun_ = now;
}

void PartitionRole::TryTakeOver(int64_t epoch) {
  const absl::StatusOr<uint64_t> last = AskForEnd();
  if (!last.ok()) return Pause();
  // Another server may have been faster, and its take-over not be read yet.
  const absl::StatusOr<std::unique_ptr<JournalTail>> end = journal_.Tail(partition_, *last);
  if (!end.ok()) return Pause();
  if (tail_ == nullptr || (*end)->epoch() > std::max(epoch, tail_->epoch())) return;
  const absl::StatusOr<CommitOutcome> outcome =
      journal_.TakeOver(partition_, settings_.address, *last);
  if (!outcome.ok()) return Pause();
  if (!outcome->stale) awaited_epoch_ = outcome->epoch;
}

}  // namespace perceptrond
