// Maps the path of a call to the code that handles it.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/rpc/call.h"

namespace perceptrond {

// Thread contract: AddService before the first call; then any thread may call Find.
class Router {
 public:
  struct NamedMethod {
    const char* name;
    Call::Method method;
  };

  Router();

  // `service` is the full name of a linked-in proto service. `methods` must be exactly the methods
  // of that service, or the process aborts.
  void AddService(const std::string& service, std::vector<NamedMethod> methods);

  // The added services, in that order.
  const std::vector<const google::protobuf::ServiceDescriptor*>& services() const {
    return services_;
  }
  // `path` is the path on the wire. For an unknown path: a method that answers UNIMPLEMENTED
  // (UNKNOWN_METHOD).
  const Call::Method& Find(const std::string& path) const;

 private:
  std::vector<const google::protobuf::ServiceDescriptor*> services_;
  absl::flat_hash_map<std::string, Call::Method> methods_;
  const Call::Method unknown_;
};

}  // namespace perceptrond
