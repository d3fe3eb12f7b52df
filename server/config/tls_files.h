// The PEM files of TLS. They are checked, since for invalid ones gRPC reports only that it cannot
// listen, or refuses connections later.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perceptrond {

// The contents of the files, in PEM.
struct TlsFiles {
  bool operator==(const TlsFiles&) const = default;

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
