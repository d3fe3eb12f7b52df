#include "core/store/snapshotter.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/model/snapshot.h"
#include "core/sync/thread_name.h"

namespace perceptrond {

Snapshotter::Snapshotter(Journal& journal, Committers& committer, MemoryBudget& memory,
                         uint64_t max_history_bytes, FailureCallback on_failure)
    : journal_(journal),
      committer_(committer),
      memory_(memory),
      max_history_bytes_(max_history_bytes),
      on_failure_(std::move(on_failure)),
      thread_([this] { Run(); }) {}

Snapshotter::~Snapshotter() { Stop(); }

void Snapshotter::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Snapshotter::Request(std::shared_ptr<Model> model) {
  MutexLock lock(&mutex_);
  Add(std::move(model));
}

void Snapshotter::RequestAny(std::shared_ptr<Model> model) {
  MutexLock lock(&mutex_);
  if (model != in_progress_) Add(std::move(model));
}

void Snapshotter::Add(std::shared_ptr<Model> model) {
  if (stopping_ || std::find(queue_.begin(), queue_.end(), model) != queue_.end()) return;
  queue_.push_back(std::move(model));
}

void Snapshotter::Await(uint64_t model_id) {
  MutexLock lock(&mutex_);
  const auto none = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (in_progress_ != nullptr && in_progress_->id() == model_id) return false;
    return std::none_of(queue_.begin(), queue_.end(), [&](const std::shared_ptr<Model>& model) {
      return model->id() == model_id;
    });
  };
  mutex_.Await(absl::Condition(&none));
}

void Snapshotter::Run() {
  NameThisThread("snapshotter");
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  };
  while (true) {
    std::shared_ptr<Model> model;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_) {
        queue_.clear();
        return;
      }
      model = queue_.front();
      queue_.erase(queue_.begin());
      in_progress_ = model;
    }
    const absl::Status taken = WithinMemory([&] { return Take(model); });
    if (!taken.ok()) OnFailure(*model, taken);
    MutexLock lock(&mutex_);
    in_progress_ = nullptr;
  }
}

absl::Status Snapshotter::Take(const std::shared_ptr<Model>& model) {
  // One that has left memory may be loaded again, and learn.
  if (!model->closed().ok()) return absl::OkStatus();
  StoredExamples& stored = model->ledger().stored_examples();
  Guarded<JournalUse>& journal_use = model->core().journal_use;
  uint64_t covered = Guarded<JournalUse>::Reader(journal_use)->bytes;
  const size_t sampled = stored.unsaved_bytes();
  const ModelCopyMemory copy(memory_, MeasureMemory(*model).total);
  storage::Snapshot snapshot = MakeSnapshot(*model);
  const absl::Time now = absl::Now();
  const int64_t nanos = absl::ToUnixNanos(now);
  snapshot.mutable_time()->set_seconds(nanos / 1'000'000'000);
  snapshot.mutable_time()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  // A snapshot may cover only what is in the journal, or a crash would leave weights ahead of their
  // counters.
  if (!committer_.Commit(model).ok()) return absl::OkStatus();
  if (absl::Status status = SetHistory(*model, covered, snapshot); !status.ok()) return status;
  if (absl::Status status = journal_.SaveSnapshot(model->id(), snapshot); !status.ok())
    return status;
  failing_.erase(model->id());
  // What was committed while the snapshot was made is covered too, if nothing was learned since.
  const uint64_t all = Guarded<JournalUse>::Reader(journal_use)->bytes;
  if (Guarded<ModelState>::Reader(model->core().state)->revision == snapshot.revision())
    covered = all;
  {
    const Guarded<JournalUse>::Writer use(journal_use);
    use->bytes -= covered;
    use->snapshot_time = now;
  }
  stored.MarkSaved(sampled);
  snapshots_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Snapshotter::SetHistory(const Model& model, uint64_t bytes,
                                     storage::Snapshot& snapshot) {
  const absl::StatusOr<storage::ModelHeader> header = journal_.Find(model.name());
  // Deleted meanwhile, or renamed, and this is the last of it in memory.
  if (absl::IsNotFound(header.status())) return absl::OkStatus();
  if (!header.ok()) return header.status();
  if (header->kept_snapshots().empty() || max_history_bytes_ == 0) return absl::OkStatus();
  absl::StatusOr<storage::History> history = journal_.LoadHistory(model.id());
  if (!history.ok()) return history.status();
  auto& segments = *history->mutable_segments();
  if (snapshot.revision() > history->revision()) {
    storage::HistorySegment& newest = *segments.Add();
    newest.set_revision(snapshot.revision());
    newest.set_bytes(bytes);
  }
  history->set_revision(snapshot.revision());
  uint64_t begin = std::max(history->begin(), header->kept_snapshots(0).revision());
  uint64_t held = 0;
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    held += segment->bytes();
    if (held > max_history_bytes_) {
      begin = std::max(begin, segment->revision());
      break;
    }
  }
  segments.erase(std::remove_if(segments.begin(), segments.end(),
                                [&](const storage::HistorySegment& segment) {
                                  return segment.revision() <= begin;
                                }),
                 segments.end());
  history->set_begin(std::min(begin, snapshot.revision()));
  *snapshot.mutable_history() = *std::move(history);
  return absl::OkStatus();
}

void Snapshotter::OnFailure(const Model& model, const absl::Status& why) {
  failures_.fetch_add(1, std::memory_order_relaxed);
  // It is tried again with every commit, and reported once.
  if (failing_.insert(model.id()).second && on_failure_) on_failure_(model.name(), why);
}

}  // namespace perceptrond
