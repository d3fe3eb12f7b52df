// Any bytes as a request with nested examples: the server reads what Protobuf's parser reads, and
// refuses what it refuses. The first byte is the size of the slices that the request comes in.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzz_input.h"
#include "tests/support/nested_examples.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string difference = perceptrond::testing::DifferenceFromProtobuf(
      {reinterpret_cast<const char*>(data + 1), size - 1}, size_t{data[0]} + 1);
  if (!difference.empty()) {
    std::fprintf(stderr, "%s\n", difference.c_str());
    std::abort();
  }
  return 0;
}
