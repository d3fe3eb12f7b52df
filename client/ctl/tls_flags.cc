#include "client/ctl/tls_flags.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perceptrond::client {
namespace {

// Nothing of an empty path.
absl::Status ReadPem(const char* flag, const std::string& path, std::string* pem) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) return absl::InvalidArgumentError(absl::StrCat(flag, ": cannot read ", path));
  *pem = content.str();
  // gRPC would only say that it could not connect.
  if (absl::StrContains(*pem, "-----BEGIN ")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, " is no PEM file"));
}

}  // namespace

// The variables bear the client's own name: PERCEPTROND_TLS_CERT and _KEY are the server's.
void TlsFlags::AddTo(CLI::App* app) {
  app->add_flag("--tls", tls_,
                "Encrypt, and check the server's certificate; each flag below implies it")
      ->envname("PERCEPTRONCTL_TLS");
  app->add_option("--tls-ca", ca_,
                  "PEM certificates of the authorities to trust (default: the system's)")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_CA");
  app->add_option("--tls-cert", certificate_,
                  "PEM certificate of this client, for servers that ask for one; with --tls-key")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_CERT");
  app->add_option("--tls-key", key_, "PEM private key of this client; with --tls-cert")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_KEY");
  app->add_option("--tls-server-name", server_name_,
                  "The name that the server's certificate bears, where --server has another")
      ->envname("PERCEPTRONCTL_TLS_SERVER_NAME");
}

absl::StatusOr<std::optional<TlsOptions>> TlsFlags::Read() const {
  if (!tls_ && ca_.empty() && certificate_.empty() && key_.empty() && server_name_.empty()) {
    return std::nullopt;
  }
  if (certificate_.empty() != key_.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together: give both or neither");
  }
  TlsOptions options;
  options.server_name = server_name_;
  for (const absl::Status& status :
       {ReadPem("--tls-ca", ca_, &options.root_certificates),
        ReadPem("--tls-cert", certificate_, &options.certificate_chain),
        ReadPem("--tls-key", key_, &options.private_key)}) {
    if (!status.ok()) return status;
  }
  return options;
}

}  // namespace perceptrond::client
