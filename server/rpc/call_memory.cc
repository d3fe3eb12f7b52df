#include "server/rpc/call_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/sync/thread_name.h"
#include "server/rpc/call.h"

namespace perceptrond {

InFlightMemory::InFlightMemory(MemoryBudget& budget, absl::Duration write_timeout)
    : budget_(budget),
      write_timeout_(write_timeout),
      interval_(std::min(absl::Seconds(1), write_timeout / 4)),
      work_(budget.share()),
      thread_([this] { Run(); }) {}

InFlightMemory::~InFlightMemory() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void InFlightMemory::Run() {
  NameThisThread("slow-consumers");
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping), interval_)) return;
    }
    // Never 0, which says that nothing is sent.
    tick_.store(std::max(1U, tick_.load(std::memory_order_relaxed) + 1), std::memory_order_relaxed);
    if (budget_.IsShort()) EndSlowCalls();
  }
}

void InFlightMemory::EndSlowCalls() {
  const uint32_t now = tick_.load(std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  for (CallMemory* const call : calls_) {
    const uint32_t since = call->write_tick_.load(std::memory_order_acquire);
    if (since == 0) continue;
    const size_t bytes = call->written_bytes_.load(std::memory_order_relaxed);
    const absl::Duration allowed = write_timeout_ + absl::Seconds(bytes / kSlowestBytes);
    // The first interval may have been short.
    if (interval_ * (static_cast<int64_t>(now - since) - 1) < allowed) continue;
    call->OnWritten();
    slow_consumers_.fetch_add(1, std::memory_order_relaxed);
    call->call_.Abort(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("SLOW_CONSUMER: the client did not receive an answer within ",
                     absl::FormatDuration(allowed),
                     ", and the server is short of memory: read answers as they come, "
                     "or raise the server's --write-timeout or --memory-budget"));
  }
}

void InFlightMemory::Add(CallMemory* call) {
  MutexLock lock(&mutex_);
  calls_.insert(call);
}

void InFlightMemory::Remove(CallMemory* call) {
  MutexLock lock(&mutex_);
  calls_.erase(call);
}

CallMemory::~CallMemory() {
  Set(MemoryUse::kRequests, 0);
  Set(MemoryUse::kAnswers, 0);
  if (registered_) all_.Remove(this);
}

size_t CallMemory::Target(size_t held, size_t bytes) {
  if (bytes <= kFreeBytes) return 0;
  const size_t steps = (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
  return steps < held && held - steps == kStepBytes ? held : steps;
}

bool CallMemory::TrySet(MemoryUse use, size_t bytes) {
  size_t& held = Held(use);
  const size_t target = Target(held, bytes);
  if (target > held) {
    if (!all_.budget_.TryReserve(use, target - held)) return false;
    held = target;
    Register();
  }
  Set(use, bytes);
  return true;
}

void CallMemory::Set(MemoryUse use, size_t bytes) {
  size_t& held = Held(use);
  const size_t target = Target(held, bytes);
  if (target == held) return;
  if (target > held) {
    all_.budget_.Reserve(use, target - held);
  } else {
    all_.budget_.Release(use, held - target);
  }
  held = target;
  Register();
}

void CallMemory::Register() {
  if (!registered_) all_.Add(this);
  registered_ = true;
}

}  // namespace perceptrond
