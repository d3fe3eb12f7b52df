// Messages larger than NATS carries, in parts: one after the other on one subject, of which the
// last makes the whole valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/journal/jetstream/stream.h"

namespace perceptrond::jetstream {

// Appends the message to `messages`, in parts if it is larger than `max_data`.
void AddInParts(const std::string& subject, absl::string_view data, size_t max_data,
                std::vector<NewMessage>& messages);

// Puts parts together. Parts that are not followed by the rest are dropped: their writer ended, or
// was refused.
//
// Thread contract: not thread-safe.
class PartJoiner {
 public:
  // Adds the next message. Returns the whole that it ends, with its own sequence number.
  std::optional<StreamMessage> Add(StreamMessage message);

 private:
  // Of the parts so far; empty subject: none. Its `part` says of which message they are.
  StreamMessage joined_;
  size_t parts_ = 0;
};

}  // namespace perceptrond::jetstream
