// Reads a fuzzer's bytes as choices: settings, rows, where messages end. When the bytes are used up
// every further choice is 0, so that any input is a whole one. What all fuzzers share.
#pragma once

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/escaping.h"

namespace perceptrond::testing {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  bool empty() const { return left_ == 0; }
  uint8_t Byte() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  // The next bytes, at most so many.
  std::string Bytes(size_t most) {
    const std::string bytes(reinterpret_cast<const char*>(data_), std::min(most, left_));
    data_ += bytes.size();
    left_ -= bytes.size();
    return bytes;
  }
  // 0 to `end` - 1; end is at most 256.
  size_t Below(size_t end) { return Byte() % end; }
  bool Flag() { return Below(2) == 1; }
  // One of a few values.
  template <typename T, size_t kSize>
  T OneOf(const T (&values)[kSize]) {
    return values[Below(kSize)];
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

// Protobuf has something to say of most inputs.
inline const bool is_quiet = (google::protobuf::SetLogHandler(nullptr), true);

// Ends the process, as a finding, unless it holds.
inline void Check(bool holds) {
  if (!holds) std::abort();
}

// Ends the process, as a finding, unless the two are equal; prints where they begin to differ.
inline void CheckEqual(const std::string& what, const std::string& one, const std::string& other) {
  if (one == other) return;
  size_t at = 0;
  while (at < one.size() && at < other.size() && one[at] == other[at]) ++at;
  at -= std::min<size_t>(at, 60);
  const auto show = [at](const std::string& text) {
    return absl::CHexEscape(text.substr(std::min(at, text.size()), 300));
  };
  std::fprintf(stderr, "%s differ, from byte %zu:\n%s\n%s\n", what.c_str(), at, show(one).c_str(),
               show(other).c_str());
  std::abort();
}

}  // namespace perceptrond::testing
