#include "core/fleet/fleet.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/features/words.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

// How often it is reported that another server has this one's address.
constexpr std::chrono::minutes kNamesakeInterval{10};
// An announcement is as small as a journal's notices must be.
constexpr size_t kUsedModelsAtOnce = 500;

std::string NewId(const std::string& address) {
  std::random_device random;
  return absl::StrCat(address, "-", absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace

Fleet::Fleet(Journal& journal, const FleetOptions& options, Hooks hooks)
    : journal_(journal),
      options_(options),
      hooks_(std::move(hooks)),
      id_(NewId(options.address)),
      started_(absl::GetCurrentTimeNanos()),
      members_(id_, journal.partitions(), absl::ToChronoNanoseconds(options.writer_timeout),
               options.address, started_) {
  journal_.Listen([this](absl::string_view message) {
    fleet_proto::Heartbeat heartbeat;
    if (!heartbeat.ParseFromArray(message.data(), static_cast<int>(message.size()))) return;
    if (!heartbeat.server_id().empty()) members_.OnHeartbeat(heartbeat, options_.now());
    if (hooks_.on_used_models != nullptr && heartbeat.used_models_size() > 0)
      hooks_.on_used_models({heartbeat.used_models().begin(), heartbeat.used_models().end()});
  });
  journal_.WatchModels([this](const storage::ModelHeader& header, bool deleted) {
    MutexLock lock(&mutex_);
    const ModelName name{header.id(), header.model().name()};
    if (changes_.insert_or_assign(name, Change{header, deleted}).second) changed_.push_back(name);
  });
  const PartitionRole::Settings settings{options.address, options.writer_timeout,
                                         options.rank_delay, options.settle_time, options.now};
  for (uint32_t i = 0; i < journal_.partitions(); ++i) {
    roles_.push_back(std::make_unique<PartitionRole>(
        journal_, i, members_, settings,
        PartitionRole::Hooks{hooks_.drop, hooks_.on_followed, hooks_.before_hand_over,
                             [this] { Announce(); }, hooks_.on_reload}));
  }
  heartbeats_ = std::thread([this] { SendHeartbeats(); });
  changes_thread_ = std::thread([this] { PassOnChanges(); });
  sweeper_ = std::thread([this] { Sweep(); });
}

Fleet::~Fleet() {
  journal_.Listen(nullptr);
  journal_.WatchModels(nullptr);
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  heartbeats_.join();
  changes_thread_.join();
  sweeper_.join();
  roles_.clear();
}

void Fleet::Leave() {
  if (hooks_.on_leave != nullptr) hooks_.on_leave();
  {
    MutexLock lock(&mutex_);
    leaving_ = true;
  }
  for (const std::unique_ptr<PartitionRole>& role : roles_) role->Leave();
  const absl::Time deadline = absl::Now() + options_.leave_time;
  for (const std::unique_ptr<PartitionRole>& role : roles_) role->AwaitLeft(deadline - absl::Now());
  // The last role's release may not be sent yet.
  Announce();
  MutexLock lock(&mutex_);
  const auto sent = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sent_ == asked_; };
  mutex_.AwaitWithTimeout(absl::Condition(&sent), absl::Seconds(1));
}

bool Fleet::WriterSplitsTextsAlike(uint64_t model_id) const {
  return WriterOf(model_id).icu_version == IcuVersion();
}

bool Fleet::HasOtherWriter(uint64_t model_id) const {
  const Writer writer = WriterOf(model_id);
  return writer.epoch > 0 && !writer.released && writer.address != options_.address &&
         options_.now() - writer.seen <= absl::ToChronoNanoseconds(2 * options_.writer_timeout);
}

bool Fleet::WritesAny() const {
  return std::any_of(roles_.begin(), roles_.end(), [](const auto& role) { return role->writes(); });
}

bool Fleet::WritesNow(const PartitionRole::Stats& stats) const {
  // Others take over once they have heard nothing for the time-out. It may have been cut off from them one heartbeat
  // before it read the log last.
  return stats.writes && stats.since_contact < options_.writer_timeout - options_.heartbeat;
}

absl::Time Fleet::StateTimeOf(uint64_t model_id) {
  const Writer writer = WriterOf(model_id);
  const PartitionRole& role = RoleOf(model_id);
  Members::Clock::time_point seen = role.contact();
  if (writer.epoch > 0 && !role.writes()) seen = std::min(seen, writer.seen);
  return absl::Now() - absl::FromChrono(options_.now() - seen);
}

bool Fleet::can_commit() const {
  if (must_yield()) return false;
  return std::all_of(roles_.begin(), roles_.end(), [&](const auto& role) {
    const PartitionRole::Stats stats = role->stats();
    return stats.answers && IsInContact(stats);
  });
}

bool Fleet::is_late() const {
  return std::any_of(roles_.begin(), roles_.end(),
                     [this](const auto& role) { return role->lag() > options_.max_lag; });
}

std::vector<PartitionRole::Stats> Fleet::stats() const {
  std::vector<PartitionRole::Stats> stats;
  for (const std::unique_ptr<PartitionRole>& role : roles_) {
    PartitionRole::Stats& one = stats.emplace_back(role->stats());
    one.writes = WritesNow(one);
  }
  return stats;
}

bool Fleet::IsInContact(const PartitionRole::Stats& stats) const {
  return stats.since_contact < 2 * options_.writer_timeout;
}

void Fleet::Announce() {
  MutexLock lock(&mutex_);
  ++asked_;
}

void Fleet::CheckNamesake() {
  const Members::Clock::time_point now = options_.now();
  const std::optional<Members::Namesake> other = members_.FindNamesake(now);
  if (!other.has_value() || hooks_.on_namesake == nullptr) return;
  if (reported_.has_value() && reported_->second == other->has_precedence &&
      now - reported_->first < kNamesakeInterval)
    return;
  reported_.emplace(now, other->has_precedence);
  hooks_.on_namesake(*other);
}

void Fleet::SendHeartbeats() {
  NameThisThread("heartbeats");
  const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return sent_ < asked_ || stopping_;
  };
  while (true) {
    fleet_proto::Heartbeat heartbeat;
    uint64_t asked = 0;
    bool leaving = false;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      leaving = leaving_;
      asked = asked_;
    }
    // The next server at its address may be there already.
    if (!leaving) CheckNamesake();
    // One that yields takes no partition over either.
    heartbeat.set_leaving(leaving || must_yield());
    heartbeat.set_server_id(id_);
    heartbeat.set_address(options_.address);
    heartbeat.set_client_address(options_.client_address);
    heartbeat.set_icu_version(IcuVersion());
    heartbeat.set_late(is_late());
    heartbeat.set_started(started_);
    for (const std::unique_ptr<PartitionRole>& role : roles_) role->AddTo(heartbeat);
    // A heartbeat that is lost is one of many.
    journal_.Announce(heartbeat.SerializeAsString()).IgnoreError();
    AnnounceUsedModels();
    MutexLock lock(&mutex_);
    sent_ = asked;
    mutex_.AwaitWithTimeout(absl::Condition(&due), options_.heartbeat);
  }
}

