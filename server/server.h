// The server put together: store, services, health, reflection, metrics, and the order in which it
// all ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/options.h"

namespace perceptrond {

// Thread contract: Shutdown may be called by any thread but one that answers calls; everything else
// by one.
class Server {
 public:
  // Opens the store and listens. An error says what could not be opened or bound, and what to do.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options);
  // Shuts down if that was not done.
  ~Server();

  // Addresses listened on, with the ports that were free where 0 was asked for.
  const std::vector<std::string>& addresses() const;
  // 0: none.
  int metrics_port() const;

  // Stops serving: health says NOT_SERVING, new calls are refused, streams are ended once what they
  // have sent is answered. Calls that take longer than the drain timeout are cancelled. Then
  // everything is written.
  void Shutdown();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace perceptrond
