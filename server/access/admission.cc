#include "server/access/admission.h"

#include <google/protobuf/descriptor.h>
#include <grpc/grpc_security_constants.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/metrics/rpc_metrics.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

// A revoked stream ends with a status if its client reads, and without one after this time.
constexpr absl::Duration kRevokedStreamTime = absl::Seconds(2);
// Denied calls that are recorded at once, and a second.
constexpr double kDenialBurst = 100;
constexpr double kDenialsPerSecond = 10;

absl::string_view View(grpc::string_ref text) { return {text.data(), text.size()}; }

CallerCredentials CredentialsOf(const grpc::ServerContext& context) {
  CallerCredentials credentials;
  const auto authorization = context.client_metadata().find("authorization");
  if (authorization != context.client_metadata().end())
    credentials.token = TokenOf(View(authorization->second));
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return credentials;
  const auto add = [&](const char* property, absl::string_view kind) {
    for (const grpc::string_ref& value : auth->FindPropertyValues(property))
      credentials.certificate.push_back(absl::StrCat(kind, View(value)));
  };
  add(GRPC_PEER_DNS_PROPERTY_NAME, "dns:");
  add(GRPC_PEER_URI_PROPERTY_NAME, "uri:");
  add(GRPC_X509_CN_PROPERTY_NAME, "cn:");
  return credentials;
}

// An alias counts as a model with its id.
std::string ModelFor(absl::string_view name) {
  return absl::ConsumePrefix(&name, kAliasCollection) ? absl::StrCat(kModelCollection, name)
                                                      : std::string(name);
}

// The reason in the status's details; empty without one.
std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details())) return "";
  for (const google::protobuf::Any& any : details.details()) {
    if (any.Is<google::rpc::ErrorInfo>() && any.UnpackTo(&info)) return info.reason();
  }
  return "";
}

}  // namespace

CallAccess::CallAccess(Admission& admission, Call& call, const MethodAccess* method)
    : admission_(admission),
      call_(call),
      method_(method),
      credentials_(CredentialsOf(call.context())),
      start_(absl::Now()) {
  // First, so that no replacement of the rules is missed.
  if (method_ != nullptr && method_->is_stream()) admission_.Add(this);
  MutexLock lock(&mutex_);
  (void)Check();
  if (principal_ != nullptr) principal_name_ = principal_->name;
  if (admission_.access_ != nullptr) usage_ = admission_.usages_.Find(principal_);
}

CallAccess::~CallAccess() {
  if (method_ != nullptr && method_->is_stream()) admission_.Remove(this);
}

absl::Status CallAccess::denied() const {
  MutexLock lock(&mutex_);
  return denied_;
}

absl::Status CallAccess::OnMessage(grpc::ByteBuffer& message, const std::string& alias) {
  // The method refuses it, whatever it names.
  if (message.Length() > admission_.limits_.max_message_bytes) return denied();
  NamedModels named;
  const bool is_read = method_ == nullptr || method_->Read(message, named);
  MutexLock lock(&mutex_);
  // Where nothing is checked the method itself says what is wrong, such as too large a message.
  if (!is_read && denied_.ok() && admission_.access_ != nullptr)
    denied_ = MalformedMessage(method_->path());
  const bool is_first = !std::exchange(has_message_, true);
  if (denied_.ok() && !is_first && named.model.empty() && named.other_model.empty() &&
      !named.asks_for_more && admission_.access_ != nullptr &&
      admission_.access_->version() == version_)
    return denied_;
  alias_ = alias;
  if (!named.model.empty()) {
    last_model_ = std::move(named.model);
    if (first_model_.empty()) first_model_ = last_model_;
  }
  if (!named.other_model.empty()) other_model_ = std::move(named.other_model);
  asks_for_more_ |= named.asks_for_more;
  return Check();
}

absl::Status CallAccess::Check() {
  if (!denied_.ok() || admission_.access_ == nullptr) return denied_;
  version_ = admission_.access_->version();
  rules_ = admission_.access_->rules();
  principal_ = rules_->Find(credentials_);
  denied_ = principal_ == nullptr ? Unauthenticated() : CheckRules();
  return denied_;
}

absl::Status CallAccess::CheckRules() {
  if (method_ == nullptr) return absl::OkStatus();
  if (method_->right().has_value()) {
    return principal_->Has(*method_->right())
               ? absl::OkStatus()
               : Refuse(absl::StrCat("right ", RightName(*method_->right())));
  }
  const Role role = asks_for_more_ ? method_->more_role() : method_->role();
  // A grant of the empty prefix alone covers the name that all models begin with.
  if (method_->for_every_model() && !principal_->Has(role, kModelCollection))
    return RefuseRole(role, "every model");
  // Whoever may do nothing with any model need not say which.
  const Role needed = method_->names_model() && !has_message_ ? Role::kRead : role;
  if (first_model_.empty() && !principal_->HasSome(needed)) return RefuseRole(role, "any model");
  absl::Status status = CheckModel(role, first_model_);
  if (status.ok()) status = CheckModel(role, last_model_);
  if (status.ok()) status = CheckModel(method_->other_role(), other_model_);
  return status;
}

