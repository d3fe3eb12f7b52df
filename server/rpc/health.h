// grpc.health.v1.Health: whether the server serves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/sync/mutex.h"

namespace perceptrond {

class HealthWatch;
class Router;

// The server as a whole, and every service of its router, have one status: SERVING until Stop.
// Thread contract: safe for any number of threads; must outlive the router's calls.
class Health {
 public:
  // Adds itself to the router, whose services are what is asked for.
  explicit Health(Router& router);
  // NOT_SERVING from now on, and whoever watches is told.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Empty: the server as a whole.
  bool Knows(const std::string& service) const;
  bool serving() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Told of Stop as long as it lives.
  void Add(const std::shared_ptr<HealthWatch>& watch) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Router& router_;
  mutable Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<std::weak_ptr<HealthWatch>> watches_ ABSL_GUARDED_BY(mutex_);
  // Those who are gone are taken out when there are so many.
  static constexpr size_t kLeastSwept = 16;
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = kLeastSwept;
};

}  // namespace perceptrond
