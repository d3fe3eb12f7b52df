// Has the server connect to its own ports, so that one that no longer answers is noticed by itself
// and not by its clients.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "core/sync/mutex.h"
#include "server/rpc/listening_sockets.h"

namespace perceptrond {

// Every interval it connects to each address, sends what opens an HTTP/2 connection, and waits for
// an answer. Without TLS that is gRPC's settings, which shows that connections are accepted and
// read; with TLS the listener itself closes the connection, since gRPC would log a failed handshake.
//
// Thread contract: one thread starts and stops it; any thread may call IsOwn.
class SelfProbe {
 public:
  struct Options {
    // Zero: does nothing.
    absl::Duration interval = absl::Seconds(10);
    // How long one probe waits.
    absl::Duration timeout = absl::Seconds(10);
    // Failures in a row, of an address that has answered before, after which `on_failure` runs.
    int failures = 3;
    // How many connections were accepted so far. A probe that fails while others than its own are
    // accepted does not count: the server is flooded, and so would be the next process.
    std::function<uint64_t()> accepted = [] { return 0; };
    // Receives the address and the last error. Runs on the probe's thread.
    std::function<void(const std::string& address, const std::string& error)> on_failure;
  };
  struct Target {
    std::string name;
    SocketAddress address;
  };

  // Starts probing. A wildcard address is probed at its loopback address.
  SelfProbe(std::vector<Target> targets, Options options);
  ~SelfProbe() { Stop(); }
  SelfProbe(const SelfProbe&) = delete;
  SelfProbe& operator=(const SelfProbe&) = delete;

  // Waits for a probe that is under way. Further calls have no effect.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether `remote` is a probe's own end of its connection.
  bool IsOwn(const SocketAddress& remote) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct State {
    bool answered = false;
    int failures = 0;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Check(const Target& target, State& state);
  // Empty if the address answers.
  std::string Probe(const SocketAddress& address) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<Target> targets_;
  const Options options_;
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Where the probe that is under way connects from; of size 0 if none is.
  SocketAddress own_ ABSL_GUARDED_BY(mutex_);
  // The last member, since it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond
