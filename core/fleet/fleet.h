// This server as one of a fleet: which partitions of the journal it writes, and how its models
// follow the writers of the others. docs/adr/0046-fleet-journal.md says how writers are fenced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/fleet/members.h"
#include "core/fleet/partition_role.h"
#include "core/journal/journal.h"
#include "core/model/model.h"
#include "core/sync/mutex.h"

namespace perceptrond {

struct FleetOptions {
  // Where other servers reach this one: host:port.
  std::string address;
  // Where clients reach it.
  std::string client_address;
  absl::Duration heartbeat = absl::Milliseconds(500);
  // A writer that was not heard of for this time is taken for dead.
  absl::Duration writer_timeout = absl::Seconds(2);
  absl::Duration rank_delay = absl::Milliseconds(250);
  // How long a new server must be there before it is given partitions.
  absl::Duration settle_time = absl::Seconds(3);
  // What failed deletions have left is swept so often, and settle_time after this server took a partition over.
  absl::Duration sweep_interval = absl::Minutes(10);
  // A server whose copies lack updates that the log has had for longer should not be asked to predict.
  absl::Duration max_lag = absl::Seconds(30);
  // Measures silence, lag and contact; replaceable in tests.
  std::function<Members::Clock::time_point()> now = Members::Clock::now;
  // How long a hand-over waits for counts of rows that other servers have evaluated: who is silent for longer is taken for
  // dead.
  absl::Duration rest_time() const { return std::min(writer_timeout, max_rest_time); }
  absl::Duration max_rest_time = absl::Seconds(5);
  // How long Leave waits for all hand-overs.
  absl::Duration leave_time = absl::Seconds(10);
};

// Thread contract: safe for any number of threads.
class Fleet {
 public:
  struct Hooks {
    // As PartitionRole::Hooks.
    std::function<void(const std::vector<std::shared_ptr<Model>>& models, bool commit,
                       const absl::Status& why)>
        drop;
    Followers::OnFollowed on_followed;
    std::function<void(const std::vector<std::shared_ptr<Model>>& models)> before_hand_over;
    std::function<void(uint32_t partition, const absl::Status& why)> on_reload;
    // Another server has this one's address. Called now and then. May be null.
    std::function<void(const Members::Namesake& other)> on_namesake;
    // The server is about to leave the fleet. May be null.
    std::function<void()> on_leave;
    // What this server tells the others in Heartbeat.used_models, and what another told. May be null.
    std::function<std::vector<uint64_t>()> used_models;
    std::function<void(const std::vector<uint64_t>& model_ids)> on_used_models;
    // Another server changed or deleted a model. On a thread that may block.
    Journal::ModelWatcher on_model_changed;
  };

  // Everything must outlive it.
  Fleet(Journal& journal, const FleetOptions& options, Hooks hooks);
  // Ends following. Call Leave before.
  ~Fleet();

  Followers& FollowersOf(uint64_t model_id) { return RoleOf(model_id).followers(); }
  // Whether this server writes the model.
  bool Writes(uint64_t model_id) { return RoleOf(model_id).writes(); }
  // Returns true if it writes the model as far as is known now: it has read the log to its end so lately that no other
  // server can have taken over since, and there it would have found an earlier take-over.
  bool WritesNow(uint64_t model_id) { return WritesNow(RoleOf(model_id).stats()); }
  // Whether it writes any.
  bool WritesAny() const;
  Writer WriterOf(uint64_t model_id) const {
    return members_.WriterOf(journal_.PartitionOf(model_id));
  }
  // Whether the model's writer is known to split texts as this server does.
  bool WriterSplitsTextsAlike(uint64_t model_id) const;
  // Whether another server writes the model, and was heard of lately: else a third would have taken
  // over.
  bool HasOtherWriter(uint64_t model_id) const;
  // The time that the state of a model has here, for which WritesNow is false: its writer was alive
  // then, and the log has been read to its end since.
  absl::Time StateTimeOf(uint64_t model_id);
  // How long a copy of the model may be waited for that lacks what its writer has committed: not at
  // all while the log is not read.
  absl::Duration LongestWait(uint64_t model_id) {
    return IsInContact(RoleOf(model_id).stats()) ? options_.writer_timeout : absl::ZeroDuration();
  }
  // Whether what is learned can be committed, as far as is known: the log of each partition was
  // read to its end lately, and answered when it was last asked. Not on a server whose address is
  // another's.
  bool can_commit() const;
  // Whether another server has this one's address, and keeps it: this one must write nothing.
  bool must_yield() const { return members_.MustYield(options_.now()); }
  // Whether clients should ask this server for predictions: its copies are not late by more than max_lag, or
  // those of all living servers are. A server that cannot read the log does not know how late it is.
  bool should_predict() const { return !is_late() || !members_.HasOtherUpToDate(options_.now()); }
  absl::Duration rest_time() const { return options_.rest_time(); }
  void OnWriteFailure(uint64_t model_id) { RoleOf(model_id).OnWriteFailure(); }
  // Releases all partitions, so that other servers take them over at once, and waits for it.
  void Leave();
  const std::string& address() const { return options_.address; }

  // `writes` as WritesNow.
  std::vector<PartitionRole::Stats> stats() const;
  // As Members::FindAddress.
  std::string FindAddress(const std::function<bool(const std::string& address)>& is_wanted) const {
    return members_.FindAddress(is_wanted, options_.now());
  }
  // Living servers.
  size_t servers() const { return members_.alive(options_.now()); }

 private:
  // Whether copies here lack updates that the log has had for longer than max_lag.
  bool is_late() const;
  // Whether the log of a role with these was read to its end lately.
  bool IsInContact(const PartitionRole::Stats& stats) const;
  bool WritesNow(const PartitionRole::Stats& stats) const;
  PartitionRole& RoleOf(uint64_t model_id) { return *roles_[journal_.PartitionOf(model_id)]; }
  void Announce();
  void SendHeartbeats() ABSL_LOCKS_EXCLUDED(mutex_);
  void AnnounceUsedModels();
  // Reports another server with this one's address, now and then.
  void CheckNamesake();
  void PassOnChanges() ABSL_LOCKS_EXCLUDED(mutex_);
  void Sweep() ABSL_LOCKS_EXCLUDED(mutex_);
  // Take-overs of this server.
  uint64_t take_overs() const;

  Journal& journal_;
  const FleetOptions options_;
  const Hooks hooks_;
  const std::string id_;
  const int64_t started_;
  Members members_;
  std::vector<std::unique_ptr<PartitionRole>> roles_;
  // Used by heartbeats_ alone: what was last reported of another server with this one's address, and when.
  std::optional<std::pair<Members::Clock::time_point, bool>> reported_;

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  // Heartbeats that were asked for beyond the regular ones, and how many of those are sent.
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;
  struct Change {
    storage::ModelHeader header;
    bool deleted = false;
  };
  // A model's id, and its name, which may change.
  using ModelName = std::pair<uint64_t, std::string>;
  // The last change of each model that is not passed on yet, and those models in the order of their first one: passing on
  // may wait for a model that is loaded, and others change one model as often as they like.
  std::map<ModelName, Change> changes_ ABSL_GUARDED_BY(mutex_);
  std::deque<ModelName> changed_ ABSL_GUARDED_BY(mutex_);
  // The last members: they use all the others.
  std::thread heartbeats_;
  std::thread changes_thread_;
  std::thread sweeper_;
};

}  // namespace perceptrond
