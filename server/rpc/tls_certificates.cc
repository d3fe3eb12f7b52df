#include "server/rpc/tls_certificates.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <deque>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/config/file_fingerprint.h"

namespace perceptrond {
namespace {

// Gives one port's security the certificates whenever they are others than it has. gRPC asks at
// the start and before each handshake.
class Fetcher {
 public:
  explicit Fetcher(const TlsCertificates& certificates) : certificates_(certificates) {}

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* fetcher, grpc_ssl_server_certificate_config** config) {
    return static_cast<Fetcher*>(fetcher)->Fetch(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    MutexLock lock(&mutex_);
    const auto [files, version] = certificates_.current();
    if (version == version_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {files.key.c_str(), files.certificates.c_str()};
    // gRPC insists on authorities, though without a client's certificate it has no use for them.
    const std::string& authorities = files.client_ca.empty() ? files.certificates : files.client_ca;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    version_ = version;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsCertificates& certificates_;
  Mutex mutex_;
  // 0: none yet.
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
};

// gRPC's own credentials hold certificates for good; its core has others, without a C++ class. Must
// outlive the servers that it is used for.
class Credentials final : public grpc::ServerCredentials {
 public:
  Credentials(const TlsCertificates& certificates, bool ask_clients)
      : certificates_(certificates), ask_clients_(ask_clients) {}

  // No call has other credentials than its connection's.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            ask_clients_ ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                         : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &Fetcher::Fetch, &fetchers_.emplace_back(certificates_)));
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const TlsCertificates& certificates_;
  const bool ask_clients_;
  // One a port.
  std::deque<Fetcher> fetchers_;
};

}  // namespace

TlsCertificates::TlsCertificates(Paths paths)
    : paths_(std::move(paths)),
      credentials_(std::make_shared<Credentials>(*this, !paths_.client_ca.empty())) {}

absl::StatusOr<std::unique_ptr<TlsCertificates>> TlsCertificates::Load(Paths paths) {
  auto loaded = std::unique_ptr<TlsCertificates>(new TlsCertificates(std::move(paths)));
  // Before the files are read: what changes meanwhile is read again.
  loaded->FilesChanged();
  if (absl::StatusOr<bool> read = loaded->Reload(); !read.ok()) return read.status();
  return loaded;
}

absl::StatusOr<bool> TlsCertificates::Reload() {
  absl::StatusOr<TlsFiles> files = ReadTlsFiles(paths_.certificates, paths_.key, paths_.client_ca);
  if (!files.ok()) return files.status();
  MutexLock lock(&mutex_);
  if (version_ > 0 && *files == files_) return false;
  files_ = *std::move(files);
  ++version_;
  return true;
}

bool TlsCertificates::FilesChanged() {
  std::string fingerprint;
  for (const std::string& path : {paths_.certificates, paths_.key, paths_.client_ca})
    absl::StrAppend(&fingerprint, FingerprintOf(path));
  MutexLock lock(&mutex_);
  return std::exchange(fingerprint_, fingerprint) != fingerprint;
}

std::pair<TlsFiles, uint64_t> TlsCertificates::current() const {
  MutexLock lock(&mutex_);
  return {files_, version_};
}

}  // namespace perceptrond
