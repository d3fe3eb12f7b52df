#include "core/journal/jetstream/connection.h"

#include <nats/nats.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perceptrond::jetstream {
namespace {

// Reconnecting goes on for as long as the process runs.
constexpr int kForever = -1;
constexpr int64_t kReconnectWaitMs = 250;

struct OptionsDeleter {
  void operator()(natsOptions* options) const { natsOptions_Destroy(options); }
};

natsStatus Apply(const ConnectionOptions& from, natsOptions* options) {
  std::vector<const char*> servers;
  for (const std::string& server : from.servers) servers.push_back(server.c_str());
  natsStatus status =
      natsOptions_SetServers(options, servers.data(), static_cast<int>(servers.size()));
  const auto set = [&status](natsStatus next) {
    if (status == NATS_OK) status = next;
  };
  set(natsOptions_SetName(options, from.client_name.c_str()));
  set(natsOptions_SetTimeout(options, absl::ToInt64Milliseconds(from.timeout)));
  set(natsOptions_SetMaxReconnect(options, kForever));
  set(natsOptions_SetReconnectWait(options, kReconnectWaitMs));
  // An append is waited for.
  set(natsOptions_SetSendAsap(options, true));
  set(natsOptions_SetFailRequestsOnDisconnect(options, true));
  if (!from.credentials_file.empty())
    set(natsOptions_SetUserCredentialsFromFiles(options, from.credentials_file.c_str(), nullptr));
  if (from.tls) set(natsOptions_SetSecure(options, true));
  if (!from.ca_file.empty())
    set(natsOptions_LoadCATrustedCertificates(options, from.ca_file.c_str()));
  if (!from.certificate_file.empty())
    set(natsOptions_LoadCertificatesChain(options, from.certificate_file.c_str(),
                                          from.key_file.c_str()));
  return status;
}

}  // namespace

void MessageDeleter::operator()(natsMsg* message) const { natsMsg_Destroy(message); }

absl::Status ToAbsl(int status, int js_error, absl::string_view what) {
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  if (status == NATS_NOT_FOUND || js_error == JSStreamNotFoundErr ||
      js_error == JSNoMessageFoundErr)
    code = absl::StatusCode::kNotFound;
  if (status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED)
    code = absl::StatusCode::kUnauthenticated;
  const char* const last = nats_GetLastError(nullptr);
  return absl::Status(
      code, absl::StrCat("NATS: ", what, ": ", natsStatus_GetText(static_cast<natsStatus>(status)),
                         last == nullptr || *last == '\0' ? "" : absl::StrCat(" (", last, ")"),
                         js_error == 0 ? "" : absl::StrCat(", JetStream error ", js_error)));
}

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(const ConnectionOptions& options) {
  natsOptions* created = nullptr;
  if (const natsStatus status = natsOptions_Create(&created); status != NATS_OK)
    return ToAbsl(status, 0, "options");
  const std::unique_ptr<natsOptions, OptionsDeleter> nats_options(created);
  if (const natsStatus status = Apply(options, created); status != NATS_OK) {
    const absl::Status why = ToAbsl(status, 0, "credentials or TLS");
    return absl::FailedPreconditionError(why.message());
  }
  natsConnection* connection = nullptr;
  if (const natsStatus status = natsConnection_Connect(&connection, created); status != NATS_OK)
    return ToAbsl(status, 0, absl::StrCat("connecting to ", absl::StrJoin(options.servers, ", ")));
  return std::shared_ptr<Connection>(new Connection(connection));
}

Connection::~Connection() {
  natsConnection_Close(connection_);
  natsConnection_Destroy(connection_);
}

size_t Connection::max_payload() const {
  return static_cast<size_t>(natsConnection_GetMaxPayload(connection_));
}

}  // namespace perceptrond::jetstream
