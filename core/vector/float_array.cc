#include "core/vector/float_array.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace perceptrond {
namespace {

// What x86-64 and most of AArch64 call a huge page; elsewhere the advice does nothing.
constexpr size_t kPage = size_t{2} << 20;

// Smaller ones fit the caches and their tables of pages.
bool IsLarge(size_t count) { return count >= kPage / sizeof(float); }

}  // namespace

void* AllocateFloats(size_t count) {
  if (!IsLarge(count)) return ::operator new(count * sizeof(float));
  const size_t bytes = count * sizeof(float);
  const size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* const memory = std::aligned_alloc(kPage, whole);
  if (memory == nullptr) throw std::bad_alloc();
  // Not the last page if much of it would lie idle. Without large pages the small ones serve.
  const size_t advised = whole - bytes <= kPage / 4 ? whole : whole - kPage;
  if (advised > 0) static_cast<void>(madvise(memory, advised, MADV_HUGEPAGE));
  return memory;
}

void FreeFloats(void* memory, size_t count) {
  if (IsLarge(count)) {
    std::free(memory);
  } else {
    ::operator delete(memory);
  }
}

}  // namespace perceptrond
