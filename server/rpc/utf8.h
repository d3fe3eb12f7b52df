// Which bytes are UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace perceptrond {

// The length of the well-formed UTF-8 sequence that text, which is not empty, starts with; 0 if it
// starts with none.
size_t Utf8Length(std::string_view text);

// Whether it is UTF-8 from end to end. O(text).
bool IsUtf8(std::string_view text);

}  // namespace perceptrond
