// Arrays of float32 that may be large: weights, and what lies beside them.
#pragma once

#include <cstddef>
#include <vector>

namespace perceptrond {

// Puts large arrays on large pages where the system gives them to those who ask: weights are read
// here and there, and with pages of 4 KiB each read beyond the caches must find its page first.
// Throws std::bad_alloc as any allocator. Any thread.
void* AllocateFloats(size_t count);
void FreeFloats(void* memory, size_t count);

// What a standard container asks of an allocator; only ever one of float.
template <typename T>
struct FloatAllocator {
  static_assert(sizeof(T) == sizeof(float));
  using value_type = T;

  T* allocate(size_t count) { return static_cast<T*>(AllocateFloats(count)); }
  void deallocate(T* memory, size_t count) { FreeFloats(memory, count); }
  friend bool operator==(FloatAllocator, FloatAllocator) { return true; }
};

using FloatArray = std::vector<float, FloatAllocator<float>>;

}  // namespace perceptrond
