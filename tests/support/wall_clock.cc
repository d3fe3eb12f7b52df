// A wall clock that a test sets. Preloaded into a program, it adds to the machine's clock the nanoseconds in the file
// $WALL_CLOCK, a number of eight bytes that may change at any time. As when the machine's clock is set, Abseil's waits,
// which are until a moment of the wall clock, end sooner or later then; those of pthread's condition variables stay as
// they are, since one that is begun again may miss a signal. Clocks that measure durations stay as they are, too.

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
// How soon a wait notices that the clock was set.
constexpr int64_t kSlice = 20'000'000;

template <typename Function>
Function* Next(const char* name, const char* version = nullptr) {
  void* found = version == nullptr ? nullptr : dlvsym(RTLD_NEXT, name, version);
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) abort();
  return reinterpret_cast<Function*>(found);
}

int64_t ToNanos(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

timespec FromNanos(int64_t nanos) { return {nanos / kSecond, nanos % kSecond}; }

// By how much the clock is wrong.
int64_t Difference() {
  static const volatile int64_t* const shared = [] {
    const char* const path = getenv("WALL_CLOCK");
    const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) abort();
    void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED) abort();
    return static_cast<const volatile int64_t*>(mapped);
  }();
  return *shared;
}

using ClockGetTime = int(clockid_t, timespec*);

int64_t Machine() {
  static ClockGetTime* const next = Next<ClockGetTime>("clock_gettime");
  timespec time;
  next(CLOCK_REALTIME, &time);
  return ToNanos(time);
}

// Until when the machine waits for a moment of the wall clock, and whether that is the moment.
timespec Slice(const timespec& until, bool& is_last) {
  const int64_t left = ToNanos(until) - Machine() - Difference();
  is_last = left <= kSlice;
  return FromNanos(Machine() + std::max<int64_t>(std::min(left, kSlice), 0));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static ClockGetTime* const next = Next<ClockGetTime>("clock_gettime");
  const int result = next(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    *time = FromNanos(ToNanos(*time) + Difference());
  return result;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  const int64_t now = Machine() + Difference();
  *time = {now / kSecond, now % kSecond / 1000};
  return 0;
}

time_t time(time_t* result) noexcept {
  const time_t now = (Machine() + Difference()) / kSecond;
  if (result != nullptr) *result = now;
  return now;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  using Wait = int(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static Wait* const next = Next<Wait>("pthread_cond_timedwait", "GLIBC_2.3.2");
  const timespec moment = FromNanos(ToNanos(*until) - Difference());
  return next(condition, mutex, &moment);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  using Wait = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static Wait* const next = Next<Wait>("pthread_cond_clockwait");
  if (clock != CLOCK_REALTIME) return next(condition, mutex, clock, until);
  return pthread_cond_timedwait(condition, mutex, until);
}

// Abseil waits by it. Declared by the name of the symbol, since its arguments are known here.
long Syscall(long number, long a, long b, long c, long d, long e, long f) asm("syscall");

long Syscall(long number, long a, long b, long c, long d, long e, long f) {
  using Call = long(long, long, long, long, long, long, long);
  static Call* const next = Next<Call>("syscall");
  const bool until_moment = number == SYS_futex && (b & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET &&
                            (b & FUTEX_CLOCK_REALTIME) != 0 && d != 0;
  while (until_moment) {
    bool is_last = false;
    const timespec slice = Slice(*reinterpret_cast<const timespec*>(d), is_last);
    const long result = next(number, a, b, c, reinterpret_cast<long>(&slice), e, f);
    if (is_last || result == 0 || errno != ETIMEDOUT) return result;
  }
  return next(number, a, b, c, d, e, f);
}

}  // extern "C"
