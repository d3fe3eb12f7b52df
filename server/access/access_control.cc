#include "server/access/access_control.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/error/error.h"
#include "core/file/read_file.h"
#include "server/config/file_fingerprint.h"

namespace perceptrond {
namespace {

// Room for tens of thousands of principals.
constexpr size_t kMaxAccessFileBytes = 16 << 20;

absl::StatusOr<std::string> ReadAccessFile(const std::string& path) {
  struct stat found = {};
  absl::StatusOr<std::string> text =
      ReadFileUpTo(path, kMaxAccessFileBytes, FileKind::kRegular, &found);
  if (!text.ok()) return text;
  // Its writers may do everything. Its digests tell no tokens: reading it is less.
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
      (found.st_uid != 0 && found.st_uid != geteuid())) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " can be written by others; it must belong to this user or root and be "
                     "writable by the owner only: chmod 640"));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Load(std::string path) {
  auto loaded = std::unique_ptr<AccessControl>(new AccessControl(std::move(path)));
  // Before the file is read: what changes meanwhile is read again.
  loaded->FileChanged();
  if (absl::StatusOr<bool> read = loaded->Reload(); !read.ok()) return read.status();
  return loaded;
}

absl::StatusOr<bool> AccessControl::Reload() {
  absl::StatusOr<std::string> text = ReadAccessFile(path_);
  if (!text.ok()) return text.status();
  absl::StatusOr<std::shared_ptr<const AccessRules>> rules = AccessRules::Parse(*text);
  if (!rules.ok())
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", rules.status().message()));
  MutexLock lock(&mutex_);
  if (version_ > 0 && *text == text_) return false;
  text_ = *std::move(text);
  rules_ = *std::move(rules);
  version_.fetch_add(1, std::memory_order_release);
  return true;
}

bool AccessControl::FileChanged() {
  std::string fingerprint = FingerprintOf(path_);
  MutexLock lock(&mutex_);
  return std::exchange(fingerprint_, fingerprint) != fingerprint;
}

std::shared_ptr<const AccessRules> AccessControl::rules() const {
  MutexLock lock(&mutex_);
  return rules_;
}

absl::Status Unauthenticated() {
  return MakeError(
      absl::StatusCode::kUnauthenticated, "UNAUTHENTICATED",
      "this call needs a valid token, or a client certificate that the server's access "
      "file names; send \"authorization: Bearer TOKEN\"");
}

absl::Status PermissionDenied(absl::string_view principal, absl::string_view what) {
  return MakeError(absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED",
                   absl::StrCat("principal ", principal, " lacks the ", what,
                                ": the server's access file can give it"),
                   {{"principal", std::string(principal)}});
}

bool PassedOnCaller::IsNamed(absl::string_view name) const {
  if (name == principal_ || access_ == nullptr) return name == principal_;
  const std::shared_ptr<const AccessRules> rules = access_->rules();
  const Principal* const named = rules->FindNamed(name);
  return named != nullptr && named == rules->FindNamed(principal_);
}

absl::Status PassedOnCaller::CheckRead(absl::string_view name) const {
  if (access_ == nullptr) return absl::OkStatus();
  const std::shared_ptr<const AccessRules> rules = access_->rules();
  const Principal* const principal = rules->FindNamed(principal_);
  return principal != nullptr && principal->Has(Role::kRead, name)
             ? absl::OkStatus()
             : PermissionDenied(principal_, absl::StrCat("role ", RoleName(Role::kRead), " for \"",
                                                         absl::Utf8SafeCHexEscape(name), "\""));
}

std::optional<TokenDigest> TokenOf(absl::string_view authorization) {
  constexpr absl::string_view kBearer = "Bearer ";
  constexpr absl::string_view kBasic = "Basic ";
  if (absl::StartsWithIgnoreCase(authorization, kBearer))
    return DigestToken(absl::StripAsciiWhitespace(authorization.substr(kBearer.size())));
  if (authorization.empty()) return std::nullopt;
  std::string user_and_password;
  if (absl::StartsWithIgnoreCase(authorization, kBasic) &&
      absl::Base64Unescape(authorization.substr(kBasic.size()), &user_and_password)) {
    const size_t colon = user_and_password.find(':');
    if (colon != std::string::npos)
      return DigestToken(absl::string_view(user_and_password).substr(colon + 1));
  }
  // Not without a token: what is wrong must not be taken for anonymous.
  return DigestToken(authorization);
}

}  // namespace perceptrond
