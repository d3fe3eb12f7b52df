// Decides for every call whether it may be made, in one place: by the caller's credentials when it
// begins, and by the models that its messages name before they are parsed; and records what must be.
// Names that reach the store otherwise, as those within a model's file, the store asks about: Caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/sync/current_call.h"
#include "core/sync/mutex.h"
#include "server/access/access_control.h"
#include "server/access/audit_log.h"
#include "server/access/call_aliases.h"
#include "server/access/method_access.h"
#include "server/access/principal_usage.h"
#include "server/rpc/call.h"

namespace perceptrond {

class Admission;

// What one call may do, and how it ends. The call owns it.
//
// Thread contract: OnMessage by one thread at a time; the others by any.
class CallAccess final : public Caller {
 public:
  ~CallAccess() override;
  CallAccess(const CallAccess&) = delete;
  CallAccess& operator=(const CallAccess&) = delete;

  // The error that the call must end with; OK if there is none.
  absl::Status denied() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Checks the models that a message names, and those that earlier ones named by the rules that hold
  // now. An error is also in denied(): UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT
  // (MALFORMED_MESSAGE).
  // `alias`: what the client named in the place of the model, for the error; empty: nothing else.
  absl::Status OnMessage(grpc::ByteBuffer& message, const std::string& alias = "")
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the status that the call ends with by denied(), takes names out of it that the caller may
  // not read, and records the call if it must be.
  void OnFinish(grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whose call it was when it began; empty if the caller was not recognized.
  std::string principal() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsNamed(absl::string_view name) const override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckRead(absl::string_view name) const override ABSL_LOCKS_EXCLUDED(mutex_);
  // What the caller's examples are counted for; null if that is of no interest.
  std::shared_ptr<PrincipalUsage> usage() const ABSL_LOCKS_EXCLUDED(mutex_);
  // How long a stream must wait until its principal is below its rate of examples; zero if it is.
  absl::Duration LimitWait() const;
  // RESOURCE_EXHAUSTED (RATE_LIMITED), with RetryInfo, for a call with examples whose principal is
  // above it.
  absl::Status CheckLimit() const;

  // Whether the caller may read a model or alias of this full name, by the rules that hold now.
  bool CanRead(absl::string_view name) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Prefixes of the full names that the caller may read, in order; "" for all.
  std::vector<std::string> ReadablePrefixes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Admission;

  CallAccess(Admission& admission, Call& call, const MethodAccess* method);

  // Denies the call if the rules that hold now do. Returns the error it is denied with.
  absl::Status Check() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRules() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckModel(Role role, absl::string_view model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Has(Role role, absl::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error for a principal that lacks this, "right PAGE", or this role for these models; an
  // anonymous one should authenticate.
  absl::Status Refuse(absl::string_view what) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RefuseRole(Role role, absl::string_view models) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the names of models and aliases that the caller may not read out of an error.
  void HideNames(grpc::Status& status) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For Admission's registry: ends the call if it is denied now.
  void Recheck() ABSL_LOCKS_EXCLUDED(mutex_);
  void CancelIfRevokedBefore(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

  Admission& admission_;
  Call& call_;
  // Null for an unknown method.
  const MethodAccess* const method_;
  const CallerCredentials credentials_;
  const absl::Time start_;

  mutable Mutex mutex_;
  // Of AccessControl.
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const AccessRules> rules_ ABSL_GUARDED_BY(mutex_);
  // Of rules_. Null if the caller is not recognized, and without access control.
  const Principal* principal_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // Of the caller when the call began. Null without access control.
  std::shared_ptr<PrincipalUsage> usage_ ABSL_GUARDED_BY(mutex_);
  // Whose call it was when it began, for the record.
  std::string principal_name_ ABSL_GUARDED_BY(mutex_);
  bool has_message_ ABSL_GUARDED_BY(mutex_) = false;
  // A stream keeps to the first model that it names, or goes on to the last.
  std::string first_model_ ABSL_GUARDED_BY(mutex_);
  std::string last_model_ ABSL_GUARDED_BY(mutex_);
  // What the client named in its place; empty: nothing else.
  std::string alias_ ABSL_GUARDED_BY(mutex_);
  std::string other_model_ ABSL_GUARDED_BY(mutex_);
  bool asks_for_more_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status denied_ ABSL_GUARDED_BY(mutex_);
  absl::Time revoked_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

// Thread contract: AddService before the first call; the rest by any thread.
class Admission {
 public:
  struct Limits {
    // For principals without a limit of their own; 0: none.
    uint64_t max_examples_per_second = 0;
    // Longer messages are not looked at: no method takes them.
    size_t max_message_bytes = std::numeric_limits<size_t>::max();
  };
  // Both may be null: without access control everybody may do everything, without an audit log
  // nothing is recorded. They must outlive this object, and it the calls.
  Admission(const AccessControl* access, AuditLog* audit, const Limits& limits);

  // Aborts the process if a method of the service has no declared access.
  void AddService(const google::protobuf::ServiceDescriptor& service);

  // To be called before the first call: the aliases that calls may name, which must outlive them.
  void UseAliases(const AliasMap& aliases) { aliases_ = &aliases; }
  // A call to this path begins: what replaces the aliases in its messages; absent if the method takes none.
  std::optional<CallAliases> AliasesFor(const std::string& path) const;
  // A call begins: what it may do. Null if there is nothing to check or record.
  std::unique_ptr<CallAccess> Admit(Call& call);
  // Of the principals; empty without access control. Any thread.
  std::vector<PrincipalMetrics> principal_metrics() const;
  // Ends the streams that the new rules do not allow.
  void OnRulesReplaced() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records a denied request that is no call, unless there are too many of them.
  void RecordDenial(AuditRecord& record) ABSL_LOCKS_EXCLUDED(denial_mutex_);
  // Cuts off streams that should have ended a while ago, whose clients do not read.
  void CancelRevoked() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class CallAccess;

  void Add(CallAccess* call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(CallAccess* call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a denied call may be recorded: a limited number a second, so that nobody fills the disk with
  // them. Otherwise it is counted for the next record.
  bool MayRecordDenial(uint64_t& unrecorded) ABSL_LOCKS_EXCLUDED(denial_mutex_);

  const AccessControl* const access_;
  AuditLog* const audit_;
  const Limits limits_;
  PrincipalUsages usages_;
  absl::flat_hash_map<std::string, MethodAccess> methods_;
  // Null: there are none.
  const AliasMap* aliases_ = nullptr;

  Mutex mutex_;
  // Streams, which may be ended.
  absl::flat_hash_set<CallAccess*> streams_ ABSL_GUARDED_BY(mutex_);
  // Not the lock above, which is held while streams are ended, and so recorded.
  Mutex denial_mutex_;
  double denial_credit_ ABSL_GUARDED_BY(denial_mutex_) = 0;
  absl::Time denial_time_ ABSL_GUARDED_BY(denial_mutex_) = absl::UnixEpoch();
  uint64_t unrecorded_denials_ ABSL_GUARDED_BY(denial_mutex_) = 0;
};

}  // namespace perceptrond
