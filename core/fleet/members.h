// The servers of a fleet that are alive, by what they tell of themselves; which of them should
// write a partition; and the last sign of life of each writer. Decides nothing: a server that is
// wrong about the others tries a take-over that fails, or one that was not needed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/sync/mutex.h"
#include "perceptron/fleet/v1/heartbeat.pb.h"

namespace perceptrond {

namespace fleet_proto = ::perceptron::fleet::v1;

// Who writes a partition, as far as is known.
struct Writer {
  // 0: it never had one.
  int64_t epoch = 0;
  std::string address;
  // It writes no more, and waits for another to take over.
  bool released = false;
  // When it was last heard of.
  std::chrono::steady_clock::time_point seen;
  // Where clients reach it; empty: not known.
  std::string client_address;
  // The version of ICU that splits texts there; empty: not known.
  std::string icu_version;
};

// Thread contract: safe for any number of threads.
class Members {
 public:
  using Clock = std::chrono::steady_clock;

  // A server that was not heard of for `timeout` counts as dead.
  Members(std::string own_id, Clock::duration timeout)
      : own_id_(std::move(own_id)), timeout_(timeout) {}

  void OnHeartbeat(const fleet_proto::Heartbeat& heartbeat, Clock::time_point now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A take-over was read in the log.
  void OnTakeOver(uint32_t partition, int64_t epoch, const std::string& address,
                  Clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);

  // This server wrote the partition in this epoch until now.
  void OnWritten(uint32_t partition, int64_t epoch, Clock::time_point now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  Writer WriterOf(uint32_t partition) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many living servers come before this one in the order in which they should write a
  // partition: each server has the same order for the same servers, and a server that comes or goes
  // changes the first of its own share of the partitions alone (rendezvous hashing: Thaler and
  // Ravishankar, 1998). `settled`: servers that were first heard of later do not count yet.
  size_t RankOf(uint32_t partition, Clock::time_point now,
                Clock::time_point settled = Clock::time_point::max()) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The address of a living server, not this one, that `is_wanted`; empty: there is none.
  std::string FindAddress(const std::function<bool(const std::string& address)>& is_wanted,
                          Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether another living server, which is not about to leave, is not late.
  bool HasOtherUpToDate(Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Living servers, this one included.
  size_t alive(Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Member {
    Clock::time_point first_seen;
    Clock::time_point seen;
    bool leaving = false;
    std::string address = {};
    bool late = false;
  };

  const std::string own_id_;
  const Clock::duration timeout_;
  mutable Mutex mutex_;
  // The others, by id.
  std::map<std::string, Member> members_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, Writer> writers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
