// Accepts connections, and hands them to the watchdog and to gRPC.
#pragma once

#include <grpcpp/server_builder.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "server/rpc/connections.h"
#include "server/rpc/listening_sockets.h"
#include "server/rpc/watchdog.h"

namespace perceptrond {

// One thread. While a connection floods the server it may be reading that one in gRPC's code, which
// the watchdog ends.
//
// When descriptors run out, a spare one is given up to accept and close the next connection, so
// that its client is refused at once and the queue does not stand still.
//
// Thread contract: one thread starts and stops it; the callbacks run on the listener's own.
class Listener {
 public:
  using GrpcAcceptor = grpc::experimental::ExternalConnectionAcceptor;

  struct Options {
    // Whether the server itself connects from this address: no limit applies.
    std::function<bool(const SocketAddress&)> is_own = [](const SocketAddress&) { return false; };
    // Whether such a connection is closed here instead of handed to gRPC.
    bool closes_own = false;
    // Runs about once a second.
    std::function<void()> on_second = [] {};
  };

  // `connections` and `watchdog` must outlive this.
  Listener(std::vector<ListeningSocket> sockets, Connections& connections, Watchdog& watchdog,
           Options options);
  // Stops.
  ~Listener();

  // To be called once, after the watchdog is started, and the grpc::Server that the acceptor belongs
  // to.
  void Start(std::unique_ptr<GrpcAcceptor> acceptor);
  // Closes the listening sockets. Connections go on.
  void Stop();

 private:
  void Run();
  void AcceptAll(int socket);
  // Whether another connection may be waiting.
  bool AcceptOne(int socket);
  void HandOver(int descriptor, const SocketAddress& remote);
  // Accepts and closes one connection with the spare descriptor.
  bool RefuseWithSpare(int socket);
  void SetAccepting(bool accepting);
  // Some clients see a closed connection alone: at most once a minute the log says why.
  void LogRefused();

  std::vector<ListeningSocket> sockets_;
  Connections& connections_;
  Watchdog& watchdog_;
  const Options options_;
  std::unique_ptr<GrpcAcceptor> acceptor_;
  int epoll_ = -1;
  // Readable when the thread must end.
  int stop_ = -1;
  // -1 while it is given up.
  int spare_ = -1;
  // False for up to a second after not even the spare descriptor could be had.
  bool accepting_ = true;
  std::array<uint64_t, kRefusalReasons> logged_refused_ = {};
  absl::Time next_log_ = absl::InfinitePast();
  std::thread thread_;
};

}  // namespace perceptrond
