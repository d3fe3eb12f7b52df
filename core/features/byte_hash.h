// XXH3-64 of bytes that come one after the other: equal to HashBytes of all of them.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"

namespace perceptrond {

// Not thread-safe.
class ByteHash {
 public:
  explicit ByteHash(uint64_t seed);
  ~ByteHash();

  void Add(absl::string_view bytes);
  // Of the bytes so far. O(1).
  uint64_t Value() const;

 private:
  struct State;

  const std::unique_ptr<State> state_;
};

}  // namespace perceptrond
