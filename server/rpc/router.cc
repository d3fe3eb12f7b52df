#include "server/rpc/router.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

void RefuseUnknown(Call& call) {
  call.Bind(std::make_shared<Reactor>());
  call.Finish(ToGrpc(MakeError(absl::StatusCode::kUnimplemented, "UNKNOWN_METHOD",
                               absl::StrCat("this server has no method ", call.path()),
                               {{"method", call.path()}})));
}

}  // namespace

Router::Router() : unknown_(RefuseUnknown) {}

void Router::AddService(const std::string& service, std::vector<NamedMethod> methods) {
  const google::protobuf::ServiceDescriptor* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  int known = 0;
  for (NamedMethod& named : methods) {
    const bool is_new =
        methods_.emplace(absl::StrCat("/", service, "/", named.name), std::move(named.method))
            .second;
    if (is_new && descriptor != nullptr && descriptor->FindMethodByName(named.name) != nullptr)
      ++known;
  }
  if (descriptor == nullptr || known != descriptor->method_count() ||
      methods.size() != static_cast<size_t>(known)) {
    std::fprintf(stderr, "the registered methods of %s are not those of its proto\n",
                 service.c_str());
    std::abort();
  }
  services_.push_back(descriptor);
}

const Call::Method& Router::Find(const std::string& path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? unknown_ : found->second;
}

}  // namespace perceptrond
