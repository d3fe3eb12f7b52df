// A server's files, read again: certificates and access rules.
#include "absl/time/clock.h"
#include "server/config/logging.h"
#include "server/server_parts.h"

namespace perceptrond {

void Server::Reload() {
  parts_->audit->Reopen();
  if (parts_->tls != nullptr) parts_->ReloadCertificates();
  if (parts_->fleet != nullptr) parts_->fleet->ReloadCertificates(/*changed=*/false);
  if (parts_->access != nullptr) parts_->ReloadAccess();
}

void Server::ReloadChanged() {
  if (parts_->tls != nullptr && parts_->tls->FilesChanged()) parts_->ReloadCertificates();
  if (parts_->fleet != nullptr) parts_->fleet->ReloadCertificates(/*changed=*/true);
  if (parts_->access == nullptr) return;
  if (parts_->access->FileChanged()) parts_->ReloadAccess();
  parts_->admission->CancelRevoked();
}

void Server::Parts::ReloadCertificates() {
  const absl::StatusOr<bool> changed = tls->Reload();
  if (!changed.ok()) {
    Log(LogLevel::kError, "cannot use the TLS files; the certificates in use stay",
        {{"error", changed.status().message()}});
  } else if (*changed) {
    Log(LogLevel::kInfo, "new connections get the new TLS certificates",
        {{"tls_cert", options.tls_cert}});
    const absl::Status used = options.metrics_tls && metrics != nullptr
                                  ? metrics->UseCertificates(tls->current().first)
                                  : absl::OkStatus();
    if (!used.ok()) {
      Log(LogLevel::kError, "metrics keep the TLS certificates in use",
          {{"error", used.message()}});
    }
  }
}

void Server::Parts::WarnOfNoPrincipals() const {
  if (!access->rules()->principals().empty()) return;
  Log(LogLevel::kWarning, "the access file has no principal: every call is denied",
      {{"access_file", options.access_file}});
}

void Server::Parts::ReloadAccess() {
  const absl::Time start = absl::Now();
  const absl::StatusOr<bool> changed = access->Reload();
  if (!changed.ok()) {
    Log(LogLevel::kError, "cannot use the access file; the rules in use stay",
        {{"error", changed.status().message()}});
  } else if (*changed) {
    admission->OnRulesReplaced();
    Log(LogLevel::kInfo, "the new access rules are in use",
        {{"access_file", options.access_file},
         {"principals", access->rules()->principals().size()}});
    WarnOfNoPrincipals();
  } else {
    return;
  }
  AuditRecord record;
  record.time = absl::Now();
  record.method = "reload access file";
  record.file = options.access_file;
  record.outcome = changed.ok() ? "OK" : "InvalidArgument";
  record.took = record.time - start;
  audit->Record(record);
}

void Server::Parts::OnExpired(const std::string& model) const {
  Log(LogLevel::kInfo, "deleted a model that was not used for its expire_after",
      {{"model", model}});
  AuditRecord record;
  record.time = absl::Now();
  record.method = "expire model";
  record.model = model;
  record.outcome = "OK";
  audit->Record(record);
}

}  // namespace perceptrond
