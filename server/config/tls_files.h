// Certificates and keys from their PEM files, checked before anything listens with them: gRPC would
// say of a bad one no more than that it cannot listen.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace perceptrond {

// In PEM.
struct TlsFiles {
  // The server's own first, then those that lead to its authority.
  std::string certificates;
  std::string key;
  // Authorities that sign clients; "" if they need not be signed.
  std::string client_ca;
};

// Reads what the paths name; `client_ca` may be "". NOT_FOUND for a file that cannot be read;
// INVALID_ARGUMENT, naming the file, for one that holds no certificate or no key without a
// passphrase, and for a key that is not the certificate's.
absl::StatusOr<TlsFiles> ReadTlsFiles(const std::string& certificates, const std::string& key,
                                      const std::string& client_ca);

}  // namespace perceptrond
