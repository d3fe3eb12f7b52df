// Top: the best few of many values.
//
//   Top<int, std::greater<>> largest(2);
//   for (int value : {3, 9, 1, 7}) largest.Offer(value);
//   largest.Take();  // {9, 7}
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace perceptrond {

// Holds the `limit` best values of those offered, and never more: `better` is a strict weak order,
// and of equal values the one offered first is better. A heap: O(limit) memory, and most offers to
// a full one cost a single comparison.
//
// Threads: one at a time.
template <typename T, typename Better>
class Top {
 public:
  explicit Top(size_t limit, Better better = {}) : limit_(limit), better_(std::move(better)) {}

  // Returns the value that is not held because of this offer: `value` itself, another one, or none.
  std::optional<T> Offer(T value) {
    if (held_.size() < limit_) {
      held_.push_back({std::move(value), next_++});
      std::push_heap(held_.begin(), held_.end(), Order());
      return std::nullopt;
    }
    if (limit_ == 0 || !better_(value, held_.front().value)) return value;
    std::pop_heap(held_.begin(), held_.end(), Order());
    std::optional<T> worst = std::exchange(held_.back().value, std::move(value));
    held_.back().number = next_++;
    std::push_heap(held_.begin(), held_.end(), Order());
    return worst;
  }

  // The values held, best first. Nothing may be offered afterwards.
  std::vector<T> Take() {
    std::sort(held_.begin(), held_.end(), Order());
    std::vector<T> values;
    values.reserve(held_.size());
    for (Entry& entry : held_) values.push_back(std::move(entry.value));
    held_.clear();
    return values;
  }

 private:
  struct Entry {
    T value;
    // Counts the values taken.
    uint64_t number;
  };
  // The order of the heap, whose front is the worst.
  auto Order() const {
    return [this](const Entry& a, const Entry& b) {
      if (better_(a.value, b.value)) return true;
      return a.number < b.number && !better_(b.value, a.value);
    };
  }

  const size_t limit_;
  const Better better_;
  std::vector<Entry> held_;
  uint64_t next_ = 0;
};

}  // namespace perceptrond
