// The service grpc.health.v1.Health: whether the server serves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/sync/mutex.h"

namespace perceptrond {

class HealthWatch;
class Router;

// The server as a whole and every service of its router are SERVING until Stop. LearningService is not
// while SetLearning says so: the others still answer, so that the server goes on predicting. PredictionService and the
// inference protocol's are not while SetPredicting says so, though they answer, too.
// Thread contract: safe for any number of threads; must outlive the router's calls.
class Health {
 public:
  // Adds itself to the router, whose services it answers for.
  explicit Health(Router& router);
  // Sets the status to NOT_SERVING and notifies the watchers.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether what models learn can be made durable. Notifies the watchers of a change.
  void SetLearning(bool can_learn) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether predictions should be asked of this server rather than of others. Notifies the watchers of a change.
  void SetPredicting(bool should_predict) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether there is a service of this full name. The empty name is the server as a whole.
  bool Knows(const std::string& service) const;
  // Of a service that is known.
  bool IsServing(const std::string& service) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Notifies the watch of Stop as long as it exists.
  void Add(const std::shared_ptr<HealthWatch>& watch) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kMinCleanupSize = 16;

  void Notify() ABSL_LOCKS_EXCLUDED(mutex_);

  const Router& router_;
  mutable Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;
  bool can_learn_ ABSL_GUARDED_BY(mutex_) = true;
  bool should_predict_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<std::weak_ptr<HealthWatch>> watches_ ABSL_GUARDED_BY(mutex_);
  // The number of watches at which expired ones are removed.
  size_t cleanup_size_ ABSL_GUARDED_BY(mutex_) = kMinCleanupSize;
};

}  // namespace perceptrond
