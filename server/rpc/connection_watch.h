// Decides which connections must be closed because they make the server hold bytes that never
// become a message: floods of frames without a call, calls that are reset at once, messages and
// headers that are begun and never finished.
//
// gRPC 1.51 has no bound of its own for these: it parses what arrives for as long as more arrives,
// and keeps header blocks and calls that were not accepted yet in unbounded memory.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "server/rpc/connections.h"

namespace perceptrond {

struct WatchLimits {
  // The longest message that a client may send.
  uint64_t max_message_bytes = uint64_t{16} << 20;
  // How long a message may take to arrive.
  absl::Duration receive_timeout = absl::Minutes(5);
  // Without a call for this long, a connection is closed.
  absl::Duration idle_timeout = absl::InfiniteDuration();
};

// Watches one connection. Its limits are far beyond what clients do that keep to the protocol:
// - no_call: 1 MiB arrived while no call is in flight, whose headers have at most 8 KiB; or there
//   was no call for the idle timeout.
// - unfinished_bytes: more arrived since the last message or call than the calls in flight may send.
// - receive_timeout: more than 64 KiB arrived, and for longer than that limit no whole message or
//   call.
// - resets: 5000 calls were cancelled, beyond 500 a second and one for each that was not.
//
// Bytes count once gRPC has read them: what waits in the kernel for a busy server is not the
// client's doing. Not thread-safe. O(1) throughout.
class ConnectionWatch {
 public:
  // What the connection has done by now.
  struct Figures {
    // Bytes that gRPC has read.
    uint64_t read_bytes = 0;
    Connection::Counts counts = {};
  };

  explicit ConnectionWatch(absl::Time now)
      : progress_time_(now), call_time_(now), look_time_(now) {}

  // Why the connection must be closed; absent if it may go on. To be called regularly, more than
  // once a second while bytes arrive.
  std::optional<CloseReason> Check(const Figures& figures, const WatchLimits& limits,
                                   absl::Time now);

  // Bytes read that are part of no message known to be whole: an upper bound of what the connection
  // makes the server hold. Part of it may belong to calls that have ended.
  uint64_t held_bytes() const { return held_bytes_; }
  // When the connection last had no more than a few bytes of a message unfinished.
  absl::Time progress_time() const { return progress_time_; }

 private:
  void NoteProgress(const Figures& figures, const WatchLimits& limits, absl::Time now);
  double ResetsAfter(const Figures& figures, absl::Time now);

  Figures last_;
  // Bytes read since a message or a call last ended, but for those of calls that were cancelled.
  uint64_t unfinished_bytes_ = 0;
  absl::Time progress_time_;
  // When a call was last in flight.
  absl::Time call_time_;
  absl::Time look_time_;
  uint64_t held_bytes_ = 0;
  // Cancelled calls, less those that are forgiven.
  double resets_ = 0;
  // Whether the last look found too many bytes without a call.
  bool suspect_ = false;
};

}  // namespace perceptrond
