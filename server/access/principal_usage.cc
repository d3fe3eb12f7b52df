#include "server/access/principal_usage.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace perceptrond {

void RateLimit::Set(uint64_t per_second) {
  MutexLock lock(&mutex_);
  const auto rate = static_cast<double>(per_second);
  // A new limit begins with a full second.
  if (per_second_ == 0) credit_ = rate;
  per_second_ = rate;
  credit_ = std::min(credit_, rate);
}

void RateLimit::Use(uint64_t examples, absl::Time now) {
  MutexLock lock(&mutex_);
  if (per_second_ == 0) return;
  Earn(now);
  credit_ -= static_cast<double>(examples);
}

absl::Duration RateLimit::Wait(absl::Time now) {
  MutexLock lock(&mutex_);
  if (per_second_ == 0) return absl::ZeroDuration();
  Earn(now);
  return credit_ >= 0 ? absl::ZeroDuration() : absl::Seconds(-credit_ / per_second_);
}

void RateLimit::Earn(absl::Time now) {
  const double seconds = time_ == absl::InfinitePast() ? 0 : absl::ToDoubleSeconds(now - time_);
  credit_ = std::min(per_second_, credit_ + std::max(0.0, seconds) * per_second_);
  time_ = std::max(time_, now);
}

void PrincipalUsage::AddExamples(uint64_t number) {
  examples.fetch_add(number, std::memory_order_relaxed);
  examples_limit.Use(number, absl::Now());
}

void PrincipalUsages::Use(const AccessRules& rules) {
  MutexLock lock(&mutex_);
  std::map<std::string, std::shared_ptr<PrincipalUsage>> kept;
  names_.clear();
  for (const Principal& principal : rules.principals()) {
    names_.push_back(principal.name);
    kept.emplace(principal.name, FindOrAdd(principal));
  }
  const auto unknown = usages_.find("");
  if (unknown != usages_.end()) kept.insert(*unknown);
  usages_ = std::move(kept);
}

std::shared_ptr<PrincipalUsage> PrincipalUsages::FindOrAdd(const Principal& principal) {
  std::shared_ptr<PrincipalUsage>& usage = usages_[principal.name];
  if (usage == nullptr) usage = std::make_shared<PrincipalUsage>();
  usage->examples_limit.Set(principal.max_examples_per_second.value_or(default_limit_));
  return usage;
}

std::shared_ptr<PrincipalUsage> PrincipalUsages::Find(const Principal* principal) {
  if (principal == nullptr) return Find("");
  MutexLock lock(&mutex_);
  const auto found = usages_.find(principal->name);
  // New rules are in use a moment before Use gets them.
  return found != usages_.end() ? found->second : FindOrAdd(*principal);
}

std::shared_ptr<PrincipalUsage> PrincipalUsages::Find(const std::string& name) {
  MutexLock lock(&mutex_);
  const auto found = usages_.find(name);
  if (found != usages_.end()) return found->second;
  std::shared_ptr<PrincipalUsage>& unknown = usages_[""];
  if (unknown == nullptr) unknown = std::make_shared<PrincipalUsage>();
  return unknown;
}

std::vector<PrincipalMetrics> PrincipalUsages::metrics() const {
  MutexLock lock(&mutex_);
  std::vector<PrincipalMetrics> metrics;
  const auto add = [&](PrincipalMetrics& one, const PrincipalUsage& usage) {
    for (size_t i = 0; i < one.calls.size(); ++i) one.calls[i] += usage.calls[i].load();
    one.examples += usage.examples.load();
    one.limited += usage.limited.load();
  };
  metrics.emplace_back();
  if (const auto unknown = usages_.find(""); unknown != usages_.end())
    add(metrics.back(), *unknown->second);
  for (const std::string& name : names_) {
    // After the first entry, which is for the unknown.
    if (metrics.size() <= kMaxNamed) {
      metrics.emplace_back().name = name;
    } else if (metrics.size() == kMaxNamed + 1) {
      metrics.emplace_back().name = "other";
    }
    add(metrics.back(), *usages_.at(name));
  }
  return metrics;
}

}  // namespace perceptrond
