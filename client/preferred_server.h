// Which of several servers a stream goes to: the one that the channel chooses, or the writer of its model,
// once an answer has named it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "client/connection.h"

namespace perceptrond::client {

// Not thread-safe.
class PreferredServer {
 public:
  explicit PreferredServer(std::shared_ptr<Connection> any) : any_(std::move(any)) {}

  Connection& current() const { return preferred_ != nullptr ? *preferred_ : *any_; }
  // Prefers the server of this address. False if it is none of the connection's, or was named last and
  // could not be reached. May block.
  bool Prefer(const std::string& address) {
    if (address.empty() || address == std::exchange(unreached_, address)) return false;
    preferred_ = any_->ConnectTo(address);
    return preferred_ != nullptr;
  }
  // The server has opened the stream.
  void OnReached() {
    if (preferred_ != nullptr) unreached_.clear();
  }
  // The connection was lost: any server will do.
  void Reset() { preferred_.reset(); }

 private:
  const std::shared_ptr<Connection> any_;
  std::shared_ptr<Connection> preferred_;
  // The address that was named last, until it is reached.
  std::string unreached_;
};

}  // namespace perceptrond::client
