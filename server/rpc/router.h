// Which code answers which method.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/rpc/call.h"

namespace perceptrond {

// Thread contract: AddService before the first call; then any thread may find.
class Router {
 public:
  struct Named {
    const char* method;
    Call::Method answer;
  };

  Router();

  // `service` by its full name, with all of its methods and no other: else the process ends.
  void AddService(const std::string& service, std::vector<Named> methods);

  // Those added, in that order.
  const std::vector<const google::protobuf::ServiceDescriptor*>& services() const {
    return services_;
  }
  // `path` as on the wire. What is unknown is answered UNIMPLEMENTED.
  const Call::Method& Find(const std::string& path) const;

 private:
  std::vector<const google::protobuf::ServiceDescriptor*> services_;
  absl::flat_hash_map<std::string, Call::Method> methods_;
  const Call::Method unknown_;
};

}  // namespace perceptrond
