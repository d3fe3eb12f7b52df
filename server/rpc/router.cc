#include "server/rpc/router.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

void RefuseUnknown(Call& call) {
  call.Bind(std::make_shared<Reactor>());
  call.Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                           absl::StrCat("this server has no method ", call.path())));
}

}  // namespace

Router::Router() : unknown_(RefuseUnknown) {}

void Router::AddService(const std::string& service, std::vector<Named> methods) {
  const google::protobuf::ServiceDescriptor* const described =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  int known = 0;
  for (Named& named : methods) {
    const bool is_new =
        methods_.emplace(absl::StrCat("/", service, "/", named.method), std::move(named.answer))
            .second;
    if (is_new && described != nullptr && described->FindMethodByName(named.method) != nullptr)
      ++known;
  }
  if (described == nullptr || known != described->method_count() ||
      methods.size() != static_cast<size_t>(known)) {
    std::fprintf(stderr, "%s does not have the methods that are answered\n", service.c_str());
    std::abort();
  }
  services_.push_back(described);
}

const Call::Method& Router::Find(const std::string& path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? unknown_ : found->second;
}

}  // namespace perceptrond
