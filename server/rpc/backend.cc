#include "server/rpc/backend.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/learner/catalogue.h"
#include "core/store/store.h"
#include "core/sync/thread_name.h"

namespace perceptrond {

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Schedule(Work work) {
  MutexLock lock(&mutex_);
  if (idle_.empty()) return backlog_.push_back(std::move(work));
  *idle_.back() = std::move(work);
  idle_.pop_back();
}

bool Workers::HasBacklog() const {
  MutexLock lock(&mutex_);
  return !backlog_.empty();
}

size_t Workers::idle() const {
  MutexLock lock(&mutex_);
  return idle_.size();
}

void Workers::Run() {
  NameThisThread("worker");
  while (Work work = Next()) work();
}

Workers::Work Workers::Next() {
  Work work;
  MutexLock lock(&mutex_);
  if (backlog_.empty()) {
    idle_.push_back(&work);
    const auto woken = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return work != nullptr || stopping_;
    };
    mutex_.Await(absl::Condition(&woken));
    // A thread that ends must not receive any more work.
    if (work == nullptr) std::erase(idle_, &work);
  } else {
    work = std::move(backlog_.front());
    backlog_.pop_front();
  }
  return work;
}

void Drain::Add(std::function<void()> listener, uint64_t& id) {
  {
    MutexLock lock(&mutex_);
    id = ++last_id_;
    listeners_.emplace(id, listener);
    if (!draining_) return;
  }
  listener();
}

void Drain::Remove(uint64_t id) {
  MutexLock lock(&mutex_);
  listeners_.erase(id);
}

void Drain::Begin() {
  std::vector<std::function<void()>> listeners;
  {
    MutexLock lock(&mutex_);
    draining_ = true;
    for (auto& [id, listener] : listeners_) listeners.push_back(listener);
  }
  // Not under the lock: a listener may end its stream, which removes it.
  for (const std::function<void()>& listener : listeners) listener();
}

bool Drain::AwaitAllRemoved(absl::Duration timeout) {
  MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return listeners_.empty(); };
  return mutex_.AwaitWithTimeout(absl::Condition(&none), timeout);
}

void Drain::AwaitQuiet(absl::Duration quiet_period, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  for (bool another = true; another;) {
    const auto added = [this, last_seen = last_id_]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return last_id_ > last_seen; };
    const absl::Duration left = deadline - absl::Now();
    another = left > absl::ZeroDuration() &&
              mutex_.AwaitWithTimeout(absl::Condition(&added), std::min(quiet_period, left));
  }
}

bool Drain::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

bool CanRunInline(Store& store, absl::string_view model) {
  return CanRunInline(store.GetIfLoaded(model).get());
}

bool CanRunInline(const Model* model) {
  if (model == nullptr) return false;
  const ModelSettings& settings = model->settings();
  const CatalogueEntry& learner = FindLearner(settings.learner);
  return learner.form == Form::kLinear && !learner.separate_prediction_weights &&
         !settings.is_multiclass() && settings.components.empty() &&
         settings.space.map.kind == FeatureMap::Kind::kIdentity;
}

}  // namespace perceptrond
