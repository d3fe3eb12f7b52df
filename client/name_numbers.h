// The numbers that a BatchBuilder gives the names of a message, for the MessageEncoder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace perceptrond::client {

class EraNames;

// The names of a message whose indices are their numbers. A plain value.
struct NameNumbers {
  // Null: it has none.
  std::shared_ptr<const EraNames> era;
  // All numbers are below.
  uint32_t end = 0;
  // How many different ones there are.
  uint32_t count = 0;
};

// Lists the different numbers of a message.
//
// Threads: one at a time.
class NumberList {
 public:
  // Replaces each number by its position among numbers(), which are in order of first occurrence.
  // `end`: all are below.
  void Make(std::span<uint32_t> numbers, uint32_t end) {
    numbers_.clear();
    ++list_;
    if (listed_.size() < end) listed_.resize(end);
    for (uint32_t& number : numbers) {
      Listed& listed = listed_[number];
      if (listed.list != list_) {
        listed = {list_, static_cast<uint32_t>(numbers_.size())};
        numbers_.push_back(number);
      }
      number = listed.position;
    }
  }
  const std::vector<uint32_t>& numbers() const { return numbers_; }

 private:
  struct Listed {
    // The last list that had the number.
    uint64_t list = 0;
    uint32_t position = 0;
  };

  std::vector<Listed> listed_;
  std::vector<uint32_t> numbers_;
  uint64_t list_ = 0;
};

}  // namespace perceptrond::client
