// A committer for each partition of the journal: one that does not answer holds up no other.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/store/committer.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class Committers {
 public:
  // As Committer's. The callbacks are called on several threads, those of one model on one.
  Committers(Journal& journal, const Committer::Options& options,
             const std::function<void(Model&, const absl::Status&)>& on_failure,
             const std::function<void(const std::shared_ptr<Model>&)>& on_commit);

  // As Committer's. A waiter's submissions are of models of one partition.
  void Submit(std::shared_ptr<Model> model, std::shared_ptr<CommitWaiter> waiter,
              absl::Duration delay);
  void Submit(std::shared_ptr<Model> model, Committer::Done done, bool whole = false);
  bool Defer(const std::shared_ptr<Model>& model) { return Of(*model).Defer(model); }
  void WriteDeferred() {
    for (const std::unique_ptr<Committer>& one : all_) one->WriteDeferred();
  }
  absl::Status Commit(const std::shared_ptr<Model>& model) {
    return Of(*model).Commit({&model, 1});
  }
  // Of models of one partition.
  absl::Status CommitAll(std::span<const std::shared_ptr<Model>> models) {
    return models.empty() ? absl::OkStatus() : Of(*models.front()).Commit(models);
  }

  // The sums.
  uint64_t commits() const;
  uint64_t failures() const;
  absl::Duration busy() const;
  // The longest.
  absl::Duration oldest_wait() const;

 private:
  Committer& Of(const Model& model) { return *all_[journal_.PartitionOf(model.id())]; }

  Journal& journal_;
  // By partition.
  std::vector<std::unique_ptr<Committer>> all_;
};

}  // namespace perceptrond
