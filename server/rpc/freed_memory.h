// The memory that the allocator keeps.
#pragma once

#include <cstddef>

// jemalloc's; null with another allocator.
extern "C" int mallctl(const char* name, void* value, size_t* size, void* new_value,
                       size_t new_size) __attribute__((weak));

namespace perceptrond {

// Returns what was freed to the system, of all arenas: jemalloc would keep it for seconds, while more comes on top. Any
// thread.
inline void ReturnFreedMemory() {
  if (mallctl != nullptr) mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
}

}  // namespace perceptrond
