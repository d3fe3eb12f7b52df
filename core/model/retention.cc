#include "core/model/retention.h"

#include <algorithm>
#include <utility>

namespace perceptrond {

bool Retention::IsCandidate(const SeenExample& seen, const Dictionary& names,
                            Sampled& candidate) const {
  // The greatest of all hashes would look like no place at all.
  const uint64_t hash = std::min(HashOf(seen, names), kNoLimit - 1);
  if (hash >= hash_limit_.load(std::memory_order_relaxed)) return false;
  RetainedRowPtr held;
  {
    ReaderMutexLock lock(&mutex_);
    if (const auto found = sample_.find(hash); found != sample_.end()) held = found->second;
  }
  if (held != nullptr) {
    std::vector<absl::string_view> unknown;
    if (SameExample(held->Seen(unknown), seen, names)) return false;
  }
  candidate = {hash, std::make_shared<const RetainedRow>(seen)};
  return true;
}

void Retention::Add(std::span<const Sampled> candidates, const Dictionary& names) {
  if (candidates.empty()) return;
  MutexLock lock(&mutex_);
  for (const Sampled& candidate : candidates) Take(candidate, names);
}

void Retention::Take(const Sampled& candidate, const Dictionary& names) {
  const auto& [hash, row] = candidate;
  if (hash >= hash_limit_.load(std::memory_order_relaxed)) return;
  const auto [place, added] = sample_.emplace(hash, row);
  if (!added) {
    std::vector<absl::string_view> unknown;
    std::vector<absl::string_view> held;
    if (!SameExample(place->second->Seen(held), row->Seen(unknown), names)) complete_ = false;
    return;
  }
  const size_t bytes = row->memory_bytes();
  sample_bytes_ += bytes;
  unsaved_bytes_ += bytes;
  while (sample_.size() > settings_.sample || sample_bytes_ > kMaxSampleBytes) Trim();
}

void Retention::Trim() {
  const auto last = std::prev(sample_.end());
  hash_limit_.store(last->first, std::memory_order_relaxed);
  sample_bytes_ -= last->second->memory_bytes();
  sample_.erase(last);
  complete_ = false;
}

void Retention::AddUpdate(RetainedUpdate update) {
  if (!keeps_updates()) return;
  MutexLock lock(&mutex_);
  updates_bytes_ += update.row->memory_bytes();
  updates_.push_back(std::move(update));
  while (updates_.size() > settings_.updates || updates_bytes_ > kMaxUpdateBytes) {
    updates_bytes_ -= updates_.front().row->memory_bytes();
    updates_.pop_front();
  }
}

void Retention::Miss() {
  MutexLock lock(&mutex_);
  complete_ = false;
}

RetentionStatistics Retention::Standing() const {
  ReaderMutexLock lock(&mutex_);
  return {updates_.size(), sample_.size(), complete_, updates_bytes_ + sample_bytes_};
}

RetainedExamples Retention::Copy() const {
  RetainedExamples copy;
  ReaderMutexLock lock(&mutex_);
  copy.updates.assign(updates_.begin(), updates_.end());
  copy.sample.assign(sample_.begin(), sample_.end());
  copy.complete = complete_;
  copy.hash_limit = hash_limit_.load(std::memory_order_relaxed);
  return copy;
}

std::vector<RetainedUpdate> Retention::CopyUpdates() const {
  ReaderMutexLock lock(&mutex_);
  return {updates_.begin(), updates_.end()};
}

size_t Retention::memory_bytes() const { return Standing().memory_bytes; }

size_t Retention::unsaved_bytes() const {
  ReaderMutexLock lock(&mutex_);
  return unsaved_bytes_;
}

void Retention::Saved(size_t bytes) {
  MutexLock lock(&mutex_);
  unsaved_bytes_ -= std::min(bytes, unsaved_bytes_);
}

void Retention::Restore(RetainedExamples examples) {
  for (RetainedUpdate& update : examples.updates) AddUpdate(std::move(update));
  MutexLock lock(&mutex_);
  hash_limit_.store(examples.hash_limit, std::memory_order_relaxed);
  for (Sampled& one : examples.sample) {
    sample_bytes_ += one.second->memory_bytes();
    sample_.insert(std::move(one));
  }
}

void Retention::Settle(bool complete, uint64_t sampled) {
  MutexLock lock(&mutex_);
  complete_ = complete_ && complete && sample_.size() == sampled;
}

}  // namespace perceptrond
