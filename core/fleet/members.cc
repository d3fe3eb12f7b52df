#include "core/fleet/members.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/features/names.h"

namespace perceptrond {
namespace {

// A server that is gone is remembered for this many timeouts.
constexpr int kForgetAfter = 10;

uint64_t Weight(const std::string& id, uint32_t partition) {
  return HashBytes(id.data(), id.size(), partition);
}

}  // namespace

void Members::OnHeartbeat(const fleet_proto::Heartbeat& heartbeat, Clock::time_point now) {
  if (heartbeat.server_id() == own_id_) return;
  MutexLock lock(&mutex_);
  Member& member =
      members_.try_emplace(heartbeat.server_id(), Member{now, now, false}).first->second;
  // One that was taken for dead is new.
  if (now - member.seen > timeout_) member.first_seen = now;
  member.seen = now;
  member.leaving = heartbeat.leaving();
  member.address = heartbeat.address();
  member.late = heartbeat.late();
  member.started = heartbeat.started();
  member.client_address = heartbeat.client_address();
  for (const fleet_proto::WrittenPartition& written : heartbeat.written()) {
    if (written.partition() >= partitions_) continue;
    Writer& writer = writers_[written.partition()];
    if (written.epoch() < writer.epoch) continue;
    writer = {written.epoch(),
              heartbeat.address(),
              written.released(),
              now,
              heartbeat.client_address(),
              heartbeat.icu_version()};
  }
  std::erase_if(members_, [&](const auto& known) {
    return now - known.second.seen > kForgetAfter * timeout_;
  });
}

void Members::OnTakeOver(uint32_t partition, int64_t epoch, const std::string& address,
                         Clock::time_point now) {
  MutexLock lock(&mutex_);
  Writer& writer = writers_[partition];
  if (epoch > writer.epoch) writer = {epoch, address, false, now, "", ""};
}

void Members::OnWritten(uint32_t partition, int64_t epoch, Clock::time_point now) {
  MutexLock lock(&mutex_);
  Writer& writer = writers_[partition];
  if (writer.epoch == epoch) writer.seen = now;
}

void Members::ForgetWriter(uint32_t partition) {
  MutexLock lock(&mutex_);
  writers_.erase(partition);
}

Writer Members::WriterOf(uint32_t partition) const {
  MutexLock lock(&mutex_);
  const auto found = writers_.find(partition);
  return found == writers_.end() ? Writer() : found->second;
}

size_t Members::RankOf(uint32_t partition, Clock::time_point now, Clock::time_point settled) const {
  const uint64_t own = Weight(own_id_, partition);
  MutexLock lock(&mutex_);
  return static_cast<size_t>(
      std::count_if(members_.begin(), members_.end(), [&](const auto& known) {
        const auto& [id, member] = known;
        if (member.leaving || now - member.seen > timeout_ || member.first_seen > settled)
          return false;
        const uint64_t weight = Weight(id, partition);
        return weight > own || (weight == own && id > own_id_);
      }));
}

std::string Members::FindAddress(const std::function<bool(const std::string& address)>& is_wanted,
                                 Clock::time_point now) const {
  MutexLock lock(&mutex_);
  for (const auto& [id, member] : members_) {
    const Clock::duration longest = member.leaving ? timeout_ : kForgetAfter * timeout_;
    if (now - member.seen <= longest && is_wanted(member.address)) return member.address;
  }
  return "";
}

bool Members::HasOtherUpToDate(Clock::time_point now) const {
  MutexLock lock(&mutex_);
  return std::any_of(members_.begin(), members_.end(), [&](const auto& known) {
    const Member& member = known.second;
    return now - member.seen <= timeout_ && !member.leaving && !member.late;
  });
}

std::optional<Members::Namesake> Members::FindNamesake(Clock::time_point now) const {
  std::optional<Namesake> found;
  MutexLock lock(&mutex_);
  for (const auto& [id, member] : members_) {
    // The last heartbeat of a server that ran at this address before may come late. Others wait longer
    // than this before they hand partitions over to a new server.
    const bool stays =
        now - member.seen <= timeout_ && member.seen - member.first_seen >= timeout_ / 2;
    if (!stays || member.address != own_address_) continue;
    const bool is_first = std::tie(member.started, id) < std::tie(own_start_, own_id_);
    if (is_first && !member.leaving) return Namesake{member.client_address, true};
    if (!is_first) found = Namesake{member.client_address, false};
  }
  return found;
}

size_t Members::alive(Clock::time_point now) const {
  MutexLock lock(&mutex_);
  return 1 + static_cast<size_t>(std::count_if(
                 members_.begin(), members_.end(),
                 [&](const auto& known) { return now - known.second.seen <= timeout_; }));
}

}  // namespace perceptrond