bool CallAccess::Has(Role role, absl::string_view name) const {
  return admission_.access_ == nullptr ||
         (principal_ != nullptr && principal_->Has(role, ModelFor(name)));
}

absl::Status CallAccess::CheckModel(Role role, absl::string_view model) const {
  if (model.empty() || Has(role, model)) return absl::OkStatus();
  // Not what the alias stands for.
  const absl::string_view named = alias_.empty() ? model : alias_;
  return RefuseRole(role, absl::StrCat("\"", absl::Utf8SafeCHexEscape(named), "\""));
}

absl::Status CallAccess::RefuseRole(Role role, absl::string_view models) const {
  return Refuse(absl::StrCat("role ", RoleName(role), " for ", models));
}

absl::Status CallAccess::Refuse(absl::string_view what) const {
  return principal_->anonymous ? Unauthenticated() : PermissionDenied(principal_->name, what);
}

bool CallAccess::IsNamed(absl::string_view name) const {
  MutexLock lock(&mutex_);
  return admission_.access_ == nullptr || name == principal_name_ ||
         (principal_ != nullptr && rules_->FindNamed(name) == principal_);
}

absl::Status CallAccess::CheckRead(absl::string_view name) const {
  MutexLock lock(&mutex_);
  if (Has(Role::kRead, name)) return absl::OkStatus();
  if (principal_ == nullptr) return Unauthenticated();
  return RefuseRole(Role::kRead, absl::StrCat("\"", absl::Utf8SafeCHexEscape(name), "\""));
}

void CallAccess::HideNames(grpc::Status& status) const {
  google::rpc::Status error;
  if (principal_ == nullptr || status.ok() || !error.ParseFromString(status.error_details()))
    return;
  bool has_hidden = false;
  for (google::protobuf::Any& detail : *error.mutable_details()) {
    google::rpc::ErrorInfo info;
    if (!detail.Is<google::rpc::ErrorInfo>() || !detail.UnpackTo(&info)) continue;
    std::vector<std::string> hidden;
    for (const auto& [key, value] : info.metadata()) {
      const bool is_name =
          absl::StartsWith(value, kModelCollection) || absl::StartsWith(value, kAliasCollection);
      if (is_name && !Has(Role::kRead, value)) hidden.push_back(key);
    }
    for (const std::string& key : hidden) info.mutable_metadata()->erase(key);
    if (!hidden.empty()) detail.PackFrom(info);
    has_hidden |= !hidden.empty();
  }
  if (!has_hidden) return;
  error.set_message(absl::StrCat("a model or an alias that principal ", principal_->name,
                                 " may not read is the reason: ask who may read all models"));
  status = grpc::Status(status.error_code(), error.message(), error.SerializeAsString());
}

void CallAccess::OnFinish(grpc::Status& status) {
  AuditRecord record;
  bool refused = false;
  {
    MutexLock lock(&mutex_);
    if (denied_.ok()) {
      HideNames(status);
    } else {
      status = ToGrpc(denied_);
    }
    // The store denies calls, too.
    refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
              status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
    if (usage_ != nullptr) {
      const auto outcome = refused        ? PrincipalUsage::kDenied
                           : !status.ok() ? PrincipalUsage::kError
                                          : PrincipalUsage::kOk;
      usage_->calls[outcome].fetch_add(1, std::memory_order_relaxed);
    }
    if (admission_.audit_ == nullptr) return;
    const bool administrative =
        method_ != nullptr && (method_->is_administrative() || asks_for_more_);
    if (!refused && !administrative) return;
    record.principal = principal_name_;
    record.model = last_model_;
  }
  if (refused && !admission_.MayRecordDenial(record.unrecorded_denials)) return;
  record.time = absl::Now();
  record.took = record.time - start_;
  record.trace_id = TraceOf(call_.context()).trace_id;
  record.peer = call_.peer();
  record.method = std::string(absl::StripPrefix(call_.path(), "/"));
  record.outcome = RpcCodeName(static_cast<size_t>(status.error_code()));
  record.reason = ReasonOf(status);
  admission_.audit_->Record(record);
}

std::string CallAccess::principal() const {
  MutexLock lock(&mutex_);
  return principal_name_;
}

std::shared_ptr<PrincipalUsage> CallAccess::usage() const {
  MutexLock lock(&mutex_);
  return usage_;
}

