// The sockets that the server listens on. It accepts connections itself: gRPC 1.51 has no limit of
// connections, and its listener is dead for good once descriptors have run out
// (docs/adr/0039-own-connections.md).
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perceptrond {

// The address of a socket, local or remote.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(sockaddr_storage);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// One listening socket. Owns its descriptor, and the file of a Unix socket.
class ListeningSocket {
 public:
  ListeningSocket(int descriptor, std::string path)
      : descriptor_(descriptor), path_(std::move(path)) {}
  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  // Closes the socket and removes its file.
  ~ListeningSocket();

  int descriptor() const { return descriptor_; }
  // Where it listens, with the actual port.
  SocketAddress address() const;

 private:
  int descriptor_;
  // Of a Unix socket; empty otherwise.
  std::string path_;
};

// What one address of the server's settings stands for.
struct ListeningAddress {
  // With the actual port for port 0.
  std::string name;
  // One for each address that the host has.
  std::vector<ListeningSocket> sockets;
};

// Opens, binds and listens. `address` has the form that IsAddress accepts; 0.0.0.0 and [::] stand
// for all addresses of both families. UNAVAILABLE, saying what to do, if the port or the path is in
// use, or the host is not this machine's. A file that a stopped server left at the path is replaced.
absl::StatusOr<ListeningAddress> ListenOn(const std::string& address);

}  // namespace perceptrond
