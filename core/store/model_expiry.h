// The deletion of models that are not used: see perceptron.v1.Model.expire_after.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/journal/journal.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Looks at all models now and then. How long a model was not used is measured by a steady clock;
// the model's header has the wall clock's time of the last use, for the next start. A use is noted
// there when the note is older by a tenth of the model's time, and the model is deleted when its
// last use known is older by that time and kMarginOfNotes of it: so also a server that was killed
// before it had noted a use deletes nothing early.
//
// Thread contract: safe for any number of threads. Start begins one that sweeps.
class ModelExpiry {
 public:
  // ModelCore::scored.
  using Mark = std::shared_ptr<std::atomic<bool>>;
  // Parts of Model.expire_after: the least time between two notes; what a model must be unused for
  // besides; and what every model has left after a start.
  static constexpr double kBetweenNotes = 0.1;
  static constexpr double kMarginOfNotes = 0.25;
  static constexpr double kLeftAfterStart = 0.1;
  // Models are looked at this often within their time, but that takes at most a hundredth of one
  // processor's.
  static constexpr double kBetweenSweeps = 0.05;
  // The most models in one announcement to other servers.
  static constexpr size_t kMostAnnounced = 10'000;

  struct Clocks {
    std::function<absl::Time()> wall = absl::Now;
    // Time since any moment. Cannot be set.
    std::function<absl::Duration()> steady = SteadyTime;
  };
  // Called on the thread that sweeps, without a lock.
  struct Hooks {
    // As ModelCatalogue::List.
    std::function<absl::StatusOr<std::vector<storage::ModelHeader>>(absl::string_view after,
                                                                    size_t limit)>
        list;
    // Whether this server writes the model. Only then its uses are noted, and is it deleted.
    std::function<bool(uint64_t model_id)> writes;
    // Whether a stream of the model is open.
    std::function<bool(const std::string& uid)> has_streams;
    // As ModelCatalogue::SaveUse.
    std::function<absl::Status(const storage::ModelHeader& header, absl::Time last_use)> save_use;
    // Deletes the model unless `used` is set. FAILED_PRECONDITION: an alias or a composition needs
    // it, which counts as a use.
    std::function<absl::Status(const storage::ModelHeader& header, const std::atomic<bool>& used)>
        remove;
  };

  ModelExpiry(Hooks hooks, Clocks clocks) : hooks_(std::move(hooks)), clocks_(std::move(clocks)) {}
  ~ModelExpiry() { Stop(); }
  ModelExpiry(const ModelExpiry&) = delete;
  ModelExpiry& operator=(const ModelExpiry&) = delete;

  void Start();
  // Ends the thread after the model that it is looking at. Further calls have no effect.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // A model may have been given this time. If it is short, the thread looks at all models now.
  void OnExpireAfter(std::optional<absl::Duration> expire_after) ABSL_LOCKS_EXCLUDED(mutex_);
  // Looks at all models, notes uses and deletes; returns the time until the next sweep. Called by
  // the thread, or by one that did not call Start.
  absl::Duration Sweep() ABSL_LOCKS_EXCLUDED(mutex_);

  // What a model that is loaded sets when it is used: the same for all copies of a model.
  Mark MarkOf(uint64_t model_id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Model.expire_time.
  std::optional<absl::Time> ExpireTime(const storage::ModelHeader& header) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Models deleted.
  uint64_t expired() const { return expired_.load(std::memory_order_relaxed); }

  // In a fleet: the models used here whose writer should note it now.
  std::vector<uint64_t> UsedHere() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Another server has used them.
  void OnUsedElsewhere(const std::vector<uint64_t>& model_ids) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A model that expires. Times without a clock are steady.
  struct Record {
    // ModelHeader.last_use_time as it was read or written last.
    absl::Time note = absl::InfinitePast();
    absl::Duration last_use;
    // When another note is due, for a model that was used.
    absl::Duration next_note;
    // It was used since the note, and another server writes it.
    bool to_announce = false;
    bool used_elsewhere = false;
    // The last sweep that has seen it.
    uint64_t sweep = 0;
  };
  // What is due for a model.
  struct Due {
    std::optional<absl::Time> note;
    bool removal = false;
  };

  static absl::Duration SteadyTime();
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // `can_write`: whether the journal can be written, as far as this sweep knows. If not, the model's mark is read alone.
  void SweepModel(const storage::ModelHeader& header, absl::Duration expire_after, bool& can_write)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves a use from the mark to the record.
  Due Update(const storage::ModelHeader& header, absl::Duration expire_after,
             std::atomic<bool>& mark, bool has_streams, bool writes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes models that the sweep has not seen, and marks that no loaded model has.
  void RemoveUnseen(absl::Duration interval) ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mutex_);

  const Hooks hooks_;
  const Clocks clocks_;
  std::atomic<uint64_t> expired_{0};

  mutable Mutex mutex_;
  absl::flat_hash_map<uint64_t, Record> records_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Mark> marks_ ABSL_GUARDED_BY(mutex_);
  uint64_t sweep_ ABSL_GUARDED_BY(mutex_) = 0;
  // Between two sweeps, if they take no time.
  absl::Duration interval_ ABSL_GUARDED_BY(mutex_) = absl::Minutes(1);
  bool sweep_soon_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member, since it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
