#include "absl/strings/str_cat.h"
#include "client/learn_stream.h"

namespace perceptrond::client {

absl::Status CheckLearnOptions(const LearnOptions& options) {
  if (options.rows_per_message < 1 || options.rows_per_message > 65'536) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows_per_message is ", options.rows_per_message, "; it must be 1 to 65,536"));
  }
  if (options.window_messages < 1) {
    return absl::InvalidArgumentError("window_messages is 0; it must be at least 1");
  }
  if (options.start_offset.value_or(0) < 0 || options.passes_before.value_or(0) < 0) {
    return absl::InvalidArgumentError("start_offset and passes_before must not be negative");
  }
  return absl::OkStatus();
}

}  // namespace perceptrond::client
