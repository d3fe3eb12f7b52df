#include "core/store/model_expiry.h"

#include <algorithm>
#include <chrono>

#include "core/settings/settings.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

constexpr size_t kHeadersAtOnce = 256;
// A sweep costs its hundredfold in waiting.
constexpr int kWaitPerWork = 100;
constexpr absl::Duration kShortestWait = absl::Milliseconds(50);
constexpr absl::Duration kLongestWait = absl::Minutes(1);

absl::Time LastUseTime(const storage::ModelHeader& header) {
  return absl::FromUnixSeconds(header.last_use_time().seconds()) +
         absl::Nanoseconds(header.last_use_time().nanos());
}

absl::Duration Distance(absl::Time a, absl::Time b) { return absl::AbsDuration(a - b); }

}  // namespace

absl::Duration ModelExpiry::SteadyTime() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void ModelExpiry::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ModelExpiry::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void ModelExpiry::OnExpireAfter(std::optional<absl::Duration> expire_after) {
  if (!expire_after.has_value()) return;
  MutexLock lock(&mutex_);
  sweep_soon_ |= *expire_after * kBetweenSweeps < interval_;
}

bool ModelExpiry::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

void ModelExpiry::Run() {
  NameThisThread("expiry");
  const auto wakes = [this]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sweep_soon_ || stopping_; };
  while (!stopping()) {
    const absl::Duration wait = Sweep();
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&wakes), wait);
  }
}

absl::Duration ModelExpiry::Sweep() {
  const absl::Duration begun = clocks_.steady();
  {
    MutexLock lock(&mutex_);
    ++sweep_;
    sweep_soon_ = false;
  }
  absl::Duration interval = kLongestWait;
  bool can_write = true;
  std::string after;
  while (true) {
    const absl::StatusOr<std::vector<storage::ModelHeader>> headers =
        hooks_.list(after, kHeadersAtOnce);
    // The journal is out of reach: what is known of models stays.
    if (!headers.ok()) return interval;
    for (const storage::ModelHeader& header : *headers) {
      if (stopping()) return interval;
      const std::optional<absl::Duration> expire_after = ExpireAfter(header.model());
      if (!expire_after.has_value()) continue;
      interval = std::min(interval, *expire_after * kBetweenSweeps);
      SweepModel(header, *expire_after, can_write);
    }
    if (headers->size() < kHeadersAtOnce) break;
    after = headers->back().model().name();
  }
  RemoveUnseen(interval);
  // However long it took, uses are noted and told to other servers by the next one.
  const absl::Duration rest = std::min(kWaitPerWork * (clocks_.steady() - begun), kLongestWait);
  return std::max({interval, kShortestWait, rest});
}

void ModelExpiry::SweepModel(const storage::ModelHeader& header, absl::Duration expire_after,
                             bool& can_write) {
  const Mark mark = MarkOf(header.id());
  const bool has_streams = hooks_.has_streams(header.model().uid());
  const Due due = Update(header, expire_after, *mark, has_streams, hooks_.writes(header.id()));
  // Each call may wait for its timeout, and there may be thousands: the next sweep tries again.
  if (!can_write) return;
  if (due.note.has_value()) {
    const absl::Status saved = hooks_.save_use(header, *due.note);
    can_write = !absl::IsUnavailable(saved);
    MutexLock lock(&mutex_);
    if (saved.ok()) records_[header.id()].note = *due.note;
  }
  if (!due.removal || !can_write) return;
  const absl::Status removed = hooks_.remove(header, *mark);
  if (removed.ok()) expired_.fetch_add(1, std::memory_order_relaxed);
  if (!absl::IsFailedPrecondition(removed)) return;
  MutexLock lock(&mutex_);
  records_[header.id()].last_use = clocks_.steady();
}

ModelExpiry::Due ModelExpiry::Update(const storage::ModelHeader& header,
                                     absl::Duration expire_after, std::atomic<bool>& mark,
                                     bool has_streams, bool writes) {
  const absl::Duration now = clocks_.steady();
  const absl::Time wall = clocks_.wall();
  const absl::Time note = LastUseTime(header);
  const absl::Duration lifetime = expire_after * (1 + kMarginOfNotes);
  MutexLock lock(&mutex_);
  const bool used = mark.exchange(false, std::memory_order_relaxed) || has_streams;
  const auto [found, is_new] = records_.try_emplace(header.id());
  Record& record = found->second;
  record.sweep = sweep_;
  if (is_new) {
    // The wall clock may be wrong, or the server have been down for long: users get a chance.
    const absl::Duration most = lifetime - expire_after * kLeftAfterStart;
    record.last_use = now - std::clamp(wall - note, absl::ZeroDuration(), most);
  } else if (note != record.note) {
    // Another server noted a use, or the time was changed.
    record.last_use = now;
  }
  if (is_new || note != record.note) {
    record.note = note;
    record.next_note = now + expire_after * kBetweenNotes;
    record.to_announce = false;
  }
  if (used || std::exchange(record.used_elsewhere, false)) record.last_use = now;
  if (!writes) {
    record.to_announce |= used;
    return {};
  }
  record.to_announce = false;
  Due due;
  // Also after the wall clock was set, when the note is wrong.
  const absl::Time last_use =
      absl::FromUnixNanos(absl::ToUnixNanos(wall - (now - record.last_use)));
  if (Distance(last_use, note) >= expire_after * kBetweenNotes) due.note = last_use;
  due.removal = now - record.last_use >= lifetime;
  return due;
}

void ModelExpiry::RemoveUnseen(absl::Duration interval) {
  MutexLock lock(&mutex_);
  interval_ = interval;
  const uint64_t sweep = sweep_;
  absl::erase_if(records_, [sweep](const auto& record) { return record.second.sweep != sweep; });
  for (auto mark = marks_.begin(); mark != marks_.end();) {
    const auto one = mark++;
    if (one->second.use_count() == 1 && !records_.contains(one->first)) marks_.erase(one);
  }
}

ModelExpiry::Mark ModelExpiry::MarkOf(uint64_t model_id) {
  MutexLock lock(&mutex_);
  Mark& mark = marks_[model_id];
  if (mark == nullptr) mark = std::make_shared<std::atomic<bool>>(false);
  return mark;
}

std::optional<absl::Time> ModelExpiry::ExpireTime(const storage::ModelHeader& header) const {
  const std::optional<absl::Duration> expire_after = ExpireAfter(header.model());
  if (!expire_after.has_value()) return std::nullopt;
  absl::Time last_use = LastUseTime(header);
  MutexLock lock(&mutex_);
  const auto record = records_.find(header.id());
  if (record != records_.end())
    last_use = std::max(last_use, clocks_.wall() - (clocks_.steady() - record->second.last_use));
  const auto mark = marks_.find(header.id());
  if (mark != marks_.end() && mark->second->load(std::memory_order_relaxed))
    last_use = clocks_.wall();
  return last_use + *expire_after;
}

std::vector<uint64_t> ModelExpiry::UsedHere() const {
  std::vector<uint64_t> ids;
  const absl::Duration now = clocks_.steady();
  MutexLock lock(&mutex_);
  for (const auto& [id, record] : records_) {
    if (record.to_announce && record.next_note <= now && ids.size() < kMostAnnounced)
      ids.push_back(id);
  }
  return ids;
}

void ModelExpiry::OnUsedElsewhere(const std::vector<uint64_t>& model_ids) {
  MutexLock lock(&mutex_);
  for (const uint64_t id : model_ids) {
    const auto record = records_.find(id);
    if (record != records_.end()) record->second.used_elsewhere = true;
  }
}

}  // namespace perceptrond
