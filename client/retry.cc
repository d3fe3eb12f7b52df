#include "client/retry.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "client/error.h"

namespace perceptrond::client {
namespace {

constexpr char kGaveUpAfter[] = "perceptrond/gave_up_after";

}  // namespace

bool IsTransient(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return true;
  return absl::IsResourceExhausted(status) && RetryDelay(status).has_value();
}

bool MayBeLostConnection(const absl::Status& status) {
  if (!ErrorReason(status).empty()) return false;
  return absl::IsCancelled(status) || absl::IsUnknown(status) || absl::IsInternal(status) ||
         absl::IsDeadlineExceeded(status);
}

std::optional<absl::Duration> GaveUpAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kGaveUpAfter);
  absl::Duration after;
  if (!payload.has_value() || !absl::ParseDuration(std::string(*payload), &after)) {
    return std::nullopt;
  }
  return after;
}

absl::Status WithGaveUpAfter(absl::Status status, absl::Duration after) {
  status.SetPayload(kGaveUpAfter, absl::Cord(absl::FormatDuration(after)));
  return status;
}

Backoff::Backoff(const RetryPolicy& policy)
    : initial_(policy.initial_backoff),
      max_(policy.max_backoff),
      multiplier_(std::max(1.0, policy.multiplier)),
      ceiling_(std::min(initial_, max_)),
      random_(std::random_device()()) {}

absl::Duration Backoff::Next(const absl::Status& error) {
  const double share = std::uniform_real_distribution<double>(0.5, 1.0)(random_);
  const absl::Duration drawn = ceiling_ * share;
  ceiling_ = std::min(ceiling_ * multiplier_, max_);
  return std::max(drawn, RetryDelay(error).value_or(absl::ZeroDuration()));
}

void Backoff::Reset() { ceiling_ = std::min(initial_, max_); }

absl::Status CallWithRetry(const RetryPolicy& policy, bool repeatable,
                           absl::FunctionRef<absl::Status()> attempt) {
  const auto begin = policy.now();
  Backoff backoff(policy);
  while (true) {
    const absl::Status status = attempt();
    if (status.ok() || !repeatable || !IsTransient(status)) return status;
    const absl::Duration wait = backoff.Next(status);
    if (absl::FromChrono(policy.now() - begin) + wait >= policy.give_up_after) return status;
    policy.sleep(wait);
  }
}

}  // namespace perceptrond::client
