// UTF-8 validation. A protobuf message with a string that is not UTF-8 cannot be parsed by the
// server.
#pragma once

#include <string_view>

namespace perceptrond::client {

// Whether the text is UTF-8 by RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
// Threads: any.
bool IsValidUtf8(std::string_view text);

}  // namespace perceptrond::client
