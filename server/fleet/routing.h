// Has a call's method run here or on the server that writes the call's model, which its first
// message names.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/access/method_access.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"

namespace perceptrond {

// Where a call goes.
struct Destination {
  // The address of another server; empty: here.
  std::string address;
  // The model's id, and the epoch of its writer there.
  uint64_t model_id = 0;
  int64_t epoch = 0;
  // It goes nowhere, for this reason.
  absl::Status error;
};

// What a method does where its model is not written.
enum class Without : uint8_t {
  // Nothing: it fails while no writer can be reached.
  kFail,
  // It reads what is known here.
  kHere,
};

// Where a method runs.
enum class RunsAt : uint8_t {
  // On the writer of the model that it names.
  kWriter,
  // On the writer of the model that it reads, and makes another one of.
  kSourceWriter,
  // On a server that writes some models: it makes one.
  kAnyWriter,
};

struct RoutedMethod {
  MethodAccess names;
  Without without_writer = Without::kFail;
  // What runs here.
  Call::Method here;
  RunsAt runs_at = RunsAt::kWriter;
};

// Everything must outlive the calls.
class Routing {
 public:
  // Runs a call on another server.
  using Relay = std::function<void(Call& call, const Destination& to, const RoutedMethod& method)>;

  Routing(const Backend& backend, Relay relay) : backend_(backend), relay_(std::move(relay)) {}

  // A method that reads the first message and then does as it says. `method` must outlive its
  // calls.
  Call::Method Wrap(const RoutedMethod& method);

  // Where a message that names this model goes. May read the journal.
  Destination Find(const std::string& model, Without without_writer) const;
  // This server if it writes any models, else another that does.
  Destination FindAnyWriter() const;
  // The same for a model in memory; absent if it is not.
  std::optional<Destination> FindLoaded(const std::string& model, Without without_writer) const;

 private:
  friend class RoutingReactor;

  Destination FindById(uint64_t id, const std::string& model, Without without_writer) const;

  const Backend backend_;
  const Relay relay_;
};

}  // namespace perceptrond
