// How much each principal uses: counts for metrics, and the limit of its examples a second.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/sync/mutex.h"
#include "server/access/rules.h"

namespace perceptrond {

// A limit of examples a second, by a token bucket of one second. What is used beyond it is a debt,
// which later examples wait for: how many a message has is known only once it is parsed.
//
// Thread contract: safe for any number of threads.
class RateLimit {
 public:
  // 0: no limit. What is owed stays owed.
  void Set(uint64_t per_second) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts examples that are being handled.
  void Use(uint64_t examples, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // How long until the debt is paid; zero if nothing is owed.
  absl::Duration Wait(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Earn(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  double per_second_ ABSL_GUARDED_BY(mutex_) = 0;
  // At most per_second_; below zero: owed.
  double credit_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// Of one principal. Thread contract: safe for any number of threads.
struct PrincipalUsage {
  enum Outcome : uint8_t { kOk, kError, kDenied };

  void AddExamples(uint64_t number);

  RateLimit examples_limit;
  // By outcome.
  std::array<std::atomic<uint64_t>, 3> calls{};
  std::atomic<uint64_t> examples{0};
  // Unary calls that were refused and streams that were paused for the limit.
  std::atomic<uint64_t> limited{0};
};

// The principal that the examples this thread reads are counted for; null for none.
inline constinit thread_local PrincipalUsage* counted_usage = nullptr;

// Counts examples that this thread reads for a principal, as long as it exists.
class CountedUsage {
 public:
  // Null: for none.
  explicit CountedUsage(std::shared_ptr<PrincipalUsage> usage) : usage_(std::move(usage)) {
    counted_usage = usage_.get();
  }
  ~CountedUsage() { counted_usage = nullptr; }
  CountedUsage(const CountedUsage&) = delete;
  CountedUsage& operator=(const CountedUsage&) = delete;

 private:
  const std::shared_ptr<PrincipalUsage> usage_;
};

// To be called by the thread that reads examples.
inline void CountExamples(uint64_t examples) {
  if (counted_usage != nullptr) counted_usage->AddExamples(examples);
}

// Figures of one principal for the metrics. A plain value.
struct PrincipalMetrics {
  // "" are callers that were not recognized, "other" are the principals after the first kMaxNamed.
  std::string name;
  std::array<uint64_t, 3> calls{};
  uint64_t examples = 0;
  uint64_t limited = 0;
};

// Of all principals, across changes of the access file. Thread contract: safe for any number of
// threads.
class PrincipalUsages {
 public:
  // Principals with metrics of their own.
  static constexpr size_t kMaxNamed = 100;

  // `default_limit`: the examples a second of principals without a limit of their own; 0: any.
  explicit PrincipalUsages(uint64_t default_limit) : default_limit_(default_limit) {}

  // Takes over the names and limits of new rules, and drops principals that are not among them.
  void Use(const AccessRules& rules) ABSL_LOCKS_EXCLUDED(mutex_);
  // That of a principal of the rules in use; "" is for callers that are not recognized. Never null.
  std::shared_ptr<PrincipalUsage> Find(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for a principal of rules that Use may get a moment later; null: "".
  std::shared_ptr<PrincipalUsage> Find(const Principal* principal) ABSL_LOCKS_EXCLUDED(mutex_);
  // In the order of the file.
  std::vector<PrincipalMetrics> metrics() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Sets the limit, too.
  std::shared_ptr<PrincipalUsage> FindOrAdd(const Principal& principal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t default_limit_;
  mutable Mutex mutex_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<PrincipalUsage>> usages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
