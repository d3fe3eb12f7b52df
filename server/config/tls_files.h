// Reads certificates and keys from PEM files and checks them, since for an invalid one gRPC reports
// only that it cannot listen.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace perceptrond {

// The contents of the files, in PEM.
struct TlsFiles {
  // The server's certificate, followed by those of the authorities that lead to its root.
  std::string certificates;
  std::string key;
  // Authorities that sign clients' certificates; empty if clients need none.
  std::string client_ca;
};

// Reads the files at these paths; `client_ca` may be empty. NOT_FOUND for a file that cannot be
// read. INVALID_ARGUMENT, naming the file, if it has no certificate, no key without a passphrase,
// or a key that does not match the certificate.
absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& certificates, const std::string& key,
                                      const std::string& client_ca);

}  // namespace perceptrond
