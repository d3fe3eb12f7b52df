// grpc.health.v1.Health: whether the server serves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class HealthWatch;
class Router;

// The server as a whole, and every service of its router, have one status: SERVING until Stop.
// Thread contract: safe for any number of threads; must outlive the router's calls.
class Health {
 public:
  // After all other services: they are what is asked for.
  void AddTo(Router& router);
  // NOT_SERVING from now on, and whoever watches is told.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Empty: the server as a whole.
  bool Knows(const std::string& service) const { return services_.contains(service); }
  bool serving() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Told of Stop as long as it lives.
  void Add(const std::shared_ptr<HealthWatch>& watch) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::flat_hash_set<std::string> services_;
  mutable Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<std::weak_ptr<HealthWatch>> watches_ ABSL_GUARDED_BY(mutex_);
  // Those who are gone are taken out when there are so many.
  static constexpr size_t kLeastSwept = 16;
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = kLeastSwept;
};

}  // namespace perceptrond
