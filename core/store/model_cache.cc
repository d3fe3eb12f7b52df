#include "core/store/model_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/model/views.h"
#include "core/sync/cancellation.h"
#include "core/sync/wait_timer.h"

namespace perceptrond {

namespace {

// A load goes on while its own call does, or while others wait for it.
class LoadToken final : public CancellationToken {
 public:
  LoadToken(const CancellationToken* own, std::shared_ptr<std::atomic<int>> waiting)
      : own_(own), waiting_(std::move(waiting)) {}

  StopReason reason() const override {
    if (own_ == nullptr || waiting_->load(std::memory_order_relaxed) > 0) return StopReason::kNone;
    return own_->reason();
  }

 private:
  const CancellationToken* const own_;
  const std::shared_ptr<const std::atomic<int>> waiting_;
};

// How often a thread that waits for a load looks whether its own work was stopped.
constexpr absl::Duration kStopInterval = absl::Milliseconds(20);

// Models are in use for the time of a message. How long they are waited for, and how often a thread
// that waits looks again.
constexpr absl::Duration kRoomTime = absl::Seconds(2);
constexpr absl::Duration kRoomInterval = absl::Milliseconds(5);

}  // namespace

absl::StatusOr<std::shared_ptr<Model>> ModelCache::Acquire(absl::string_view name) {
  const auto waiting = std::make_shared<std::atomic<int>>(0);
  {
    MutexLock lock(&mutex_);
    if (!AwaitLoadUnlessStopped(name)) return StoppedError();
    if (const auto found = slots_.find(name); found != slots_.end()) {
      lru_.splice(lru_.begin(), lru_, found->second.position);
      return found->second.model;
    }
    lru_.emplace_front(name);
    slots_.emplace(name, Slot{nullptr, waiting, 0, lru_.begin()});
  }
  const WaitTimer timer(Wait::kLoad);
  const LoadToken token(CurrentToken(), waiting);
  absl::StatusOr<std::shared_ptr<Model>> model = [&] {
    const CancellationScope scope(&token);
    return load_(name);
  }();
  if (!model.ok()) {
    MutexLock lock(&mutex_);
    RemoveSlot(name);
    return model;
  }
  const size_t bytes = MeasureMemory(**model).total;
  MutexLock lock(&mutex_);
  if (absl::Status status = Resize(name, bytes); !status.ok()) {
    RemoveSlot(name);
    return status;
  }
  if (absl::Status closed = (*model)->closed(); !closed.ok()) {
    // Whoever closed it since it was loaded found nothing here to remove.
    RemoveSlot(name);
    return closed;
  }
  slots_[name].model = *model;
  ++loads_;
  return model;
}

absl::Status ModelCache::MakeRoom(absl::string_view name, size_t bytes) {
  MutexLock lock(&mutex_);
  return slots_.contains(name) ? Resize(name, bytes) : absl::OkStatus();
}

absl::Status ModelCache::Resize(absl::string_view name, size_t bytes) {
  // A model that outgrew the limit is loaded all the same, beside small ones.
  const size_t most = bytes <= max_bytes_ ? max_bytes_ : bytes + max_bytes_ / 4;
  const absl::Time deadline = absl::Now() + kRoomTime;
  const auto never = [] { return false; };
  while (true) {
    Count(slots_[name], bytes);
    Evict();
    if (bytes_ <= most) return absl::OkStatus();
    const size_t others = bytes_ - bytes;
    // Not counted while it waits: of two that each leave the other no room, one must go on.
    Count(slots_[name], 0);
    if (!KeepGoing()) return StoppedError();
    if (absl::Now() > deadline) return NoRoom(name, bytes, others);
    release_();
    mutex_.AwaitWithTimeout(absl::Condition(&never), kRoomInterval);
  }
}

absl::Status ModelCache::NoRoom(absl::string_view name, size_t bytes, size_t others) {
  budget_.CountRefusal(MemoryUse::kModels);
  return WithRetry(
      MakeError(
          absl::StatusCode::kResourceExhausted, "MODEL_TOO_LARGE",
          absl::StrCat("model \"", name, "\" takes ", bytes >> 20, " MiB, but models may take ",
                       max_bytes_ >> 20, " MiB, of which those in use have ", others >> 20,
                       " MiB: try again later, or raise the server's --memory-budget"),
          {{"model", std::string(name)},
           {"bytes", absl::StrCat(bytes)},
           {"max_bytes", absl::StrCat(max_bytes_)}}),
      absl::Seconds(1));
}

void ModelCache::Count(Slot& slot, size_t bytes) {
  budget_.ChangeModels(slot.bytes, bytes);
  bytes_ += bytes - slot.bytes;
  slot.bytes = bytes;
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
  {
    MutexLock lock(&mutex_);
    AwaitLoad(name);
    const auto found = slots_.find(name);
    if (found == slots_.end()) return;
    removed = found->second.model;
    RemoveSlot(name);
  }
  // Who waits for the model is called, and may need memory.
  removed->Close(why);
}

void ModelCache::UpdateMemory(const Model& model) {
  const size_t bytes = MeasureMemory(model).total;
  MutexLock lock(&mutex_);
  const auto found = slots_.find(model.name());
  if (found == slots_.end() || found->second.model.get() != &model) return;
  Count(found->second, bytes);
  Evict();
}

ModelCache::Stats ModelCache::stats() const {
  MutexLock lock(&mutex_);
  return {loads_, evictions_, slots_.size(), bytes_};
}

void ModelCache::Evict() {
  // Each model is looked at twice at the most: those in use or used go to the front.
  const auto too_many = [this] {
    return budget_.reserved(MemoryUse::kModels) > budget_.model_room();
  };
  // Copies, which are no slot's, may take more than all models.
  for (size_t looks = 2 * lru_.size(); !lru_.empty() && too_many() && looks > 0; --looks) {
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

bool ModelCache::AwaitLoadUnlessStopped(absl::string_view name) const {
  const auto loaded = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto slot = slots_.find(name);
    return slot == slots_.end() || slot->second.model != nullptr;
  };
  if (loaded()) return true;
  const std::shared_ptr<std::atomic<int>> waiting = slots_.find(name)->second.waiting;
  waiting->fetch_add(1, std::memory_order_relaxed);
  bool done = false;
  // A token cannot wake a thread: whatever cancels it sets a flag and no more.
  while (!done && KeepGoing())
    done = mutex_.AwaitWithTimeout(absl::Condition(&loaded), kStopInterval);
  waiting->fetch_sub(1, std::memory_order_relaxed);
  return done;
}

void ModelCache::RemoveSlot(absl::string_view name) {
  const auto found = slots_.find(name);
  if (found == slots_.end()) return;
  Count(found->second, 0);
  lru_.erase(found->second.position);
  slots_.erase(found);
}

}  // namespace perceptrond
