// How far a client's stream is, of which this server evaluates what it can and forwards the rest to
// the model's writer; and what may become of the stream's next message.
//
// In strict order a row may be evaluated here only on a copy that has all of the stream's earlier
// updates: while the writer has not answered everything that was forwarded, and until the copy has
// taken over what the answers name, the stream is closed. A closed stream waits until it is open,
// unless many of its latest messages had updates: then it forwards its messages whole, which costs
// it no time. If all streams did, one would stay closed for as long as its client sends ahead, and
// the writer would have the work of streams that need it no more
// (docs/adr/0047-rows-evaluated-anywhere.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace perceptron::v1 {
class LearnResult;
}

namespace perceptrond {

// Not thread-safe.
class StreamProgress {
 public:
  using Clock = std::chrono::steady_clock;

  // `relaxed`: rows need not wait for the stream's earlier updates.
  explicit StreamProgress(bool relaxed) : relaxed_(relaxed) {}

  // The writer has opened the stream: its producer's next example is this one.
  void OnOpened(int64_t next_offset);
  // Rows from position() on were evaluated here, `whole`: those of a message.
  void OnEvaluated(size_t rows, bool whole) {
    position_ += static_cast<int64_t>(rows);
    NoteRows(rows, 0);
    if (whole) NoteMessage(false);
  }
  // A message was forwarded that begins at position() and that this server has read: it will be
  // learned.
  void OnForwarded(size_t rows);
  // One with as many rows that this server did not read: it may begin elsewhere, or be refused.
  void OnForwardedUnread(size_t rows);
  // The writer answered the oldest forwarded message that had no answer. `evaluated`: the rows of
  // it that were evaluated here, which are duplicates in `result`.
  void OnAnswered(const ::perceptron::v1::LearnResult& result, size_t evaluated);

  // Whether rows may be evaluated on a copy at this revision.
  bool IsOpen(uint64_t copy) const;
  // Whether the next message begins at position(), so that its rows may be evaluated without
  // asking.
  bool Continues(std::optional<int64_t> stated) const {
    return stated.has_value() ? *stated == position_ : continues_;
  }
  // Whether the next message should wait until the stream is open.
  bool ShouldWait(uint64_t copy) const {
    return erring_ < kErring && is_opening_or_open_ && !IsOpen(copy);
  }
  // For how long a copy, which is at this revision now, has kept the stream closed by lacking what
  // the answers name: its server may be unable to update it. To be asked whenever either changes.
  Clock::duration TimeBehind(uint64_t copy, Clock::time_point now);
  // The revision that a copy needs once everything forwarded is answered.
  uint64_t floor() const { return floor_; }
  bool is_answered() const { return unanswered_ == 0; }
  // Whether more than half of the latest rows, some thousands, were forwarded.
  bool mostly_forwarded() const {
    return latest_ >= kLatestRows / 2 && 2 * latest_forwarded_ > latest_;
  }
  // The offset of the example after the last one that was evaluated here or forwarded.
  int64_t position() const { return position_; }

 private:
  // From this part on messages are forwarded without waiting.
  static constexpr double kErring = 1.0 / 8;
  // Of a message in that part.
  static constexpr double kWeight = 1.0 / 16;
  // The latest rows are at most this many, and at least half of it once there were as many.
  static constexpr uint64_t kLatestRows = 4096;

  void NoteMessage(bool has_updates) { erring_ += kWeight * (has_updates - erring_); }
  void NoteRows(size_t rows, size_t forwarded) {
    latest_ += rows;
    latest_forwarded_ += forwarded;
    for (; latest_ > kLatestRows; latest_ /= 2) latest_forwarded_ /= 2;
  }

  const bool relaxed_;
  // A message was forwarded, so that the stream is or will be opened.
  bool is_opening_or_open_ = false;
  // Messages that were forwarded and have no answer.
  size_t unanswered_ = 0;
  uint64_t floor_ = 0;
  // Since when the copy is at an older one.
  std::optional<Clock::time_point> behind_since_;
  // The part of the latest messages that had updates: a moving average.
  double erring_ = 0;
  // Of the latest rows: all, and those that were forwarded.
  uint64_t latest_ = 0;
  uint64_t latest_forwarded_ = 0;
  int64_t position_ = 0;
  // position_ is right if the forwarded messages are learned.
  bool position_known_ = false;
  // A message that does not state its offset begins at position_.
  bool continues_ = false;
};

}  // namespace perceptrond
