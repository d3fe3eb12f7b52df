#include "server/access/call_aliases.h"

#include <utility>

#include "absl/strings/match.h"
#include "server/rpc/message.h"

namespace perceptrond {

void CallAliases::OnMessage(grpc::ByteBuffer& message) {
  if (alias_.empty() && aliases_.empty()) return;
  NamedModels named;
  if (!method_.Read(message, named)) return;
  const bool names_alias = absl::StartsWith(named.model, kAliasCollection);
  if (!named.model.empty() && !names_alias) {
    // A stream that stays on its model may name it either way.
    if (method_.follows_alias()) alias_.clear();
    return;
  }
  if (named.model.empty() && (alias_.empty() || !method_.follows_alias())) return;
  const std::string before = named.model.empty() ? model_ : "";
  if (names_alias && alias_ != named.model) {
    alias_ = std::move(named.model);
    model_.clear();
  }
  if (model_.empty() || method_.follows_alias()) model_ = aliases_.ModelOf(alias_).value_or("");
  // A stream goes on with the model that its last message named.
  if (!model_.empty() && model_ == before) return;
  method_.SetModel(model_.empty() ? alias_ : model_, message);
}

}  // namespace perceptrond
