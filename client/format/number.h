// Parsing of numbers in example files, correctly rounded.
#pragma once

#include <cstdint>
#include <string_view>

namespace perceptrond::client {

// Parses a decimal number ("-1", "+.5", "3e-2") in [p, end). Returns the position after it, or null
// if there is none or it is not a finite float32. Numbers too small for a float are 0.
const char* ParseFloat(const char* p, const char* end, float* value);

// Parses digits. Returns the position after them, or null if there are none or the number is above
// 2^32 - 1.
const char* ParseUint32(const char* p, const char* end, uint32_t* value);

// Parses a text that is a number as a whole; false if it is not.
bool ParseWholeFloat(std::string_view text, float* value);

}  // namespace perceptrond::client
