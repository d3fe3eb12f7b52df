// A file that hands out a few bytes at a time, and counts how often it is asked.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "client/format/reader.h"

namespace perceptrond::client {

class Trickle final : public ByteSource {
 public:
  Trickle(std::string content, size_t step, int* reads = nullptr)
      : content_(std::move(content)), step_(step), reads_(reads) {}
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    if (reads_ != nullptr) ++*reads_;
    const size_t count = std::min({size, step_, content_.size() - position_});
    std::copy_n(content_.data() + position_, count, buffer);
    position_ += count;
    return count;
  }

 private:
  const std::string content_;
  const size_t step_;
  int* const reads_;
  size_t position_ = 0;
};

}  // namespace perceptrond::client
