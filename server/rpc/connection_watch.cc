#include "server/rpc/connection_watch.h"

#include <algorithm>
#include <cmath>

namespace perceptrond {
namespace {

constexpr uint64_t kMaxBytesWithoutCall = 1 << 20;
// Frames that belong to no message: settings, pings, window updates.
constexpr uint64_t kMaxIdleBytes = 64 << 10;
// Keepalive pings take at most this much, a second.
constexpr double kPingBytesPerSecond = 128;
// What a call or a message takes beside its content: headers and frames, encrypted.
constexpr uint64_t kOverheadBytes = 16 << 10;
constexpr double kMaxResets = 5000;
constexpr double kForgivenResetsPerSecond = 500;

uint64_t PingBytes(absl::Duration duration) {
  return static_cast<uint64_t>(
      std::max(0.0, std::ceil(kPingBytesPerSecond * absl::ToDoubleSeconds(duration))));
}

}  // namespace

void ConnectionWatch::NoteProgress(const Figures& figures, const WatchLimits& limits,
                                   absl::Time now) {
  const Connection::Counts& counts = figures.counts;
  const uint64_t begun = counts.begun - last_.counts.begun;
  const uint64_t cancelled = counts.cancelled - last_.counts.cancelled;
  const uint64_t progress = counts.progress - last_.counts.progress;
  const uint64_t read = figures.read_bytes - last_.read_bytes;
  held_bytes_ += read;
  held_bytes_ -= std::min(held_bytes_, counts.message_bytes - last_.counts.message_bytes +
                                           (begun + progress) * kOverheadBytes);
  // What a cancelled call has sent is not known, and no longer held.
  unfinished_bytes_ += read;
  unfinished_bytes_ -=
      std::min(unfinished_bytes_, begun * kOverheadBytes + cancelled * limits.max_message_bytes +
                                      PingBytes(now - look_time_));
  if (progress > 0) unfinished_bytes_ = 0;
  if (unfinished_bytes_ <= kMaxIdleBytes) progress_time_ = now;
  if (counts.in_flight > 0 || begun > 0) call_time_ = now;
  if (counts.in_flight == 0 && progress > 0) held_bytes_ = 0;
}

double ConnectionWatch::ResetsAfter(const Figures& figures, absl::Time now) {
  const auto since = [](uint64_t count, uint64_t before) {
    return static_cast<double>(count - before);
  };
  const double forgiven = kForgivenResetsPerSecond * absl::ToDoubleSeconds(now - look_time_) +
                          since(figures.counts.progress, last_.counts.progress);
  return std::max(0.0,
                  resets_ + since(figures.counts.cancelled, last_.counts.cancelled) - forgiven);
}

std::optional<CloseReason> ConnectionWatch::Check(const Figures& figures, const WatchLimits& limits,
                                                  absl::Time now) {
  NoteProgress(figures, limits, now);
  resets_ = ResetsAfter(figures, now);
  last_ = figures;
  look_time_ = now;
  // A call that gRPC has read may wait for the polling thread: look twice.
  const bool was_suspect = suspect_;
  suspect_ = figures.counts.in_flight == 0 && unfinished_bytes_ > kMaxBytesWithoutCall;
  if (resets_ > kMaxResets) return CloseReason::kResets;
  if ((suspect_ && was_suspect) || now - call_time_ > limits.idle_timeout)
    return CloseReason::kNoCall;
  const uint64_t in_flight = figures.counts.in_flight;
  if (in_flight > 0 &&
      unfinished_bytes_ > kMaxBytesWithoutCall + in_flight * limits.max_message_bytes)
    return CloseReason::kUnfinishedBytes;
  if (now - progress_time_ > limits.receive_timeout) return CloseReason::kReceiveTimeout;
  return std::nullopt;
}

}  // namespace perceptrond