void Fleet::AnnounceUsedModels() {
  if (hooks_.used_models == nullptr) return;
  const std::vector<uint64_t> used = hooks_.used_models();
  for (size_t i = 0; i < used.size(); i += kUsedModelsAtOnce) {
    fleet_proto::Heartbeat part;
    for (size_t j = i; j < std::min(used.size(), i + kUsedModelsAtOnce); ++j)
      part.add_used_models(used[j]);
    journal_.Announce(part.SerializeAsString()).IgnoreError();
  }
}

void Fleet::PassOnChanges() {
  NameThisThread("model changes");
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !changed_.empty() || stopping_;
  };
  while (true) {
    Change change;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&any));
      if (stopping_) return;
      change = std::move(changes_.extract(changed_.front()).mapped());
      changed_.pop_front();
    }
    hooks_.on_model_changed(change.header, change.deleted);
  }
}

uint64_t Fleet::take_overs() const {
  uint64_t take_overs = 0;
  for (const std::unique_ptr<PartitionRole>& role : roles_) take_overs += role->stats().take_overs;
  return take_overs;
}

void Fleet::Sweep() {
  NameThisThread("sweeper");
  Members::Clock::time_point swept = options_.now();
  uint64_t swept_take_overs = 0;
  while (true) {
    {
      // Partitions are often taken over several at once.
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.settle_time)) return;
    }
    const uint64_t now_taken = take_overs();
    const bool is_due =
        options_.now() - swept >= absl::ToChronoNanoseconds(options_.sweep_interval);
    if (now_taken == swept_take_overs && !is_due) continue;
    swept_take_overs = now_taken;
    // What cannot be deleted now is tried again.
    journal_.Sweep().IgnoreError();
    swept = options_.now();
  }
}

}  // namespace perceptrond
