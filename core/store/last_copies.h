// Of models that had to leave a fleet's memory while their journal could not be read: the copies that predict until the
// models are loaded again.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/memory/memory_budget.h"
#include "core/model/model.h"
#include "core/sync/cancellation.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// A copy may have updates that were never committed: it answers no one who asks for a revision.
//
// Thread contract: safe for any number of threads.
class LastCopies {
 public:
  // Loads the model of that name.
  using Load = std::function<absl::Status(const std::string& name)>;

  LastCopies(MemoryBudget& budget, Load load);
  ~LastCopies() { Stop(); }

  // Keeps a model that is closed and about to leave memory. `why`: the journal is known to be out of reach, for this
  // reason. Then call OnLeft.
  void Keep(std::shared_ptr<const Model> model, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The model has left memory: counts the copy's, and loads the model again as soon as its journal can be read.
  void OnLeft(const Model& model) ABSL_LOCKS_EXCLUDED(mutex_);
  // The copy of that name, or null.
  std::shared_ptr<const Model> Find(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // UNAVAILABLE if the model of that name was not loaded since the journal was out of reach: it is tried
  // again anyway, and callers need not wait for it.
  absl::Status CheckReadable(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // The model was deleted.
  void Remove(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps and loads nothing from now on.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Copy {
    std::shared_ptr<const Model> model;
    // Null: the model is about to leave memory.
    std::unique_ptr<ModelCopyMemory> memory;
    // Why it could not be loaded last.
    absl::Status why;
  };

  using Copies = std::map<std::string, Copy, std::less<>>;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // The copy to load after that of this name; the end if there is none.
  Copies::iterator Next(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the copy of that name if it is this one; null: any.
  void Remove(absl::string_view name, const Model* copy) ABSL_LOCKS_EXCLUDED(mutex_);

  MemoryBudget& budget_;
  const Load load_;
  CancellationToken token_;
  // Most of the time there are none.
  std::atomic<bool> any_ = false;
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // A model has left memory since the last attempt to load one.
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  Copies copies_ ABSL_GUARDED_BY(mutex_);
  // The last member: it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
