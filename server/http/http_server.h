// An HTTP server for small answers to GET, with or without TLS: the endpoint of metrics and page.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/tls_files.h"
#include "server/page/http.h"

namespace perceptrond {

// One thread reads all connections, so that slow ones hold none; a few others run the handler. Of
// more than kMaxConnections the one that has gone longest without a complete request is closed, and
// so is each that sends none within kRequestTime. Every answer ends its connection.
//
// Thread contract: one thread at a time. The handler runs on several threads at once.
class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 200;
  // Also the time that a client has to read an answer.
  static constexpr int kRequestSeconds = 10;
  // The threads that run the handler.
  static constexpr int kWorkers = 10;

  // Listens on `address`, "HOST:PORT" or "[IPV6]:PORT"; port 0 takes a free one. Without `tls`
  // nothing is encrypted. INVALID_ARGUMENT for an invalid address; UNAVAILABLE if it cannot be
  // listened on, or the TLS files cannot be used.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           const TlsFiles* tls,
                                                           HttpHandler handler);
  // Waits for handlers that run; closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // New connections get these certificates; those that exist have kRequestSeconds to end. On an
  // error, UNAVAILABLE, the certificates in use stay.
  absl::Status UseCertificates(const TlsFiles& tls);

 private:
  class Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace perceptrond
