// Numbers as example files hold them, read fast and correctly rounded.
#pragma once

#include <cstdint>
#include <string_view>

namespace perceptrond::client {

// Reads a decimal number ("-1", "+.5", "3e-2") from [p, end). The position after it, or null if
// there is none or it is not a finite float32. Too small for a float is 0.
const char* ParseFloat(const char* p, const char* end, float* value);

// Reads digits. The position after them, or null if there are none or the number is above 2^32 - 1.
const char* ParseUint32(const char* p, const char* end, uint32_t* value);

// The whole text is such a number.
bool ParseWholeFloat(std::string_view text, float* value);

}  // namespace perceptrond::client
