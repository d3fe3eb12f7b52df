#include "core/store/model_cache.h"

#include <utility>

#include "core/model/views.h"
#include "core/sync/wait_timer.h"

namespace perceptrond {

absl::StatusOr<std::shared_ptr<Model>> ModelCache::Acquire(absl::string_view name) {
  {
    MutexLock lock(&mutex_);
    AwaitLoad(name);
    if (const auto found = slots_.find(name); found != slots_.end()) {
      lru_.splice(lru_.begin(), lru_, found->second.position);
      return found->second.model;
    }
    lru_.emplace_front(name);
    slots_.emplace(name, Slot{nullptr, 0, lru_.begin()});
  }
  const WaitTimer timer(Wait::kLoad);
  absl::StatusOr<std::shared_ptr<Model>> model = load_(name);
  if (!model.ok()) {
    MutexLock lock(&mutex_);
    RemoveSlot(name);
    return model;
  }
  const size_t bytes = MeasureMemory(**model).total;
  MutexLock lock(&mutex_);
  Slot& slot = slots_[name];
  slot.model = *model;
  slot.bytes = bytes;
  bytes_ += bytes;
  ++loads_;
  Evict();
  return model;
}

std::shared_ptr<Model> ModelCache::Find(absl::string_view name) const {
  MutexLock lock(&mutex_);
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second.model;
}

std::shared_ptr<Model> ModelCache::FindAfterLoad(absl::string_view name) const {
  MutexLock lock(&mutex_);
  AwaitLoad(name);
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second.model;
}

std::vector<std::shared_ptr<Model>> ModelCache::All() const {
  std::vector<std::shared_ptr<Model>> models;
  MutexLock lock(&mutex_);
  for (const auto& [name, slot] : slots_) {
    if (slot.model != nullptr) models.push_back(slot.model);
  }
  return models;
}

void ModelCache::Remove(const Model& model) {
  MutexLock lock(&mutex_);
  const auto found = slots_.find(model.name());
  if (found != slots_.end() && found->second.model.get() == &model) RemoveSlot(model.name());
}

void ModelCache::CloseAndRemove(absl::string_view name, const absl::Status& why) {
  std::shared_ptr<Model> removed;
  MutexLock lock(&mutex_);
  AwaitLoad(name);
  const auto found = slots_.find(name);
  if (found == slots_.end()) return;
  removed = found->second.model;
  removed->Close(why);
  RemoveSlot(name);
}

void ModelCache::UpdateMemory(const Model& model) {
  const size_t bytes = MeasureMemory(model).total;
  MutexLock lock(&mutex_);
  const auto found = slots_.find(model.name());
  if (found == slots_.end() || found->second.model.get() != &model) return;
  bytes_ += bytes - found->second.bytes;
  found->second.bytes = bytes;
  Evict();
}

ModelCache::Stats ModelCache::stats() const {
  MutexLock lock(&mutex_);
  return {loads_, evictions_, slots_.size(), bytes_};
}

void ModelCache::Evict() {
  // Each model is looked at twice at the most: those in use or used go to the front.
  for (size_t looks = 2 * lru_.size(); bytes_ > memory_budget_ && looks > 0; --looks) {
    const std::string name = lru_.back();
    Slot& slot = slots_[name];
    if (slot.model == nullptr || slot.model.use_count() > 1 ||
        slot.model->core().used.exchange(false)) {
      lru_.splice(lru_.begin(), lru_, slot.position);
      continue;
    }
    RemoveSlot(name);
    ++evictions_;
  }
}

void ModelCache::AwaitLoad(absl::string_view name) const {
  const auto loaded = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto slot = slots_.find(name);
    return slot == slots_.end() || slot->second.model != nullptr;
  };
  if (loaded()) return;
  const WaitTimer timer(Wait::kLoad);
  mutex_.Await(absl::Condition(&loaded));
}

void ModelCache::RemoveSlot(absl::string_view name) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) return;
  bytes_ -= found->second.bytes;
  lru_.erase(found->second.position);
  slots_.erase(found);
}

}  // namespace perceptrond
