// Accepts connections, hands them to gRPC, notices when they end, and closes those that the watch
// condemns.
#pragma once

#include <grpcpp/server_builder.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/rpc/connection_watch.h"
#include "server/rpc/connections.h"
#include "server/rpc/listening_sockets.h"

namespace perceptrond {

// One thread. It holds a second descriptor of each connection, since gRPC owns the first and closes
// it at any time: by its own descriptor this can close a connection without ever meeting another
// one that got the number meanwhile. gRPC shuts a connection down before it closes its descriptor,
// which this thread sees at its own.
//
// When descriptors run out, a spare one is given up to accept and close the next connection, so
// that its client is refused at once and the queue does not stand still.
//
// Thread contract: one thread starts and stops it; the callbacks run on the listener's own.
class Listener {
 public:
  using GrpcAcceptor = grpc::experimental::ExternalConnectionAcceptor;

  struct Options {
    WatchLimits watch;
    // Resident memory above which the connection that holds the most unfinished bytes is closed;
    // 0: no bound.
    uint64_t max_resident_bytes = 0;
    // Whether the server itself connects from this address: no limit applies.
    std::function<bool(const SocketAddress&)> is_own = [](const SocketAddress&) { return false; };
    // Whether such a connection is closed here instead of handed to gRPC.
    bool closes_own = false;
    // Runs about once a second.
    std::function<void()> on_second = [] {};
  };

  // `connections` must outlive this.
  Listener(std::vector<ListeningSocket> sockets, Connections& connections, Options options);
  // Stops.
  ~Listener();

  // To be called once, after the grpc::Server is started that the acceptor belongs to.
  void Start(std::unique_ptr<GrpcAcceptor> acceptor);
  // Closes the listening sockets. Connections go on, but are no longer watched.
  void Stop();

 private:
  struct Open {
    std::shared_ptr<Connection> connection;
    ConnectionWatch watch;
    bool is_tcp = false;
    // Bytes that the kernel has received, and those of them that gRPC has read.
    uint64_t received = 0;
    uint64_t read = 0;
  };

  void Run();
  void AcceptAll(int socket);
  // Whether another connection may be waiting.
  bool AcceptOne(int socket);
  void HandOver(int descriptor, const SocketAddress& remote);
  // Accepts and closes one connection with the spare descriptor.
  bool RefuseWithSpare(int socket);
  void SetAccepting(bool accepting);
  void OnEnded(int descriptor);
  // Looks at all connections; whether one has received anything since the last time.
  bool CheckAll(absl::Time now);
  void CloseForMemory(absl::Time now);
  void Close(int descriptor, CloseReason reason);

  std::vector<ListeningSocket> sockets_;
  Connections& connections_;
  const Options options_;
  std::unique_ptr<GrpcAcceptor> acceptor_;
  int epoll_ = -1;
  // Readable when the thread must end.
  int stop_ = -1;
  // -1 while it is given up.
  int spare_ = -1;
  // False from when not even the spare descriptor could be had until the next look.
  bool accepting_ = true;
  // By the thread's own descriptors.
  absl::flat_hash_map<int, Open> open_;
  std::thread thread_;
};

}  // namespace perceptrond
