// EraNames: the names that the messages of a stream have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {

// The names that a BatchBuilder numbers from 0 on. When it starts anew, it leaves them to the
// messages that have them.
//
// Threads: any.
class EraNames {
 public:
  void Append(std::string_view name) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    text_.append(name);
    ends_.push_back(text_.size());
  }

  // Appends the names from `begin` to `end` - 1 to *column. False, and appends none: they have more
  // than `max_bytes` bytes.
  bool CopyTo(uint32_t begin, uint32_t end, size_t max_bytes,
              perceptron::v1::NameColumn* column) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    const size_t first = BeginOf(begin);
    const size_t bytes = BeginOf(end) - first;
    if (bytes > max_bytes) return false;
    column->mutable_text()->append(text_, first, bytes);
    for (uint32_t number = begin; number < end; ++number) AddLength(number, column);
    return true;
  }

  // Appends the names with these numbers.
  void CopyTo(std::span<const uint32_t> numbers, perceptron::v1::NameColumn* column) const
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    for (const uint32_t number : numbers) {
      const size_t begin = BeginOf(number);
      column->mutable_text()->append(text_, begin, ends_[number] - begin);
      AddLength(number, column);
    }
  }

 private:
  size_t BeginOf(uint32_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return number == 0 ? 0 : ends_[number - 1];
  }
  void AddLength(uint32_t number, perceptron::v1::NameColumn* column) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    column->add_lengths(static_cast<uint32_t>(ends_[number] - BeginOf(number)));
  }

  mutable Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> ends_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond::client
