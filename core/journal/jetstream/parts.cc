#include "core/journal/jetstream/parts.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace perceptrond::jetstream {

void AddInParts(const std::string& subject, absl::string_view data, size_t max_data,
                std::vector<NewMessage>& messages) {
  const size_t parts = std::max<size_t>(1, (data.size() + max_data - 1) / max_data);
  // NATS may accept the last parts of a writer that was superseded after the first ones of its
  // successor.
  thread_local absl::BitGen random;
  const absl::Hex whole(absl::Uniform<uint64_t>(random));
  for (size_t i = 0; i < parts; ++i) {
    NewMessage& message = messages.emplace_back();
    message.subject = subject;
    message.data = std::string(data.substr(i * max_data, max_data));
    if (parts > 1) message.part = absl::StrCat(i + 1, "/", parts, "/", whole);
  }
}

std::optional<StreamMessage> PartJoiner::Add(StreamMessage message) {
  if (message.part.empty()) {
    joined_ = StreamMessage();
    parts_ = 0;
    return message;
  }
  // Number, how many there are, and of which message.
  const std::vector<absl::string_view> fields = absl::StrSplit(message.part, '/');
  size_t number = 0;
  size_t parts = 0;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &number) ||
      !absl::SimpleAtoi(fields[1], &parts))
    number = 0;
  const bool begins = number == 1;
  const bool follows =
      number == parts_ + 1 && message.subject == joined_.subject && fields.back() == joined_.part;
  if (!begins && !follows) {
    joined_ = StreamMessage();
    parts_ = 0;
    return std::nullopt;
  }
  if (begins) {
    joined_ = StreamMessage();
    joined_.subject = message.subject;
    joined_.part = std::string(fields.back());
  }
  parts_ = number;
  joined_.data += message.data;
  joined_.sequence = message.sequence;
  joined_.time = message.time;
  if (number < parts) return std::nullopt;
  parts_ = 0;
  joined_.part.clear();
  return std::exchange(joined_, StreamMessage());
}

}  // namespace perceptrond::jetstream
