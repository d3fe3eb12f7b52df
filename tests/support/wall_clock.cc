// A wall clock that a test sets. Preloaded into a program, it adds to the machine's clock the nanoseconds in the file
// $WALL_CLOCK, a number of eight bytes that may change at any time. Clocks that measure durations stay as they are.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto next =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(dlsym(RTLD_NEXT, "clock_gettime"));
  static const volatile int64_t* const difference = [] {
    const char* const path = getenv("WALL_CLOCK");
    const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void* const mapped =
        fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) abort();
    return static_cast<const volatile int64_t*>(mapped);
  }();
  const int result = next(clock, time);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  const int64_t nanos = time->tv_sec * int64_t{1'000'000'000} + time->tv_nsec + *difference;
  *time = {nanos / 1'000'000'000, nanos % 1'000'000'000};
  return result;
}
