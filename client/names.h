// Resource names of models, and random ids of requests and producers.
#pragma once

#include <string>
#include <string_view>

namespace perceptrond::client {

// Returns "models/spam" for "spam" and "models/spam". Does not check that the name is valid.
std::string ModelName(std::string_view name);

// Returns "spam" for "spam" and "models/spam".
std::string_view ModelId(std::string_view name);

// Returns 32 hexadecimal digits from the system's source of randomness: globally unique. Threads:
// any.
std::string RandomId();

}  // namespace perceptrond::client
