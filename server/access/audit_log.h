// The audit log: a line of JSON for each administrative and each denied call.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Who did what, when, and with what outcome. Holds no token. A plain value.
struct AuditRecord {
  // The end of the call.
  absl::Time time;
  // Empty if the caller was not recognized.
  std::string principal;
  // "ipv4:10.0.0.7:4711".
  std::string peer;
  // "perceptron.v1.ModelService/DeleteModel"; "reload access file".
  std::string method;
  // The access file; empty for calls.
  std::string file;
  // A full name as the caller wrote it; empty if none was read.
  std::string model;
  // "OK", "PermissionDenied"; the reason of an error.
  std::string outcome;
  std::string reason;
  absl::Duration took;
  // Of the caller's trace context; empty without one.
  std::string trace_id;
  // Denied calls before this one that were too many to be recorded.
  uint64_t unrecorded_denials = 0;
};

// Appends records to a file, from a thread of its own: serving never waits for the disk. While
// nothing can be written, as on a full disk, records wait, up to kMaxWaitingBytes; then new ones are
// dropped and counted, and the next line that is written says how many. Lines are never torn by
// another process that appends, and survive the end of this process; after a power failure the last
// seconds may be missing.
//
// Thread contract: safe for any number of threads.
class AuditLog {
 public:
  static constexpr size_t kMaxWaitingBytes = 4 << 20;

  // Opens the file for appending, or creates it for this user alone. UNAVAILABLE if it cannot be
  // opened. An empty path: records go to the server's log instead.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(std::string path);
  // Tries once to write what waits.
  ~AuditLog();

  // Does not block.
  void Record(const AuditRecord& record) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has the thread open the path again, after the file was renamed.
  void Reopen() ABSL_LOCKS_EXCLUDED(mutex_);
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  AuditLog(std::string path, int file);

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes as much of `text` as can be, and removes it from there.
  bool Write(std::string& text);
  bool OpenFile();

  const std::string path_;
  // Used by the thread alone.
  int file_;
  bool failing_ = false;

  Mutex mutex_;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_since_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reopen_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> dropped_{0};
  // The last member, since it uses all the others. Not started for an empty path.
  std::thread thread_;
};

}  // namespace perceptrond
