// The server's transport: its listening sockets, their connections, the limits of both, and gRPC's
// own settings.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/rpc/connections.h"
#include "server/rpc/listener.h"
#include "server/rpc/self_probe.h"
#include "server/rpc/watchdog.h"

namespace perceptrond {

struct TransportOptions {
  std::vector<std::string> addresses;
  // Whether clients connect with TLS, which the probe does not speak.
  bool encrypted = false;
  // The longest message that gRPC accepts from a client.
  uint64_t max_receive_bytes = 0;
  absl::Duration receive_timeout = absl::Minutes(5);
  // A connection without a call is closed after this time; its client connects again by itself.
  // Zero: never.
  absl::Duration connection_idle = absl::Minutes(15);
  // A connection is closed after this time; its calls have as long again to end. Zero: never.
  absl::Duration connection_age = absl::ZeroDuration();
  absl::Duration probe_interval = absl::Seconds(10);
  // Of the process; see Watchdog. 0: no bound.
  uint64_t max_resident_bytes = 0;
  // What a stream may send ahead of what is read, and a connection ahead of what has arrived.
  size_t window_bytes = 64 << 10;
  // See SelfProbe.
  std::function<void(const std::string& address, const std::string& error)> on_probe_failure;
  // Runs about once a second.
  std::function<void()> on_second = [] {};
};

// Raises the process's limit of open files as far as it may, and returns it. Any thread.
uint64_t RaiseDescriptorLimit();

// The limits that a server gets that asks for these, where 0 stands for a default: half of the
// descriptors beyond those for the journal, metrics and logs, since each connection takes two, at
// most 10,000; and a quarter of that for one address. INVALID_ARGUMENT, naming the flag, if more
// connections are asked for than there are descriptors.
absl::StatusOr<Connections::Limits> ConnectionLimits(Connections::Limits asked,
                                                     uint64_t descriptors);

// Thread contract: one thread at a time.
class Transport {
 public:
  // Listens on all addresses; errors as ListenOn. `connections` must outlive this.
  static absl::StatusOr<std::unique_ptr<Transport>> Listen(TransportOptions options,
                                                           Connections& connections);
  ~Transport();

  // With the actual ports.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // To be called once, before the server is built. All addresses have the same credentials.
  void AddTo(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // To be called once, after it is built. Accepts connections from now on.
  void Start();
  // Closes the listening sockets. Connections go on.
  void Stop();

 private:
  Transport(TransportOptions options, std::vector<ListeningAddress> listening,
            Connections& connections);

  const TransportOptions options_;
  const Connections& connections_;
  std::vector<std::string> addresses_;
  std::vector<SelfProbe::Target> targets_;
  std::unique_ptr<Listener::GrpcAcceptor> acceptor_;
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<SelfProbe> probe_;
};

}  // namespace perceptrond
