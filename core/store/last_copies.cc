#include "core/store/last_copies.h"

#include <algorithm>
#include <utility>

#include "core/error/error.h"
#include "core/model/views.h"
#include "core/sync/cancellation.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

// How soon the next model is tried after one that could not be loaded: at first, and at most.
constexpr absl::Duration kRetry = absl::Milliseconds(100);
constexpr absl::Duration kMostRetry = absl::Seconds(1);

}  // namespace

LastCopies::LastCopies(MemoryBudget& budget, Load load)
    : budget_(budget), load_(std::move(load)), thread_([this] { Run(); }) {}

void LastCopies::Keep(std::shared_ptr<const Model> model, const absl::Status& why) {
  // Another copy of that name is freed after the lock is released: the budget, which is notified then, may
  // ask for models.
  Copy copy{std::move(model), nullptr, absl::IsUnavailable(why) ? why : absl::OkStatus()};
  MutexLock lock(&mutex_);
  if (stopping_) return;
  std::swap(copies_[copy.model->name()], copy);
  any_.store(true, std::memory_order_release);
}

void LastCopies::OnLeft(const Model& model) {
  // May evict others.
  auto memory = std::make_unique<ModelCopyMemory>(budget_, MeasureMemory(model).total);
  MutexLock lock(&mutex_);
  const auto found = copies_.find(model.name());
  if (found == copies_.end() || found->second.model.get() != &model) return;
  std::swap(found->second.memory, memory);
  left_ = true;
}

std::shared_ptr<const Model> LastCopies::Find(absl::string_view name) const {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  MutexLock lock(&mutex_);
  const auto found = copies_.find(name);
  return found == copies_.end() ? nullptr : found->second.model;
}

absl::Status LastCopies::CheckReadable(absl::string_view name) const {
  if (!any_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(&mutex_);
  const auto found = copies_.find(name);
  const bool readable = found == copies_.end() || !absl::IsUnavailable(found->second.why);
  return readable ? absl::OkStatus() : JournalError(found->second.why, name);
}

void LastCopies::Remove(absl::string_view name) { Remove(name, nullptr); }

void LastCopies::Remove(absl::string_view name, const Model* copy) {
  Copy removed;
  MutexLock lock(&mutex_);
  const auto found = copies_.find(name);
  if (found == copies_.end() || (copy != nullptr && found->second.model.get() != copy)) return;
  removed = std::move(found->second);
  copies_.erase(found);
  any_.store(!copies_.empty(), std::memory_order_release);
}

void LastCopies::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  token_.Cancel(StopReason::kDraining);
  if (thread_.joinable()) thread_.join();
}

LastCopies::Copies::iterator LastCopies::Next(const std::string& name) {
  const auto left = [](const auto& one) { return one.second.memory != nullptr; };
  const auto after = copies_.upper_bound(name);
  const auto next = std::find_if(after, copies_.end(), left);
  if (next != copies_.end()) return next;
  const auto first = std::find_if(copies_.begin(), after, left);
  return first == after ? copies_.end() : first;
}

void LastCopies::Run() {
  NameThisThread("reloading");
  const CancellationScope scope(&token_);
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Next("") != copies_.end() || stopping_;
  };
  const auto news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return left_ || stopping_; };
  // They take turns: one that cannot be read does not keep the others from it.
  std::string last;
  absl::Duration retry = kRetry;
  while (true) {
    std::shared_ptr<const Model> model;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&any));
      if (stopping_) return;
      left_ = false;
      const auto next = Next(last);
      last = next->first;
      model = next->second.model;
    }
    const absl::Status status = load_(last);
    if (status.ok() || absl::IsNotFound(status)) {
      retry = kRetry;
      // It may have left memory once more.
      Remove(last, model.get());
      continue;
    }
    MutexLock lock(&mutex_);
    if (const auto found = copies_.find(last); found != copies_.end()) found->second.why = status;
    mutex_.AwaitWithTimeout(absl::Condition(&news), retry);
    retry = std::min(2 * retry, kMostRetry);
  }
}

}  // namespace perceptrond
