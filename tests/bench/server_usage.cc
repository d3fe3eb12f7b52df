#include "tests/bench/server_usage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/lock_counts.h"

namespace perceptrond::bench {
namespace {

// Kinds of locks by a part of the name of the function that takes them, the first that matches.
// What takes a model's gate and state takes no other lock itself.
struct Kind {
  const char* function;
  const char* name;
};
constexpr Kind kKinds[] = {
    {"::Ledger::", "ledger"},
    {"StoredExamples", "stored examples"},
    {"Committer::", "commit queue"},
    {"Workers::", "work queue"},
    {"LearnSession::", "session, turn"},
    {"StreamReactor", "stream"},
    {"LearnBatch", "state"},
    {"Learning::", "state"},
    {"PredictBatch", "state"},
};

[[noreturn]] void Abort(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace

std::map<std::string, double> ThreadNanos(pid_t process) {
  std::map<std::string, double> nanos;
  std::error_code error;
  const std::string tasks = absl::StrCat("/proc/", process, "/task");
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    double used = 0;
    std::ifstream(task.path() / "schedstat") >> used;
    nanos[name] += used;
  }
  return nanos;
}

LockUse& LockUse::operator+=(const LockUse& other) {
  acquired += other.acquired;
  contended += other.contended;
  held += other.held;
  return *this;
}

LockUse LockUse::operator-(const LockUse& other) const {
  return {acquired - other.acquired, contended - other.contended, held - other.held};
}

LockUse LockUse::operator/(double examples) const {
  return {acquired / examples, contended / examples, held / examples};
}

LockReader::LockReader(const std::string& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  void* const memory =
      mmap(nullptr, sizeof(LockFile), PROT_READ, MAP_SHARED, std::max(descriptor, 0), 0);
  if (descriptor < 0 || memory == MAP_FAILED) Abort("no locks are counted in " + file);
  close(descriptor);
  file_ = static_cast<const LockFile*>(memory);
  // Release builds are not stripped.
  std::FILE* const names = popen("nm -C -n --defined-only '" PERCEPTROND_BINARY "'", "r");
  char line[8192];
  while (names != nullptr && std::fgets(line, sizeof line, names) != nullptr) {
    char* end = nullptr;
    const uintptr_t begin = std::strtoull(line, &end, 16);
    if (end - line > 8) functions_.push_back({begin, end + 3});
  }
  if (names == nullptr || pclose(names) != 0 || functions_.empty()) Abort("nm does not run");
}

LockReader::~LockReader() { munmap(const_cast<LockFile*>(file_), sizeof(LockFile)); }

std::string LockReader::KindOf(uintptr_t call_site, bool exclusive) const {
  // The address is after the call, which may be the function's last instruction.
  const auto after = std::upper_bound(
      functions_.begin(), functions_.end(), call_site - file_->base - 1,
      [](uintptr_t address, const Function& function) { return address < function.begin; });
  if (call_site < file_->base || after == functions_.begin() || after == functions_.end())
    return "gRPC";
  const std::string& function = std::prev(after)->name;
  for (const Kind& kind : kKinds) {
    if (!absl::StrContains(function, kind.function)) continue;
    return std::string(kind.name) != "state" ? kind.name
           : exclusive                       ? "state"
                                             : "state, gate shared";
  }
  return "others";
}

LockUses LockReader::Read() const {
  LockUses uses;
  const int threads = std::min(file_->threads.load(), kLockThreads);
  for (int thread = 0; thread < threads; ++thread) {
    for (const LockCount& count : file_->counts[thread]) {
      if (count.call_site == 0) continue;
      uses[KindOf(count.call_site, count.exclusive)] +=
          {static_cast<double>(count.acquired), static_cast<double>(count.contended),
           static_cast<double>(count.held)};
    }
  }
  return uses;
}

}  // namespace perceptrond::bench
