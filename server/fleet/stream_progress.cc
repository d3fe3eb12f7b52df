#include "server/fleet/stream_progress.h"

#include <algorithm>

#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond {

void StreamProgress::OnOpened(int64_t next_offset) {
  position_ = next_offset;
  continues_ = true;
}

void StreamProgress::OnForwarded(size_t rows) {
  ++unanswered_;
  position_ += static_cast<int64_t>(rows);
  NoteRows(rows, rows);
}

void StreamProgress::OnForwardedUnread(size_t rows) {
  NoteRows(rows, rows);
  is_opening_or_open_ = true;
  ++unanswered_;
  position_known_ = false;
}

void StreamProgress::OnAnswered(const ::perceptron::v1::LearnResult& result, size_t evaluated) {
  --unanswered_;
  floor_ = std::max(floor_, static_cast<uint64_t>(result.revision()));
  NoteMessage(result.updates() > 0);
  const uint64_t duplicates =
      result.duplicates() - std::min(result.duplicates(), uint64_t{evaluated});
  const uint64_t learned = result.examples() + static_cast<uint64_t>(result.row_errors_size());
  // After a message of nothing but duplicates the next one may be one of those, too. One that was
  // refused, or has no rows, is as if it had not been sent.
  if (!result.has_error() && duplicates + learned > 0) continues_ = learned > 0;
  // The rows of a refused message were counted as learned.
  if (result.has_error()) position_known_ = false;
  // Rows that were evaluated here meanwhile are after what the writer knows.
  if (unanswered_ > 0 || position_known_) return;
  position_ = result.acknowledged_offset() + 1;
  position_known_ = true;
}

StreamProgress::Clock::duration StreamProgress::TimeBehind(uint64_t copy, Clock::time_point now) {
  if (relaxed_ || copy >= floor_) {
    behind_since_.reset();
    return {};
  }
  if (!behind_since_.has_value()) behind_since_ = now;
  return now - *behind_since_;
}

bool StreamProgress::IsOpen(uint64_t copy) const {
  if (!position_known_) return false;
  return relaxed_ || (unanswered_ == 0 && copy >= floor_);
}

}  // namespace perceptrond
