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

  // Another server with this one's address.
  struct Namesake {
    // Where clients reach it; empty: not known.
    std::string client_address;
    // It keeps the address: this server must write nothing, as others would not reach it.
    bool has_precedence = false;
  };

  // A server that was not heard of for `timeout` counts as dead. The own address and the time of the
  // start, as in Heartbeat, are for FindNamesake.
  Members(std::string own_id, uint32_t partitions, Clock::duration timeout,
          std::string own_address = "", int64_t own_start = 0)
      : own_id_(std::move(own_id)),
        partitions_(partitions),
        own_address_(std::move(own_address)),
        own_start_(own_start),
        timeout_(timeout) {}

  // Partitions that the fleet does not have are ignored.
  void OnHeartbeat(const fleet_proto::Heartbeat& heartbeat, Clock::time_point now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A take-over was read in the log.
  void OnTakeOver(uint32_t partition, int64_t epoch, const std::string& address,
                  Clock::time_point now) ABSL_LOCKS_EXCLUDED(mutex_);

  // This server wrote the partition in this epoch until now.
  void OnWritten(uint32_t partition, int64_t epoch, Clock::time_point now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets who is taken for the writer: the log has no such take-over.
  void ForgetWriter(uint32_t partition) ABSL_LOCKS_EXCLUDED(mutex_);

  Writer WriterOf(uint32_t partition) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many living servers come before this one in the order in which they should write a
  // partition: each server has the same order for the same servers, and a server that comes or goes
  // changes the first of its own share of the partitions alone (rendezvous hashing: Thaler and
  // Ravishankar, 1998). `settled`: servers that were first heard of later do not count yet.
  size_t RankOf(uint32_t partition, Clock::time_point now,
                Clock::time_point settled = Clock::time_point::max()) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The address of a server, not this one, that `is_wanted` and lives or may come back, as one that is silent
  // may for 10 timeouts, unless it said that it leaves. Empty: there is none.
  std::string FindAddress(const std::function<bool(const std::string& address)>& is_wanted,
                          Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether another living server, which is not about to leave, is not late.
  bool HasOtherUpToDate(Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // A living server with this one's address, first one that keeps it: by what each says of its start,
  // so that all agree. Not one that ran before this server: that is heard of no more, or leaves.
  std::optional<Namesake> FindNamesake(Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether one has precedence.
  bool MustYield(Clock::time_point now) const {
    const std::optional<Namesake> other = FindNamesake(now);
    return other.has_value() && other->has_precedence;
  }
  // Living servers, this one included.
  size_t alive(Clock::time_point now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Member {
    Clock::time_point first_seen;
    Clock::time_point seen;
    bool leaving = false;
    std::string address = {};
    bool late = false;
    int64_t started = 0;
    std::string client_address = {};
  };

  const std::string own_id_;
  const uint32_t partitions_;
  const std::string own_address_;
  const int64_t own_start_;
  const Clock::duration timeout_;
  mutable Mutex mutex_;
  // The others, by id.
  std::map<std::string, Member> members_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, Writer> writers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
