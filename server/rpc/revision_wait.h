// Requests that wait until this server's copy of a model has the revision that they ask for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "core/model/model.h"
#include "core/store/store.h"
#include "server/rpc/call.h"

namespace perceptrond {

class RevisionWaiters;

// The state that a request wants to be answered on, where this server's copy of the model does not have
// it yet. Nothing to wait for without waiters.
struct AwaitedRevision {
  std::shared_ptr<RevisionWaiters> waiters;
  uint64_t revision = 0;
  // Not empty: the model of this name must be loaded before that is known.
  std::string unloaded;
};

// What a request with this min_revision waits for: copies that follow a writer get there. `model` may be
// null: it is not in memory. Does not block.
AwaitedRevision MissingRevision(Store& store, const Model* model, const std::string& name,
                                int64_t min_revision);

// Calls `resume` once, on any thread: when the copy has the revision or takes over no more, when the call
// is cancelled, at its deadline (after 10 s if it has none), or after `most`. The call must exist until
// then.
void AwaitRevision(const Call& call, const AwaitedRevision& awaited, absl::Duration most,
                   std::function<void()> resume);

}  // namespace perceptrond
