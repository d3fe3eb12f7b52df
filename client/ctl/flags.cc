#include "client/ctl/flags.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace perceptrond::client {
namespace {

void Parse(const std::string&, const std::string& part, std::string* to) { *to = part; }

void Parse(const std::string& flag, const std::string& part, double* to) {
  if (!absl::SimpleAtod(part, to))
    throw CLI::ValidationError(flag, absl::StrCat("\"", part, "\" is not a number"));
}

template <typename T>
CLI::Option* Add(CLI::App* command, const std::string& flag, std::vector<T>* to,
                 const std::string& help) {
  const auto append = [flag, to](const std::vector<std::string>& lists) {
    for (const std::string& list : lists) {
      for (const std::string& part : std::vector<std::string>(absl::StrSplit(list, ','))) {
        if (part.empty()) {
          throw CLI::ValidationError(
              flag,
              absl::StrCat("\"", list, "\" has an empty item; separate items by single commas"));
        }
        Parse(flag, part, &to->emplace_back());
      }
    }
  };
  return command->add_option_function<std::vector<std::string>>(flag, append, help)
      ->allow_extra_args(false);
}

}  // namespace

CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<std::string>* to,
                         const std::string& help) {
  return Add(command, flag, to, help)->type_name("TEXT,...");
}

CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<double>* to,
                         const std::string& help) {
  return Add(command, flag, to, help)->type_name("NUMBER,...");
}

CLI::Validator Between(double least, double most) {
  // %.15g prints all digits of large bounds.
  const std::string from = absl::StrFormat("%.15g", least);
  const std::string to = absl::StrFormat("%.15g", most);
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    // Comparisons with NaN are false, so NaN is out of range.
    if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return "";
    return absl::StrCat(text, " is not a number from ", from, " to ", to);
  };
  // The form CLI::Range uses.
  return CLI::Validator(check, absl::StrCat("FLOAT in [", from, " - ", to, "]"));
}

namespace {

// Reads nothing if the path is empty.
absl::Status ReadPem(const char* flag, const std::string& path, std::string* pem) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file)
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": cannot read ", path, "; give a PEM file"));
  *pem = content.str();
  // gRPC would report only that it could not connect.
  if (absl::StrContains(*pem, "-----BEGIN ")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", path, " is not a PEM file"));
}

}  // namespace

// PERCEPTRONCTL_TLS_* and not PERCEPTROND_TLS_*, which are the server's settings.
void TlsFlags::AddTo(CLI::App* app) {
  app->add_flag(
         "--tls", tls_,
         "Connect with TLS and verify the server's certificate. Implied by the --tls-* options")
      ->envname("PERCEPTRONCTL_TLS");
  app->add_option("--tls-ca", ca_,
                  "PEM file with the certificate authorities to trust (default: the system's)")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_CA");
  app->add_option(
         "--tls-cert", certificate_,
         "PEM file with this client's certificate, if the server asks for one; requires --tls-key")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_CERT");
  app->add_option("--tls-key", key_, "PEM file with this client's private key; requires --tls-cert")
      ->type_name("FILE")
      ->envname("PERCEPTRONCTL_TLS_KEY");
  app->add_option("--tls-server-name", server_name_,
                  "Name in the server's certificate, if it differs from the host in --server")
      ->envname("PERCEPTRONCTL_TLS_SERVER_NAME");
}

absl::StatusOr<std::optional<TlsOptions>> TlsFlags::Read() const {
  if (!tls_ && ca_.empty() && certificate_.empty() && key_.empty() && server_name_.empty()) {
    return std::nullopt;
  }
  if (certificate_.empty() != key_.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key must be given together");
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
