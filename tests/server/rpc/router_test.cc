// Methods are found by path, and a service is added whole or not at all.
#include "server/rpc/acceptor.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/rpc/rpc_server.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;

constexpr char kService[] = "grpc.health.v1.Health";

Call::Method Says(const std::string& word) {
  return [word](Call& call) {
    call.Bind(std::make_shared<Reactor>());
    call.FinishWith(ToBytes(word));
  };
}

TEST(Router, AnUnknownMethodIsUnimplementedWithAReasonAndItsName) {
  Router router;
  router.AddService(kService, {{"Watch", Says("watch")}, {"Check", Says("check")}});
  RpcServer server(
      [&](const std::string& path) -> const Call::Method& { return router.Find(path); });
  const auto channel = server.Connect();
  for (const char* path : {"/grpc.health.v1.Health/Ask", "/grpc.health.v1.health/Check",
                           "/grpc.health.v1.Health", "/no.Service/Check", "/"}) {
    ClientCall call(channel, path);
    std::string answer;
    EXPECT_FALSE(call.Read(answer));
    const grpc::Status status = call.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << path;
    EXPECT_NE(status.error_message().find(path), std::string::npos) << status.error_message();
    EXPECT_EQ(ReasonOf(status), "UNKNOWN_METHOD");
  }
}

TEST(RouterDeathTest, AServiceIsAddedWholeOrNotAtAll) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Router router;
  for (const std::vector<const char*>& names :
       {std::vector{"Check"}, {"Check", "Watch", "Ask"}, {"Check", "Ask"}, {"Check", "Check"}}) {
    std::vector<Router::NamedMethod> methods;
    for (const char* name : names) methods.push_back({name, Says(name)});
    EXPECT_DEATH(router.AddService(kService, methods), kService);
  }
  EXPECT_DEATH(router.AddService("no.such.Service", {}), "no.such.Service");
}

}  // namespace
}  // namespace perceptrond
