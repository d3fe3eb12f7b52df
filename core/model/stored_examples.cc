#include "core/model/stored_examples.h"

#include <algorithm>
#include <utility>

namespace perceptrond {

void StoredExamples::Sampler::Offer(const SeenExample& seen, const Dictionary& names,
                                    std::vector<SampledRow>& candidates) {
  // The greatest hash is reserved for "no limit".
  const uint64_t hash = std::min(HashOf(seen, names), kNoLimit - 1);
  if (hash >= stored_.hash_limit_.load(std::memory_order_relaxed)) return;
  if (Holds(hash, seen, names)) return;
  candidates.emplace_back(hash, std::make_shared<const StoredRow>(seen));
}

bool StoredExamples::Sampler::Holds(uint64_t hash, const SeenExample& seen,
                                    const Dictionary& names) {
  if (!std::exchange(locked_, true)) stored_.mutex_.ReaderLock();
  const auto found = stored_.sample_.find(hash);
  if (found == stored_.sample_.end()) return false;
  std::vector<absl::string_view> unknown;
  return SameExample(found->second->Seen(unknown), seen, names);
}

void StoredExamples::Sampler::Release() {
  if (std::exchange(locked_, false)) stored_.mutex_.ReaderUnlock();
}

void StoredExamples::Add(std::span<const SampledRow> candidates, const Dictionary& names) {
  if (candidates.empty()) return;
  MutexLock lock(&mutex_);
  for (const SampledRow& candidate : candidates) AddToSample(candidate, names);
}

void StoredExamples::AddToSample(const SampledRow& candidate, const Dictionary& names) {
  const auto& [hash, row] = candidate;
  if (hash >= hash_limit_.load(std::memory_order_relaxed)) return;
  const auto [entry, added] = sample_.emplace(hash, row);
  if (!added) {
    std::vector<absl::string_view> unknown;
    std::vector<absl::string_view> held;
    if (!SameExample(entry->second->Seen(held), row->Seen(unknown), names)) complete_ = false;
    return;
  }
  const size_t bytes = row->memory_bytes();
  sample_bytes_ += bytes;
  unsaved_bytes_ += bytes;
  while (sample_.size() > settings_.sample || sample_bytes_ > kMaxSampleBytes) DropLargestHash();
}

void StoredExamples::DropLargestHash() {
  const auto last = std::prev(sample_.end());
  hash_limit_.store(last->first, std::memory_order_relaxed);
  sample_bytes_ -= last->second->memory_bytes();
  sample_.erase(last);
  complete_ = false;
}

void StoredExamples::AddUpdate(StoredUpdate update) {
  if (!keeps_updates()) return;
  MutexLock lock(&mutex_);
  updates_bytes_ += update.row->memory_bytes();
  updates_.push_back(std::move(update));
  while (updates_.size() > settings_.updates || updates_bytes_ > kMaxUpdateBytes) {
    updates_bytes_ -= updates_.front().row->memory_bytes();
    updates_.pop_front();
  }
}

void StoredExamples::MarkIncomplete() {
  MutexLock lock(&mutex_);
  complete_ = false;
}

StoredExamplesStatistics StoredExamples::statistics() const {
  ReaderMutexLock lock(&mutex_);
  return {updates_.size(), sample_.size(), complete_, updates_bytes_ + sample_bytes_};
}

StoredExamplesCopy StoredExamples::Copy() const {
  StoredExamplesCopy copy;
  ReaderMutexLock lock(&mutex_);
  copy.updates.assign(updates_.begin(), updates_.end());
  copy.sample.assign(sample_.begin(), sample_.end());
  copy.complete = complete_;
  copy.hash_limit = hash_limit_.load(std::memory_order_relaxed);
  return copy;
}

std::vector<StoredUpdate> StoredExamples::CopyUpdates() const {
  ReaderMutexLock lock(&mutex_);
  return {updates_.begin(), updates_.end()};
}

size_t StoredExamples::unsaved_bytes() const {
  ReaderMutexLock lock(&mutex_);
  return unsaved_bytes_;
}

void StoredExamples::MarkSaved(size_t bytes) {
  MutexLock lock(&mutex_);
  unsaved_bytes_ -= std::min(bytes, unsaved_bytes_);
}

void StoredExamples::Restore(StoredExamplesCopy examples) {
  for (StoredUpdate& update : examples.updates) AddUpdate(std::move(update));
  MutexLock lock(&mutex_);
  hash_limit_.store(examples.hash_limit, std::memory_order_relaxed);
  for (SampledRow& row : examples.sample) {
    sample_bytes_ += row.second->memory_bytes();
    sample_.insert(std::move(row));
  }
}

void StoredExamples::FinishRecovery(bool complete, uint64_t sampled) {
  MutexLock lock(&mutex_);
  complete_ = complete_ && complete && sample_.size() == sampled;
}

}  // namespace perceptrond
