// The server's TLS certificates, which may be replaced while it serves: connections that exist go
// on, new ones get the new certificates.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/sync/mutex.h"
#include "server/config/tls_files.h"

namespace perceptrond {

// Thread contract: any thread may call any method. Must outlive the servers that use its
// credentials.
class TlsCertificates {
 public:
  struct Paths {
    std::string certificates;
    std::string key;
    // Empty: clients need no certificate. Otherwise each must have one of these authorities.
    std::string client_ca;
  };

  // Reads the files; errors as ReadTlsFiles.
  static absl::StatusOr<std::unique_ptr<TlsCertificates>> Load(Paths paths);

  // Reads the files again: whether they differ from those in use, which they then replace. On an
  // error, as ReadTlsFiles, those in use stay.
  absl::StatusOr<bool> Reload() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a file was replaced or written since this was called last. Does not read them.
  bool FilesChanged() ABSL_LOCKS_EXCLUDED(mutex_);

  // For ServerBuilder::AddListeningPort.
  std::shared_ptr<grpc::ServerCredentials> credentials() const { return credentials_; }

  // Those in use, and their number: 1 for the first, one more for each that replaced others.
  std::pair<TlsFiles, uint64_t> current() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit TlsCertificates(Paths paths);

  const Paths paths_;
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  mutable Mutex mutex_;
  TlsFiles files_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of the files, as FilesChanged found them.
  std::string fingerprint_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
