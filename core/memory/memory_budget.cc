#include "core/memory/memory_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"

namespace perceptrond {

absl::string_view MemoryUseName(MemoryUse use) {
  switch (use) {
    case MemoryUse::kModels:
      return "models";
    case MemoryUse::kRequests:
      return "requests";
    case MemoryUse::kAnswers:
      return "answers";
    case MemoryUse::kAnalyses:
      break;
  }
  return "analyses";
}

bool MemoryBudget::TryReserve(MemoryUse use, size_t bytes) {
  const size_t before = in_flight_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= max_in_flight_ && !Fits(before + bytes)) evict_();
  if (before > share_ / 2 && !Fits(before + bytes)) {
    in_flight_.fetch_sub(bytes, std::memory_order_relaxed);
    CountRefusal(use);
    return false;
  }
  Of(use).bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void MemoryBudget::Reserve(MemoryUse use, size_t bytes) {
  Of(use).bytes.fetch_add(bytes, std::memory_order_relaxed);
  const size_t now = in_flight_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (!Fits(now)) evict_();
}

void MemoryBudget::Release(MemoryUse use, size_t bytes) {
  Of(use).bytes.fetch_sub(bytes, std::memory_order_relaxed);
  in_flight_.fetch_sub(bytes, std::memory_order_relaxed);
}

void MemoryBudget::ChangeModels(size_t before, size_t now) {
  // Wraps around where models take less now.
  Of(MemoryUse::kModels).bytes.fetch_add(now - before, std::memory_order_relaxed);
}

size_t MemoryBudget::model_room() const {
  const size_t taken = std::max(in_flight(), share_);
  return limit_ - std::min(taken, limit_);
}

WorkMemory::Lease::Lease(WorkMemory& all, size_t bytes)
    : all_(all), bytes_(bytes < kFreeBytes ? 0 : bytes) {
  if (bytes_ == 0) return;
  MutexLock lock(&all_.mutex_);
  const auto fits = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(all_.mutex_) {
    return all_.used_ == 0 || all_.used_ + bytes_ <= all_.capacity_;
  };
  all_.mutex_.Await(absl::Condition(&fits));
  all_.used_ += bytes_;
}

WorkMemory::Lease::~Lease() {
  if (bytes_ == 0) return;
  MutexLock lock(&all_.mutex_);
  all_.used_ -= bytes_;
}

absl::Status MemoryExhausted(absl::string_view what, size_t bytes, const MemoryBudget& budget) {
  const bool in_flight = budget.ExceedsInFlight(bytes);
  const size_t limit = in_flight ? budget.max_in_flight() : budget.limit();
  return WithRetry(
      MakeError(absl::StatusCode::kResourceExhausted, "MEMORY_EXHAUSTED",
                absl::StrCat(what, " of ", bytes,
                             " bytes does not fit: ", in_flight ? "" : "models in use, ",
                             "requests, answers and analyses take the ", limit >> 20,
                             " MiB that they may; try again later, send less at once, or raise the "
                             "server's ",
                             in_flight ? "--in-flight-budget" : "--memory-budget"),
                {{"bytes", absl::StrCat(bytes)},
                 {in_flight ? "in_flight_budget" : "memory_budget", absl::StrCat(limit)}}),
      absl::Seconds(1));
}

}  // namespace perceptrond
