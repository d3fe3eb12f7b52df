#include "server/access/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/sync/thread_name.h"
#include "server/config/logging.h"

namespace perceptrond {
namespace {

constexpr absl::Duration kRetryInterval = absl::Seconds(1);
constexpr char kMessage[] = "audit";
// What a caller chose is cut, so that no call makes a record of megabytes.
constexpr size_t kMaxValueBytes = 512;

int OpenForAppend(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

std::string_view Shorten(const std::string& value) {
  return std::string_view(value).substr(0, kMaxValueBytes);
}

std::vector<LogField> Fields(const AuditRecord& record) {
  std::vector<LogField> fields = {{"principal", Shorten(record.principal)},
                                  {"peer", Shorten(record.peer)},
                                  {"method", Shorten(record.method)},
                                  {"model", Shorten(record.model)},
                                  {"outcome", record.outcome},
                                  {"reason", record.reason},
                                  {"seconds", absl::ToDoubleSeconds(record.took)}};
  if (!record.file.empty()) fields.emplace_back("file", Shorten(record.file));
  if (!record.trace_id.empty()) fields.emplace_back("trace_id", record.trace_id);
  if (record.unrecorded_denials > 0)
    fields.emplace_back("unrecorded_denials", record.unrecorded_denials);
  return fields;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(std::string path) {
  const int file = path.empty() ? -1 : OpenForAppend(path);
  if (file < 0 && !path.empty()) {
    return absl::UnavailableError(
        absl::StrCat("cannot open the audit log ", path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(path), file));
}

AuditLog::AuditLog(std::string path, int file) : path_(std::move(path)), file_(file) {
  if (!path_.empty()) thread_ = std::thread([this] { Run(); });
}

AuditLog::~AuditLog() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  if (file_ >= 0) close(file_);
}

void AuditLog::Record(const AuditRecord& record) {
  const std::vector<LogField> fields = Fields(record);
  if (path_.empty()) return LogAll(LogLevel::kInfo, kMessage, fields);
  const std::string line = FormatLogJson(record.time, LogLevel::kInfo, kMessage, fields);
  MutexLock lock(&mutex_);
  if (waiting_.size() + line.size() > kMaxWaitingBytes) {
    ++dropped_since_;
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  absl::StrAppend(&waiting_, line, "\n");
}

void AuditLog::Reopen() {
  MutexLock lock(&mutex_);
  reopen_ = true;
}

void AuditLog::Run() {
  NameThisThread("audit");
  // What is being written; begins with what is left of a line.
  std::string text;
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !waiting_.empty() || reopen_ || stopping_;
  };
  for (bool stop = false; !stop;) {
    uint64_t dropped = 0;
    bool reopen = false;
    {
      MutexLock lock(&mutex_);
      if (text.empty()) {
        mutex_.Await(absl::Condition(&has_work));
      } else {
        // The disk is full, or the file is gone: again in a while.
        const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
        mutex_.AwaitWithTimeout(absl::Condition(&stopping), kRetryInterval);
      }
      stop = stopping_;
      reopen = std::exchange(reopen_, false);
      // Waiting lines stay where they are counted until those before them are written.
      if (text.empty() || stop) {
        absl::StrAppend(&text, std::exchange(waiting_, ""));
        dropped = std::exchange(dropped_since_, 0);
      }
    }
    if (dropped > 0) {
      absl::StrAppend(&text,
                      FormatLogJson(absl::Now(), LogLevel::kError, "audit records were dropped",
                                    std::vector<LogField>{{"count", dropped}}),
                      "\n");
    }
    if (reopen && !OpenFile()) {
      Log(LogLevel::kError,
          "cannot open the audit log again; records go on into the file that it was",
          {{"file", path_}, {"error", std::strerror(errno)}});
    }
    const bool written = Write(text);
    if (written != failing_) continue;
    failing_ = !written;
    Log(written ? LogLevel::kInfo : LogLevel::kError,
        written ? "the audit log is written again"
                : "cannot write the audit log; records wait, and are dropped when too many do",
        {{"file", path_}, {"error", written ? "" : std::strerror(errno)}});
  }
}

bool AuditLog::OpenFile() {
  const int file = OpenForAppend(path_);
  if (file < 0) return false;
  if (file_ >= 0) close(file_);
  file_ = file;
  return true;
}

bool AuditLog::Write(std::string& text) {
  while (!text.empty()) {
    const ssize_t written = write(file_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.erase(0, static_cast<size_t>(written));
  }
  return true;
}

}  // namespace perceptrond
