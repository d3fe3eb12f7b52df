// Where the processor time of the real server goes, by its threads, and what its locks cost.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace perceptrond::bench {

struct LockFile;

// Processor nanoseconds of a process so far, by the names of its threads. A thread that has ended
// is not counted.
std::map<std::string, double> ThreadNanos(pid_t process);

// Acquisitions of one kind of lock.
struct LockUse {
  double acquired = 0;
  double contended = 0;
  // Nanoseconds.
  double held = 0;

  LockUse& operator+=(const LockUse& other);
  LockUse operator-(const LockUse& other) const;
  // For each of `examples`.
  LockUse operator/(double examples) const;
};

// By what each kind of lock is called in the tables: the lock and, if it has readers, how it is
// held.
using LockUses = std::map<std::string, LockUse>;

// Reads what the library lock_counts counts in a process that runs the real server's program.
// Not thread-safe.
class LockReader {
 public:
  // The process was started with kLockFileVariable = `file`, and runs. Aborts if it does not count.
  explicit LockReader(const std::string& file);
  ~LockReader();
  LockReader(const LockReader&) = delete;
  LockReader& operator=(const LockReader&) = delete;

  // So far, by kind.
  LockUses Read() const;

 private:
  struct Function {
    uintptr_t begin;
    std::string name;
  };

  std::string KindOf(uintptr_t call_site, bool exclusive) const;

  const LockFile* file_;
  // Of the program, by where they begin.
  std::vector<Function> functions_;
};

}  // namespace perceptrond::bench
