#include "server/rpc/revision_wait.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "core/model/model_core.h"
#include "core/model/revision_waiters.h"
#include "core/sync/cancellation.h"
#include "core/sync/mutex.h"

namespace perceptrond {
namespace {

constexpr absl::Duration kWaitWithoutDeadline = absl::Seconds(10);
// How soon a call that waits notices that it is cancelled.
constexpr std::chrono::milliseconds kWaitInterval{100};

// A call that waits for a revision. It holds the waiters, and they it, until it ends.
class RevisionWait : public std::enable_shared_from_this<RevisionWait> {
 public:
  RevisionWait(const Call& call, AwaitedRevision awaited, absl::Duration most,
               std::function<void()> resume)
      : call_(call),
        awaited_(std::move(awaited)),
        deadline_(EndOfWait(call.context().deadline(), most)),
        resume_(std::move(resume)) {}

  void Start() {
    const uint64_t number =
        awaited_.waiters->Await(awaited_.revision, [self = shared_from_this()] { self->End(); });
    MutexLock lock(&mutex_);
    number_ = number;
    if (resume_ != nullptr) SetAlarm();
  }

 private:
  using Clock = std::chrono::system_clock;

  static Clock::time_point EndOfWait(Clock::time_point deadline, absl::Duration most) {
    if (deadline == Clock::time_point::max()) most = std::min(most, kWaitWithoutDeadline);
    const absl::Time end = absl::Now() + most;
    return end < absl::FromChrono(deadline) ? absl::ToChronoTime(end) : deadline;
  }
  void SetAlarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::function<void(bool)> on_time = [weak = weak_from_this()](bool /*ok*/) {
      if (const std::shared_ptr<RevisionWait> self = weak.lock()) self->OnAlarm();
    };
    // Another one each time: an alarm may not be set while it runs.
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(std::min(deadline_, Clock::now() + kWaitInterval), on_time);
  }
  void OnAlarm() ABSL_LOCKS_EXCLUDED(mutex_) {
    uint64_t number = 0;
    {
      MutexLock lock(&mutex_);
      // The call exists until it is resumed.
      if (resume_ == nullptr) return;
      const bool goes_on = call_.cancellation().reason() == StopReason::kNone;
      if (goes_on && Clock::now() < deadline_) return SetAlarm();
      number = number_;
    }
    End();
    awaited_.waiters->Remove(awaited_.revision, number);
  }
  void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::function<void()> resume;
    {
      MutexLock lock(&mutex_);
      resume.swap(resume_);
    }
    if (resume != nullptr) resume();
  }

  const Call& call_;
  const AwaitedRevision awaited_;
  const Clock::time_point deadline_;
  Mutex mutex_;
  // Null once it was called.
  std::function<void()> resume_ ABSL_GUARDED_BY(mutex_);
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

AwaitedRevision MissingRevision(Store& store, const Model* model, const std::string& name,
                                int64_t min_revision) {
  if (min_revision <= 0 || store.fleet() == nullptr) return {};
  if (model == nullptr) return {nullptr, 0, name};
  const ModelCore& core = model->core();
  const auto revision = static_cast<uint64_t>(min_revision);
  if (!core.follows.load(std::memory_order_acquire) || core.waiters->reached() >= revision)
    return {};
  return {core.waiters, revision, ""};
}

void AwaitRevision(const Call& call, const AwaitedRevision& awaited, absl::Duration most,
                   std::function<void()> resume) {
  std::make_shared<RevisionWait>(call, awaited, most, std::move(resume))->Start();
}

}  // namespace perceptrond
