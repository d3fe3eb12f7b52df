// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace perceptrond {

// "12.34%" of a ratio.
std::string Percent(double ratio);
// "54,000".
std::string Grouped(uint64_t count);

}  // namespace perceptrond
