// Puts models in the place of the aliases that a call's messages name, in the messages' bytes: whatever
// reads them later, access checks, routing to other servers, metrics and logs among it, knows models alone.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "core/journal/alias_map.h"
#include "server/access/method_access.h"

namespace perceptrond {

// Of one call. Thread contract: used by one thread at a time.
class CallAliases {
 public:
  // Both must outlive it. The method takes aliases.
  CallAliases(const AliasMap& aliases, const MethodAccess& method)
      : aliases_(aliases), method_(method) {}

  // Sets the model of a message that names an alias, or goes on with one that an earlier message
  // named. A message with an alias that does not exist names the alias, and the method refuses it.
  void OnMessage(grpc::ByteBuffer& message);
  // The alias that the last message is for; empty: none.
  const std::string& alias() const { return alias_; }

 private:
  const AliasMap& aliases_;
  const MethodAccess& method_;
  std::string alias_;
  // The model that it stands for. Empty: it does not exist.
  std::string model_;
};

}  // namespace perceptrond
