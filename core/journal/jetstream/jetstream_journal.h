// The journal of a fleet, in the streams of a NATS JetStream cluster, which replicates them. Any
// number of servers opens it; each partition has one writer at a time.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/journal/jetstream/announcements.h"
#include "core/journal/jetstream/catalogue.h"
#include "core/journal/jetstream/connection.h"
#include "core/journal/jetstream/partition.h"
#include "core/journal/jetstream/stream.h"
#include "core/journal/journal.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class JetStreamJournal final : public Journal {
 public:
  struct Options {
    jetstream::ConnectionOptions connection;
    // Names the fleet's streams: letters, digits and dashes.
    std::string fleet = "perceptrond";
    // Fixed when the fleet is created.
    uint32_t partitions = 16;
    // Servers that keep each stream.
    int replicas = 3;
    // The journal becomes a copy: it has no models, or is a copy that was begun.
    std::optional<ImportOptions> import;
    // Open the fleet there is, whatever its partitions and replicas, and change nothing but its
    // writers (ExcludeOthers).
    bool read_only = false;
    // For tests.
    bool in_memory = false;
    // A snapshot is cut into parts of about this size before it is cut into messages.
    size_t snapshot_part_bytes = 8 << 20;
  };

  // Creates the fleet's streams if there are none. FAILED_PRECONDITION if they, or the fleet, have
  // other settings, or are a copy that is not whole; NOT_FOUND if there is no fleet to read;
  // RESOURCE_EXHAUSTED if the cluster has too few servers or too little space; UNAVAILABLE;
  // UNAUTHENTICATED; PERMISSION_DENIED, naming what is not allowed.
  static absl::StatusOr<std::unique_ptr<JetStreamJournal>> Open(const Options& options);

  absl::StatusOr<storage::ModelHeader> Find(absl::string_view name) override;
  absl::Status Replace(const storage::ModelHeader& header,
                       const storage::ModelHeader& before) override;
  absl::Status Rename(const storage::ModelHeader& header,
                      const storage::ModelHeader& before) override;
  const AliasMap& aliases() const override { return catalogue_->aliases(); }
  absl::Status PutAlias(const Alias& alias, absl::string_view etag) override;
  absl::Status DeleteAlias(absl::string_view name, absl::string_view etag) override;
  absl::Status SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                        storage::KeptSnapshot& kept) override;
  absl::StatusOr<storage::Snapshot> LoadKept(uint64_t model_id,
                                             const storage::KeptSnapshot& kept) override;
  absl::Status DeleteKept(uint64_t model_id, const storage::KeptSnapshot& kept) override;
  absl::StatusOr<std::vector<storage::ModelHeader>> List(absl::string_view after,
                                                         size_t limit) override;
  absl::StatusOr<uint64_t> Count() override;
  absl::Status Refresh() override { return catalogue_->Refresh(); }
  uint32_t partitions() const override { return static_cast<uint32_t>(partitions_.size()); }
  // `sync` means nothing: what is committed is held by a majority of the servers.
  absl::StatusOr<CommitOutcome> Commit(std::span<const JournalEntry> entries,
                                       const CommitOptions& options) override;
  absl::StatusOr<CommitOutcome> TakeOver(uint32_t partition, const std::string& address,
                                         uint64_t expected) override;
  absl::StatusOr<uint64_t> LastSequence(uint32_t partition) override;
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override;
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::Status Sweep() override;
  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override;
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override;
  absl::Status Replay(uint64_t model_id, uint64_t after_revision,
                      const ReplayCallback& replay) override;
  absl::StatusOr<std::optional<storage::Snapshot>> LoadSnapshot(uint64_t model_id) override;
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override;
  absl::StatusOr<storage::History> LoadHistory(uint64_t model_id) override;
  // A failed commit leaves nothing that is read.
  absl::Status DropAfter(uint64_t /*model_id*/, uint64_t /*revision*/) override {
    return absl::OkStatus();
  }
  absl::Status Announce(absl::string_view message) override {
    return announcements_->Send(message);
  }
  void Listen(std::function<void(absl::string_view message)> listener) override {
    announcements_->Listen(std::move(listener));
  }
  void WatchModels(ModelWatcher watcher) override { catalogue_->Watch(std::move(watcher)); }
  absl::Status ExcludeOthers() override;
  absl::Status BeginImport() override;
  absl::Status FinishImport() override;
  std::string Id() override { return catalogue_->Id(); }
  std::string HistoryId() override { return catalogue_->HistoryId(); }

 private:
  absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) override;
  absl::Status DeleteModel(absl::string_view name, const ModelGuard& guard) override;
  absl::Status CreateLearned(storage::ModelHeader& header, const storage::Snapshot& snapshot,
                             const CommittedState& committed, const ModelGuard& guard) override
      ABSL_LOCKS_EXCLUDED(creating_mutex_);
  explicit JetStreamJournal(Options options) : options_(std::move(options)) {}

  absl::Status OpenStreams();
  absl::Status OpenStreams(const std::shared_ptr<jetstream::Connection>& connection);
  // FAILED_PRECONDITION for a journal that is only read.
  absl::Status CheckWritable() const;
  // Waits some seconds until nobody else has the journal open. FAILED_PRECONDITION.
  absl::Status AwaitOthersEnd() const;
  jetstream::Partition& PartitionFor(uint64_t model_id) {
    return *partitions_[PartitionOf(model_id)];
  }
  // Of each model: the last number that was given, and the names of its kept snapshots.
  using KeptNames = absl::flat_hash_map<uint64_t, std::pair<uint64_t, std::set<std::string>>>;

  std::string PiecesOf(uint64_t model_id) const;
  // Of snapshots that users keep.
  std::string KeptPiecesOf(uint64_t model_id) const;
  std::string PiecesOf(uint64_t model_id, const storage::KeptSnapshot& kept) const;
  static std::string NameOf(const storage::KeptSnapshot& kept);
  // Whether a subject of the stream has what no model has any more, of a partition that this opener writes.
  absl::StatusOr<bool> IsLeft(const std::string& stream, absl::string_view subject,
                              const KeptNames& kept);
  // Has a model that the catalogue lacks never be created, unless somebody may be creating it: then false.
  absl::StatusOr<bool> GiveUp(uint64_t model_id) ABSL_LOCKS_EXCLUDED(creating_mutex_);
  // Reads the snapshot whose pieces, of parts of these sizes, have this subject.
  absl::StatusOr<storage::Snapshot> ReadPieces(const std::string& subject,
                                               std::span<const uint64_t> part_bytes);
  // Writes a snapshot in pieces with this subject. The bytes of each part, and the sequence number of
  // the first piece.
  struct WrittenPieces {
    std::vector<uint64_t> part_bytes;
    uint64_t first = 0;
  };
  absl::StatusOr<WrittenPieces> WritePieces(const std::string& subject,
                                            const storage::Snapshot& snapshot);

  const Options options_;
  std::unique_ptr<jetstream::Stream> catalogue_stream_;
  std::unique_ptr<jetstream::Stream> snapshots_;
  std::vector<std::unique_ptr<jetstream::Partition>> partitions_;
  std::unique_ptr<jetstream::Announcements> announcements_;
  // Uses its stream until it is destroyed.
  std::unique_ptr<jetstream::Catalogue> catalogue_;
  Mutex creating_mutex_;
  // The ids of models whose states this opener writes before the catalogue has them.
  absl::flat_hash_set<uint64_t> creating_ ABSL_GUARDED_BY(creating_mutex_);
};

}  // namespace perceptrond
