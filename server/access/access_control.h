// The access rules in use, which may be replaced while the server serves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/sync/current_call.h"
#include "core/sync/mutex.h"
#include "server/access/rules.h"

namespace perceptrond {

// Thread contract: safe for any number of threads.
class AccessControl {
 public:
  // Reads the file. NOT_FOUND if it cannot be read. FAILED_PRECONDITION if others than this user
  // and root may write it. INVALID_ARGUMENT, saying where, if it is no access file.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Load(std::string path);

  // Reads the file again: whether it differs from the one in use, whose rules it then replaces. On
  // an error, as of Load, the rules in use stay.
  absl::StatusOr<bool> Reload() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the file was replaced or written since this was called last. Does not read it.
  bool FileChanged() ABSL_LOCKS_EXCLUDED(mutex_);

  std::shared_ptr<const AccessRules> rules() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Grows when the rules are replaced.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  explicit AccessControl(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  mutable Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const AccessRules> rules_ ABSL_GUARDED_BY(mutex_);
  std::string fingerprint_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> version_{0};
};

// UNAUTHENTICATED (UNAUTHENTICATED): no token, an unknown one, or one that is valid no longer; all
// alike.
absl::Status Unauthenticated();
// PERMISSION_DENIED (PERMISSION_DENIED): the principal lacks this, "right PAGE". Says the same of a
// model that exists and of one that does not.
absl::Status PermissionDenied(absl::string_view principal, absl::string_view what);

// The caller of a call that another server of the fleet has checked and passes on. Thread contract:
// safe for any number of threads.
class PassedOnCaller final : public Caller {
 public:
  // `principal`: as the other server states it, not empty. What it may do is looked up in the rules of
  // this server, which must outlive this; null: there are none.
  PassedOnCaller(const AccessControl* access, std::string principal)
      : access_(access), principal_(std::move(principal)) {}

  std::string principal() const override { return principal_; }
  bool IsNamed(absl::string_view name) const override;
  absl::Status CheckRead(absl::string_view name) const override;

 private:
  const AccessControl* const access_;
  const std::string principal_;
};

// The token of an Authorization header: after "Bearer ", or the password after "Basic ", whatever
// the user's name, for browsers. Absent without one.
std::optional<TokenDigest> TokenOf(absl::string_view authorization);

}  // namespace perceptrond
