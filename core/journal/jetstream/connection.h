// A connection to a NATS cluster. libnats reconnects by itself, to any server of the cluster.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// The library's own names, so that its header is included by this folder's sources alone.
struct __jsCtx;
struct __natsConnection;
struct __natsMsg;
struct __natsSubscription;

namespace perceptrond::jetstream {

struct ConnectionOptions {
  // As nats://host:port, without credentials: a process list would show them.
  std::vector<std::string> servers;
  // A credentials file of NATS (a token and its key); empty: none.
  std::string credentials_file;
  // PEM files. Servers that ask for TLS get it; with `tls` nothing else is accepted. Empty: the
  // system's authorities, and no certificate of our own.
  bool tls = false;
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  // Shown by the cluster's monitoring.
  std::string client_name = "perceptrond";
  absl::Duration timeout = absl::Seconds(2);
};

// Thread contract: safe for any number of threads.
class Connection {
 public:
  // UNAVAILABLE if no server can be reached; UNAUTHENTICATED; FAILED_PRECONDITION if the files of
  // credentials or TLS cannot be used.
  static absl::StatusOr<std::shared_ptr<Connection>> Open(const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Bytes that a message may have, its headers included.
  size_t max_payload() const;
  __natsConnection* get() const { return connection_; }

 private:
  explicit Connection(__natsConnection* connection) : connection_(connection) {}

  __natsConnection* const connection_;
};

struct MessageDeleter {
  void operator()(__natsMsg* message) const;
};
using MessagePtr = std::unique_ptr<__natsMsg, MessageDeleter>;

// The status of a call of the library that failed: natsStatus `status`, and JetStream's error code,
// 0 if there is none. UNAVAILABLE but for NOT_FOUND and UNAUTHENTICATED. `what` begins the message.
absl::Status ToAbsl(int status, int js_error, absl::string_view what);

}  // namespace perceptrond::jetstream
