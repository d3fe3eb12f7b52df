#include "server/config/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/file/read_file.h"

namespace perceptrond {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  return ReadFileUpTo(path, kMaxPemBytes, FileKind::kRegular);
}

Bio Read(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

// Without it OpenSSL would ask for the passphrase at the terminal.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) { return -1; }

// The first certificate; null if there is none.
Certificate FirstCertificate(const std::string& pem) {
  return {PEM_read_bio_X509(Read(pem).get(), nullptr, NoPassphrase, nullptr), X509_free};
}

absl::Status Bad(const std::string& path, absl::string_view why) {
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
}

absl::Status CheckCertificates(const std::string& path, const std::string& pem) {
  // Checks all certificates, since a truncated chain is invalid.
  const Bio bio = Read(pem);
  int found = 0;
  while (Certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr), X509_free))
    ++found;
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (found == 0) return Bad(path, "holds no certificate in PEM form");
  if (!at_end) return Bad(path, absl::StrCat("is damaged after certificate ", found));
  return absl::OkStatus();
}

absl::Status CheckKey(const std::string& path, const std::string& pem,
                      const std::string& certificate_path, const std::string& certificates) {
  const Key key(PEM_read_bio_PrivateKey(Read(pem).get(), nullptr, NoPassphrase, nullptr),
                EVP_PKEY_free);
  if (key == nullptr) return Bad(path, "holds no private key in PEM form without a passphrase");
  const Certificate certificate = FirstCertificate(certificates);
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return Bad(path, absl::StrCat("is not the key of the first certificate in ", certificate_path));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& certificates, const std::string& key,
                                      const std::string& client_ca) {
  TlsFiles files;
  absl::StatusOr<std::string> content = ReadPem(certificates);
  if (!content.ok()) return content.status();
  files.certificates = *std::move(content);
  if (absl::Status status = CheckCertificates(certificates, files.certificates); !status.ok())
    return status;
  content = ReadPem(key);
  if (!content.ok()) return content.status();
  files.key = *std::move(content);
  if (absl::Status status = CheckKey(key, files.key, certificates, files.certificates);
      !status.ok())
    return status;
  if (client_ca.empty()) return files;
  content = ReadPem(client_ca);
  if (!content.ok()) return content.status();
  files.client_ca = *std::move(content);
  if (absl::Status status = CheckCertificates(client_ca, files.client_ca); !status.ok())
    return status;
  return files;
}

}  // namespace perceptrond
