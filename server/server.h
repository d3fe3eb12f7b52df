// Assembles the server from store, services, health, reflection, metrics and status page, and shuts
// them down in order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace perceptrond {

// Thread contract: one thread at a time, which must not be one that handles calls.
class Server {
 public:
  // Opens the store and listens. An error says what cannot be opened or listened on, and what to
  // do.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options);
  // Calls Shutdown.
  ~Server();

  // The addresses that the server listens on, with the actual port for port 0.
  const std::vector<std::string>& addresses() const;
  // The port of the metrics endpoint; 0 if metrics are off.
  int metrics_port() const;

  // Reads the TLS files and the access file again, and opens the audit log again. New connections
  // get other certificates; streams that the new rules do not allow end. Files that are no good
  // leave those in use, and the log says why.
  void Reload();
  // The same for files that were written or replaced since they were read last, if so. To be called
  // every second, since it also cuts off streams that do not end. Takes microseconds otherwise.
  void ReloadChanged();

  // Calls that take longer are logged; zero: none are. Takes effect with the next request.
  void SetSlowCall(absl::Duration threshold);

  // Stops serving: sets health to NOT_SERVING, refuses new calls, and ends streams once what they
  // have sent is answered. Stops the work of calls that take longer than the drain timeout, within
  // a second. Returns when all updates are written. Further calls have no effect.
  void Shutdown();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace perceptrond
