// The fleet's models by name, in a stream of their own: a view in memory that follows the stream,
// and changes that are appended on condition that the view is the newest. Any server may make them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/journal/alias_map.h"
#include "core/journal/jetstream/stream.h"
#include "core/journal/journal.h"
#include "core/sync/mutex.h"
#include "perceptron/storage/v1/fleet.pb.h"

namespace perceptrond::jetstream {

namespace storage = ::perceptron::storage::v1;

// Thread contract: safe for any number of threads. Errors of every method, besides those it names:
// UNAVAILABLE, and DATA_LOSS for a message that does not parse.
class Catalogue {
 public:
  // Begins a fleet with these settings, if there is none, and reads all models. `stream` must
  // outlive it. FAILED_PRECONDITION if the fleet has other partitions, or a newer format; or,
  // unless `may_import`, if it is a copy that is not whole.
  static absl::StatusOr<std::unique_ptr<Catalogue>> Open(Stream& stream,
                                                         const storage::FleetSettings& settings,
                                                         bool may_import);
  // The settings of the fleet there is. NOT_FOUND.
  static absl::StatusOr<storage::FleetSettings> ReadSettings(const Stream& stream);
  ~Catalogue();

  // Adds a model and sets header.id, unless that is reserved. ALREADY_EXISTS; the error of `guard`; UNAVAILABLE also if
  // the id was given up.
  absl::Status Create(storage::ModelHeader& header, const ModelGuard& guard);
  // An id for a model that is to be created: the next one that fits, of which there must be one among
  // as many in a row as there are partitions.
  absl::StatusOr<uint64_t> ReserveId(const std::function<bool(uint64_t id)>& fits);
  // As Journal's.
  absl::Status Replace(const storage::ModelHeader& header, const storage::ModelHeader& before);
  // As Journal's. Returns the header of the model that was.
  absl::StatusOr<storage::ModelHeader> Delete(absl::string_view name, const ModelGuard& guard);
  // (core/journal/jetstream/sweep.cc)
  // Gives up an id that was reserved and that no model has: from now on none can be created with it. True also if its
  // model was deleted; false if a model has it, or it was never given.
  absl::StatusOr<bool> GiveUpId(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  // (core/journal/jetstream/catalogue_aliases.cc)
  // As Journal's.
  absl::Status Rename(const storage::ModelHeader& header, const storage::ModelHeader& before);
  const AliasMap& aliases() const { return aliases_; }
  absl::Status PutAlias(const Alias& alias, absl::string_view etag);
  absl::Status DeleteAlias(absl::string_view name, absl::string_view etag);
  // A model that another server created is found once that has returned, a change of one soon
  // after. NOT_FOUND.
  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name);
  // As Journal::List and Count, of what is known here.
  std::vector<storage::ModelHeader> List(absl::string_view after, size_t limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t Count() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As Journal::WatchModels; this server's own changes are passed on, too.
  using Watcher = std::function<void(const storage::ModelHeader& header, bool deleted)>;
  void Watch(Watcher watcher) ABSL_LOCKS_EXCLUDED(watcher_mutex_);

  // From now on List and Count have what others changed before.
  absl::Status Refresh() { return CatchUp().status(); }
  // The latest import; absent: there was none.
  std::optional<storage::Import> import() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Once it is appended and not finished, catalogues that may not import fail.
  absl::Status SetImport(const storage::Import& import);
  // As Journal's.
  std::string Id() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::string HistoryId() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Models = std::map<std::string, storage::ModelHeader, std::less<>>;
  // Makes the entry that changes these models, which are the newest; `next` is its sequence number.
  // Null: they are as the caller wants them already, and nothing is appended.
  using MakeEntry = std::function<absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>>(
      const Models& models, uint64_t next)>;

  Catalogue(Stream& stream, bool may_import) : stream_(stream), may_import_(may_import) {}

  absl::Status Begin(const storage::FleetSettings& settings);
  // Whether the model with this id was deleted, or the id given up (core/journal/jetstream/sweep.cc).
  absl::StatusOr<bool> WasDeleted(uint64_t id) const;
  static absl::Status NoSuchModel(absl::string_view name);
  // OK without a guard.
  static absl::Status Ask(const ModelGuard& guard, const Models& models);
  absl::Status Change(const MakeEntry& make) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the view has what the stream has now. Returns its sequence number.
  absl::StatusOr<uint64_t> CatchUp() ABSL_LOCKS_EXCLUDED(mutex_);
  void Follow() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Apply(const StreamMessage& message) ABSL_LOCKS_EXCLUDED(mutex_, watcher_mutex_);
  void ApplyToAliases(const storage::CatalogueEntry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string SubjectOf(const storage::CatalogueEntry& entry) const;
  // Gives an alias that follows by its model's entry one of its own.
  absl::Status WriteMoved(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether an alias follows the model that the entry changes by an earlier entry of that alone.
  bool MovesAlias(const storage::CatalogueEntry& entry) const ABSL_LOCKS_EXCLUDED(mutex_);

  Stream& stream_;
  const bool may_import_;
  storage::FleetSettings settings_;
  // Held while the watcher is called.
  Mutex watcher_mutex_;
  Watcher watcher_ ABSL_GUARDED_BY(watcher_mutex_);
  mutable Mutex mutex_;
  Models models_ ABSL_GUARDED_BY(mutex_);
  // Ids that were given up. A few for each server that ended during a copy.
  absl::flat_hash_set<uint64_t> given_up_ ABSL_GUARDED_BY(mutex_);
  AliasMap aliases_;
  // Aliases, with the id of the model that each follows to another name, until they have entries of their own.
  std::map<std::string, uint64_t> moved_ ABSL_GUARDED_BY(mutex_);
  std::optional<storage::Import> import_ ABSL_GUARDED_BY(mutex_);
  // The last message that models_ has.
  uint64_t applied_ ABSL_GUARDED_BY(mutex_) = 0;
  // Why the view cannot follow any more.
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);
  // The consumer that the view is read by may be lost: it is to be opened again.
  bool is_silent_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: it uses all the others.
  std::thread follower_;
};

}  // namespace perceptrond::jetstream
