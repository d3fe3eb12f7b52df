// The memory of a parsed message, known before it is parsed.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>

#include "absl/strings/string_view.h"

namespace perceptrond {

// About what a serialized message of this type takes once it is parsed: an empty part of it, of two bytes, becomes an
// object of hundreds. Of malformed bytes, what comes before the error. O(parts and bytes that are not packed).
size_t ParsedBytes(const google::protobuf::Descriptor& type, absl::string_view bytes);

}  // namespace perceptrond
