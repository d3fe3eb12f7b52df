#include "core/vector/float_array.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace perceptrond {
namespace {

// What x86-64 and most of AArch64 call a huge page; elsewhere the advice does nothing.
constexpr size_t kPage = size_t{2} << 20;

// Smaller ones fit the caches and their tables of pages.
bool IsLarge(size_t count) { return count >= kPage / sizeof(float); }

size_t WholePages(size_t count) { return (count * sizeof(float) + kPage - 1) / kPage * kPage; }

// Whole pages of the system's own: advice stays with the memory, so that an allocator that got them
// back would keep whole huge pages for the little that it puts there.
char* MapPages(size_t bytes) {
  void* const mapped = mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(mapped);
  const size_t before = (kPage - reinterpret_cast<uintptr_t>(mapped) % kPage) % kPage;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kPage - before);
  return begin + before;
}

}  // namespace

void* AllocateFloats(size_t count) {
  if (!IsLarge(count)) return ::operator new(count * sizeof(float));
  const size_t whole = WholePages(count);
  char* const memory = MapPages(whole);
  // Not the last page if much of it would lie idle. Without large pages the small ones serve.
  const size_t idle = whole - count * sizeof(float);
  const size_t advised = idle <= kPage / 4 ? whole : whole - kPage;
  if (advised > 0) static_cast<void>(madvise(memory, advised, MADV_HUGEPAGE));
  return memory;
}

void FreeFloats(void* memory, size_t count) {
  if (IsLarge(count)) {
    munmap(memory, WholePages(count));
  } else {
    ::operator delete(memory);
  }
}

}  // namespace perceptrond
