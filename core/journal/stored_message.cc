#include "core/journal/stored_message.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace perceptrond {

absl::Status SerializeStored(const google::protobuf::MessageLite& message, std::string& bytes) {
  if (message.ByteSizeLong() <= std::numeric_limits<int>::max() &&
      message.SerializeToString(&bytes))
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("journal: a ", message.GetTypeName(), " of ",
                                                   message.ByteSizeLong(),
                                                   " bytes is too large to be written"));
}

absl::Status ParseStored(absl::string_view bytes, google::protobuf::MessageLite& message,
                         absl::string_view what) {
  if (bytes.size() <= std::numeric_limits<int>::max() &&
      message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("journal: ", what, " does not parse"));
}

}  // namespace perceptrond
