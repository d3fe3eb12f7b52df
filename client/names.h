// Names: of models, and the random ones of requests and producers.
#pragma once

#include <string>
#include <string_view>

namespace perceptrond::client {

// "models/spam" for "spam" and for "models/spam". Whether the name is a legal one is the server's
// to say.
std::string ModelName(std::string_view name);

// "spam" for both.
std::string_view ModelId(std::string_view name);

// 32 hexadecimal digits from the system's source of randomness: unique wherever they are drawn.
// Threads: any.
std::string RandomId();

}  // namespace perceptrond::client
