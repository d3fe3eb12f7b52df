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
// How long callers wait for the first attempt.
constexpr absl::Duration kLoadTime = absl::Milliseconds(200);

}  // namespace

LastCopies::LastCopies(MemoryBudget& budget, Load load)
    : budget_(budget), load_(std::move(load)), thread_([this] { Run(); }) {}

void LastCopies::Keep(std::shared_ptr<const Model> model) {
  auto memory = std::make_unique<ModelCopyMemory>(budget_, MeasureMemory(*model).total);
  // Freed without the lock, as whoever frees models asks for it.
  Copy copy{std::move(model), std::move(memory)};
  MutexLock lock(&mutex_);
  if (stopping_) return;
  std::swap(copies_[copy.model->name()], copy);
  any_.store(true, std::memory_order_release);
}

std::shared_ptr<const Model> LastCopies::Find(absl::string_view name) const {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  MutexLock lock(&mutex_);
  const auto found = copies_.find(name);
  return found == copies_.end() ? nullptr : found->second.model;
}

absl::Status LastCopies::AwaitLoad(absl::string_view name) const {
  if (!any_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(&mutex_);
  // Who waits keeps a thread from predicting: not for a journal that is out of reach.
  const auto decided = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = copies_.find(name);
    return found == copies_.end() || !found->second.why.ok();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&decided), kLoadTime);
  const auto found = copies_.find(name);
  if (found == copies_.end()) return absl::OkStatus();
  const absl::Status& why = found->second.why;
  return JournalError(
      why.ok() ? absl::UnavailableError("the journal does not answer in time") : why, name);
}

void LastCopies::Remove(absl::string_view name) {
  Copy removed;
  MutexLock lock(&mutex_);
  const auto found = copies_.find(name);
  if (found == copies_.end()) return;
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

void LastCopies::Run() {
  NameThisThread("reloading");
  const CancellationScope scope(&token_);
  const auto any = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !copies_.empty() || stopping_;
  };
  // They take turns: one that cannot be read does not keep the others from it.
  std::string last;
  absl::Duration retry = kRetry;
  while (true) {
    std::shared_ptr<const Model> model;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&any));
      if (stopping_) return;
      auto next = copies_.upper_bound(last);
      if (next == copies_.end()) next = copies_.begin();
      last = next->first;
      model = next->second.model;
    }
    const absl::Status status = load_(last);
    if (status.ok()) {
      retry = kRetry;
      // It may have left memory once more.
      if (Find(last) == model) Remove(last);
      continue;
    }
    MutexLock lock(&mutex_);
    if (const auto found = copies_.find(last); found != copies_.end()) found->second.why = status;
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), retry);
    retry = std::min(2 * retry, kMostRetry);
  }
}

}  // namespace perceptrond
