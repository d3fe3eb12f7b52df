// A value that can be reached only while its lock is held.
#pragma once

#include <utility>

#include "core/sync/mutex.h"

namespace perceptrond {

// Example:
//   Guarded<Table> table;
//   Guarded<Table>::Reader reader(table);  // shared: other readers run at the same time
//   reader->Find("x");
//   Guarded<Table>::Writer writer(table);  // exclusive
//   writer->Add("y");
//
// Thread contract: safe for any number of threads. A guard belongs to the thread that made it.
template <typename T>
class Guarded {
 public:
  template <typename... Args>
  explicit Guarded(Args&&... args) : value_{std::forward<Args>(args)...} {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // Holds the lock shared for as long as it lives.
  class Reader {
   public:
    explicit Reader(const Guarded& guarded) ABSL_NO_THREAD_SAFETY_ANALYSIS : guarded_(guarded) {
      guarded_.mutex_.ReaderLock();
    }
    ~Reader() ABSL_NO_THREAD_SAFETY_ANALYSIS { guarded_.mutex_.ReaderUnlock(); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    const T& operator*() const { return guarded_.value_; }
    const T* operator->() const { return &guarded_.value_; }

   private:
    const Guarded& guarded_;
  };

  // Holds the lock exclusively for as long as it lives.
  class Writer {
   public:
    explicit Writer(Guarded& guarded) ABSL_NO_THREAD_SAFETY_ANALYSIS : guarded_(guarded) {
      guarded_.mutex_.Lock();
    }
    ~Writer() ABSL_NO_THREAD_SAFETY_ANALYSIS { guarded_.mutex_.Unlock(); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    T& operator*() const { return guarded_.value_; }
    T* operator->() const { return &guarded_.value_; }

   private:
    Guarded& guarded_;
  };

 private:
  mutable Mutex mutex_;
  T value_;
};

}  // namespace perceptrond
