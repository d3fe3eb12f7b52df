// Is it UTF-8? A name that is not would make the whole message unreadable to the server.
#pragma once

#include <string_view>

namespace perceptrond::client {

// As RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. Threads: any.
bool IsValidUtf8(std::string_view text);

}  // namespace perceptrond::client