absl::Duration CallAccess::LimitWait() const {
  const std::shared_ptr<PrincipalUsage> usage = this->usage();
  if (usage == nullptr || method_ == nullptr || !method_->takes_examples())
    return absl::ZeroDuration();
  const absl::Duration wait = usage->examples_limit.Wait(absl::Now());
  if (wait > absl::ZeroDuration()) usage->limited.fetch_add(1, std::memory_order_relaxed);
  return wait;
}

absl::Status CallAccess::CheckLimit() const {
  const absl::Duration wait = LimitWait();
  if (wait <= absl::ZeroDuration()) return absl::OkStatus();
  return WithRetry(
      MakeError(
          absl::StatusCode::kResourceExhausted, "RATE_LIMITED",
          absl::StrCat(
              "this principal has sent more examples than it may in a second; wait ",
              absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(1))),
              ", or raise its max_examples_per_second in the server's access file, or for those "
              "without --max-examples-per-second")),
      wait);
}

bool CallAccess::CanRead(absl::string_view name) const {
  MutexLock lock(&mutex_);
  return Has(Role::kRead, name);
}

std::vector<std::string> CallAccess::ReadablePrefixes() const {
  MutexLock lock(&mutex_);
  if (admission_.access_ == nullptr) return {""};
  return principal_ == nullptr ? std::vector<std::string>() : principal_->ReadablePrefixes();
}

void CallAccess::Recheck() {
  {
    MutexLock lock(&mutex_);
    if (!denied_.ok() || Check().ok()) return;
    revoked_ = absl::Now();
  }
  call_.EndEarly();
}

void CallAccess::CancelIfRevokedBefore(absl::Time time) {
  MutexLock lock(&mutex_);
  if (revoked_ < time) call_.Abort(grpc::StatusCode::CANCELLED, "access was withdrawn");
}

Admission::Admission(const AccessControl* access, AuditLog* audit, const Limits& limits)
    : access_(access), audit_(audit), limits_(limits), usages_(limits.max_examples_per_second) {
  if (access_ != nullptr) usages_.Use(*access_->rules());
}

std::vector<PrincipalMetrics> Admission::principal_metrics() const {
  return access_ == nullptr ? std::vector<PrincipalMetrics>() : usages_.metrics();
}

void Admission::AddService(const google::protobuf::ServiceDescriptor& service) {
  for (int i = 0; i < service.method_count(); ++i) {
    MethodAccess method(*service.method(i));
    std::string path = method.path();
    methods_.emplace(std::move(path), std::move(method));
  }
}

std::unique_ptr<CallAccess> Admission::Admit(Call& call) {
  const auto found = methods_.find(call.path());
  const MethodAccess* const method = found == methods_.end() ? nullptr : &found->second;
  const bool recorded = audit_ != nullptr && method != nullptr && method->may_be_administrative();
  if (access_ == nullptr && !recorded) return nullptr;
  return std::unique_ptr<CallAccess>(new CallAccess(*this, call, method));
}

std::optional<CallAliases> Admission::AliasesFor(const std::string& path) const {
  if (aliases_ == nullptr) return std::nullopt;
  const auto found = methods_.find(path);
  if (found == methods_.end() || !found->second.takes_alias()) return std::nullopt;
  return CallAliases(*aliases_, found->second);
}

void Admission::OnRulesReplaced() {
  usages_.Use(*access_->rules());
  // Ending a stream does not remove it: only the end of its call does, which waits for this lock.
  MutexLock lock(&mutex_);
  for (CallAccess* stream : streams_) stream->Recheck();
}

void Admission::RecordDenial(AuditRecord& record) {
  if (audit_ != nullptr && MayRecordDenial(record.unrecorded_denials)) audit_->Record(record);
}

void Admission::CancelRevoked() {
  const absl::Time time = absl::Now() - kRevokedStreamTime;
  MutexLock lock(&mutex_);
  for (CallAccess* stream : streams_) stream->CancelIfRevokedBefore(time);
}

void Admission::Add(CallAccess* call) {
  MutexLock lock(&mutex_);
  streams_.insert(call);
}

void Admission::Remove(CallAccess* call) {
  MutexLock lock(&mutex_);
  streams_.erase(call);
}

bool Admission::MayRecordDenial(uint64_t& unrecorded) {
  const absl::Time now = absl::Now();
  MutexLock lock(&denial_mutex_);
  const double earned = kDenialsPerSecond * absl::ToDoubleSeconds(now - denial_time_);
  denial_credit_ = std::min(kDenialBurst, denial_credit_ + std::max(0.0, earned));
  denial_time_ = now;
  if (denial_credit_ < 1) {
    ++unrecorded_denials_;
    return false;
  }
  --denial_credit_;
  unrecorded = std::exchange(unrecorded_denials_, 0);
  return true;
}

}  // namespace perceptrond
