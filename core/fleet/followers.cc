#include "core/fleet/followers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"

namespace perceptrond {
namespace {

// What may wait for a model that is loaded.
constexpr size_t kMostWaitingBytes = 64 << 20;

size_t BytesOf(const SequencedEntry& entry) {
  size_t bytes = sizeof(entry) + entry.entry.counters.SpaceUsedLong();
  for (const storage::UpdateRecord& record : entry.entry.records) bytes += record.SpaceUsedLong();
  for (const storage::ProducerPosition& position : entry.entry.positions)
    bytes += position.SpaceUsedLong();
  return bytes;
}

// The journal may have had newer entries when the model was read.
void RaiseEpoch(Model& model, int64_t epoch) {
  std::atomic<int64_t>& known = model.core().epoch;
  if (known.load(std::memory_order_relaxed) >= epoch) return;
  model.ledger().BeginEpoch({epoch, model.revision()});
  known.store(epoch, std::memory_order_release);
}

}  // namespace

Followers::~Followers() {
  // A copy that is waited for is held by who waits.
  for (const std::shared_ptr<Model>& model : All()) model->core().waiters->Release();
}

void Followers::BeginLoad(uint64_t model_id) {
  std::shared_ptr<Model> before;
  {
    MutexLock lock(&mutex_);
    Sweep();
    Follower& follower = followers_[model_id];
    before = follower.model.lock();
    follower = {.loading = true, .model = {}, .waiting = {}};
  }
  // One that has left the store's memory follows no more.
  if (before != nullptr) before->core().waiters->Release();
}

void Followers::CancelLoad(uint64_t model_id) {
  MutexLock lock(&mutex_);
  followers_.erase(model_id);
}

void Followers::CancelLoads() {
  MutexLock lock(&mutex_);
  absl::erase_if(followers_, [](const auto& known) { return known.second.loading; });
}

absl::Status Followers::EndLoad(const std::shared_ptr<Model>& model) {
  uint64_t sequence = model->core().loaded_sequence;
  while (true) {
    std::vector<SequencedEntry> waiting;
    {
      MutexLock lock(&mutex_);
      const auto found = followers_.find(model->id());
      if (found == followers_.end())
        return absl::OutOfRangeError("the log was replaced while the model was loaded");
      Follower& follower = found->second;
      if (follower.waiting_bytes > kMostWaitingBytes) {
        followers_.erase(model->id());
        return absl::OutOfRangeError("more was committed than a model that is loaded can follow");
      }
      if (follower.waiting.empty()) {
        follower.loading = false;
        follower.model = model;
        follower.sequence = sequence;
        RaiseEpoch(*model, epoch_);
        model->core().follows.store(!writes_, std::memory_order_release);
        model->core().waiters->Reach(model->revision());
        return absl::OkStatus();
      }
      waiting.swap(follower.waiting);
      follower.waiting_bytes = 0;
    }
    for (const SequencedEntry& entry : waiting) {
      RaiseEpoch(*model, entry.epoch);
      const absl::Status status = WithinMemory([&] { return ApplyTo(*model, sequence, entry); });
      if (status.ok()) continue;
      CancelLoad(model->id());
      return status;
    }
  }
}

absl::Status Followers::ApplyTo(Model& model, uint64_t& sequence, const SequencedEntry& entry) {
  if (entry.sequence <= sequence) return absl::OkStatus();
  const absl::Status status = Follow(entry.entry, model.core());
  if (status.ok()) sequence = entry.sequence;
  return status;
}

void Followers::SetEpoch(int64_t epoch) {
  MutexLock lock(&mutex_);
  epoch_ = epoch;
  for (auto& [id, follower] : followers_) {
    const std::shared_ptr<Model> model = follower.model.lock();
    if (model != nullptr && model->core().follows.load(std::memory_order_acquire))
      RaiseEpoch(*model, epoch);
  }
}

void Followers::Apply(const SequencedEntry& entry) {
  std::shared_ptr<Model> model;
  uint64_t sequence = 0;
  {
    MutexLock lock(&mutex_);
    const auto found = followers_.find(entry.entry.model_id);
    if (found == followers_.end()) return;
    Follower& follower = found->second;
    if (follower.loading) {
      // EndLoad refuses what is too much; more of it is of no use.
      if (follower.waiting_bytes > kMostWaitingBytes) return;
      follower.waiting.push_back(entry);
      follower.waiting_bytes += BytesOf(entry);
      return;
    }
    model = follower.model.lock();
    if (model == nullptr) {
      followers_.erase(found);
      return;
    }
    // What this server wrote itself.
    if (!model->core().follows.load(std::memory_order_acquire)) return;
    sequence = follower.sequence;
  }
  const absl::Status status = WithinMemory([&] { return ApplyTo(*model, sequence, entry); });
  if (!status.ok()) return on_broken_(model, status);
  on_followed_(*model);
  model->core().waiters->Reach(model->revision());
  MutexLock lock(&mutex_);
  const auto found = followers_.find(entry.entry.model_id);
  // It may have been loaded anew.
  if (found != followers_.end() && found->second.model.lock() == model)
    found->second.sequence = sequence;
}

void Followers::StartWriting() {
  std::vector<std::shared_ptr<Model>> models;
  {
    MutexLock lock(&mutex_);
    writes_ = true;
    for (auto& [id, follower] : followers_) {
      const std::shared_ptr<Model> model = follower.model.lock();
      if (model == nullptr) continue;
      // What another server sampled is not known here.
      if (model->ledger().stored_examples().samples())
        model->ledger().stored_examples().MarkIncomplete();
      model->core().follows.store(false, std::memory_order_release);
      models.push_back(model);
    }
  }
  // It applies nothing any more.
  for (const std::shared_ptr<Model>& model : models) model->core().waiters->Release();
}

std::vector<std::shared_ptr<Model>> Followers::StopWriting() {
  {
    MutexLock lock(&mutex_);
    writes_ = false;
  }
  return All();
}

std::vector<std::shared_ptr<Model>> Followers::All() const {
  std::vector<std::shared_ptr<Model>> models;
  MutexLock lock(&mutex_);
  for (const auto& [id, follower] : followers_) {
    if (std::shared_ptr<Model> model = follower.model.lock(); model != nullptr)
      models.push_back(std::move(model));
  }
  return models;
}

void Followers::Sweep() {
  if (followers_.size() < sweep_at_) return;
  absl::erase_if(followers_, [](const auto& known) {
    return !known.second.loading && known.second.model.expired();
  });
  sweep_at_ = std::max<size_t>(64, 2 * followers_.size());
}

}  // namespace perceptrond
