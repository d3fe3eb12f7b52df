// What this server is in one partition of the fleet's journal: its writer, or one that follows. The
// log alone decides it: the writer is whose take-over is the last one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/fleet/followers.h"
#include "core/fleet/log_lag.h"
#include "core/fleet/members.h"
#include "core/journal/journal.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// One thread reads the partition's log, has the models in memory follow it, and takes the partition
// over when its writer was not heard of for some time, or has released it.
//
// Thread contract: safe for any number of threads.
class PartitionRole {
 public:
  using Clock = Members::Clock;

  struct Settings {
    // Where other servers reach this one.
    std::string address;
    // A writer that was not heard of for this time is taken for dead.
    absl::Duration writer_timeout;
    // Servers that come after others in the partition's order wait this much longer each.
    absl::Duration rank_delay;
    // A server must have been heard of for this time before a partition is handed over to it.
    absl::Duration settle_time;
    std::function<Clock::time_point()> now;
  };
  struct Hooks {
    // Models in memory that must leave it, for this reason. With `commit` what they have learned is
    // committed first. Blocks until they have.
    std::function<void(const std::vector<std::shared_ptr<Model>>& models, bool commit,
                       const absl::Status& why)>
        drop;
    Followers::OnFollowed on_followed;
    // This server is about to hand these models over, and still writes them: what other servers have evaluated of them
    // and not sent yet can be counted now. May block for a moment.
    std::function<void(const std::vector<std::shared_ptr<Model>>& models)> before_hand_over;
    // The role has changed: others should know.
    std::function<void()> on_change;
    // The log has become another one, as after the restore of an older copy, or entries are gone that were not read. The
    // models are loaded again. May be null.
    std::function<void(uint32_t partition, const absl::Status& why)> on_reload;
  };
  struct Stats {
    bool writes = false;
    int64_t epoch = 0;
    // Take-overs of this server.
    uint64_t take_overs = 0;
    // Entries that were applied to models here.
    uint64_t entries = 0;
    // When the log was last read to its end, or as far as it was there.
    absl::Duration since_contact;
    // As lag().
    absl::Duration lag;
    // Entries of the log that are not read yet.
    uint64_t pending = 0;
    // The journal answered when it was last asked for the partition's end.
    bool answers = true;
  };

  // Everything must outlive it.
  PartitionRole(Journal& journal, uint32_t partition, Members& members, Settings settings,
                Hooks hooks);
  // Ends the thread. Does not release the partition: see Leave.
  ~PartitionRole();

  Followers& followers() { return followers_; }
  // Whether this server writes the partition.
  bool writes() const { return writes_.load(std::memory_order_acquire); }
  // Adds what others should know, if it writes or has released the partition.
  void AddTo(fleet_proto::Heartbeat& heartbeat) const;
  // A commit failed: what this server has in memory may not be what the log has. It follows until
  // it has taken over again.
  void OnWriteFailure() { failed_.store(true, std::memory_order_release); }
  // Commits, releases the partition if this server writes it, and takes it over no more; its models
  // follow no more either. Does not wait.
  void Leave() { leaving_.store(true, std::memory_order_release); }
  // Waits until it has left, for at most this time.
  void AwaitLeft(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  Stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);
  // How long ago the log had entries that the models here lack, when the log was last read: while it cannot be read
  // this does not grow. By the monotonic clock of this server.
  absl::Duration lag() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return Lag();
  }
  // When the log was last read to its end.
  Clock::time_point contact() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return contact_;
  }

 private:
  void Run();
  absl::Duration Lag() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for entries and applies them to the models. False if none came.
  bool Read();
  void Take(const SequencedEntry& entry);
  void OnTakeOver(const SequencedEntry& entry);
  void OnTailError(const absl::Status& why);
  // What there is to do once the log is read.
  void Decide();
  // From the writer of `epoch`, or the one that the log has where it was opened, if nobody has followed that.
  void TryTakeOver(int64_t epoch);
  // The journal's last sequence number. Notes whether it answered.
  absl::StatusOr<uint64_t> AskForEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops the models, and reads the log from where it ends.
  void Reload(const absl::Status& why);
  // Asks now and then where the log ends, and whether who is taken for its writer has taken it over.
  void CheckLog(Clock::time_point now);
  // Ends this server's writing. `commit`: of its own will.
  void StopWriting(bool commit, const absl::Status& why);
  // Whether another server should write the partition rather than this one.
  bool HasBetterWriter(Clock::time_point now) const;
  // Whether the thread has nothing more to do.
  bool has_ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for a moment, or until it is to stop.
  void Pause() const ABSL_LOCKS_EXCLUDED(mutex_);

  Journal& journal_;
  const uint32_t partition_;
  Members& members_;
  const Settings settings_;
  const Hooks hooks_;
  Followers followers_;

  std::atomic<bool> leaving_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> writes_ = false;
  // Of this server's last take-over; 0: it had none.
  std::atomic<int64_t> own_epoch_ = 0;
  // The epoch that it released; 0: none.
  std::atomic<int64_t> released_ = 0;

  // Used by the thread alone.
  std::unique_ptr<JournalTail> tail_;
  // The last entry that the tail has read, or where it began.
  uint64_t read_to_ = 0;
  // When the thread began to follow the log, or another one, or could read it again: who was silent before may not have
  // been heard.
  Clock::time_point begun_;
  // The log could not be read last.
  bool is_away_ = false;
  // A take-over of this server that was written and not read yet; 0: there is none.
  int64_t awaited_epoch_ = 0;
  Clock::time_point last_asked_;

  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point contact_ ABSL_GUARDED_BY(mutex_);
  LogLag lag_ ABSL_GUARDED_BY(mutex_);
  // The last attempt to read the log succeeded.
  bool reads_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
