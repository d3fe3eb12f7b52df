// Messages as a journal stores them.
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perceptrond {

// RESOURCE_EXHAUSTED: it is larger than Protobuf can write.
absl::Status SerializeStored(const google::protobuf::MessageLite& message, std::string& bytes);

// DATA_LOSS: the bytes do not parse, or are more than Protobuf reads; `what` names the message.
absl::Status ParseStored(absl::string_view bytes, google::protobuf::MessageLite& message,
                         absl::string_view what);

}  // namespace perceptrond
