// Recognizes compressed files, so that nobody is told of bad labels in one.
#pragma once

#include <cstddef>
#include <string_view>

namespace perceptrond::client {

struct Compression {
  const char* name;
  // The command that unpacks to standard output.
  const char* unpack;
};

// How many bytes of a file's start suffice to tell.
inline constexpr size_t kCompressionMagicBytes = 10;

// Null: none that is known. Threads: any.
const Compression* DetectCompression(std::string_view start);

}  // namespace perceptrond::client
