#include "core/journal/jetstream/parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace perceptrond::jetstream {

void AddInParts(const std::string& subject, absl::string_view data, size_t max_data,
                std::vector<NewMessage>& messages) {
  const size_t parts = std::max<size_t>(1, (data.size() + max_data - 1) / max_data);
  for (size_t i = 0; i < parts; ++i) {
    NewMessage& message = messages.emplace_back();
    message.subject = subject;
    message.data = std::string(data.substr(i * max_data, max_data));
    if (parts > 1) message.part = absl::StrCat(i + 1, "/", parts);
  }
}

std::optional<StreamMessage> PartJoiner::Add(StreamMessage message) {
  if (message.part.empty()) {
    joined_ = StreamMessage();
    parts_ = 0;
    return message;
  }
  size_t number = 0;
  size_t parts = 0;
  const size_t slash = message.part.find('/');
  const absl::string_view part = message.part;
  if (slash == std::string::npos || !absl::SimpleAtoi(part.substr(0, slash), &number) ||
      !absl::SimpleAtoi(part.substr(slash + 1), &parts))
    number = 0;
  const bool begins = number == 1;
  const bool follows = number == parts_ + 1 && message.subject == joined_.subject;
  if (!begins && !follows) {
    joined_ = StreamMessage();
    parts_ = 0;
    return std::nullopt;
  }
  if (begins) joined_ = StreamMessage{0, {}, message.subject, {}, {}};
  parts_ = number;
  joined_.data += message.data;
  joined_.sequence = message.sequence;
  joined_.time = message.time;
  if (number < parts) return std::nullopt;
  parts_ = 0;
  return std::exchange(joined_, StreamMessage());
}

}  // namespace perceptrond::jetstream
