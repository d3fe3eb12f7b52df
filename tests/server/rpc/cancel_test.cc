// Calls that clients cancel: reactors hear of it, once, and every call is over in the end.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/rpc/raw_client.h"
#include "tests/server/rpc/reactors.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond {
namespace {

using namespace ::perceptrond::testing;

// Hears everything, and lets it pass: as the server's own, which counts the calls.
class Pass final : public grpc::experimental::ServerInterceptorFactoryInterface {
  class Interceptor final : public grpc::experimental::Interceptor {
    void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
      methods->Proceed();
    }
  };
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* /*info*/) override {
    return new Interceptor;
  }
};

// An interceptor has gRPC tell of things in another order, and more threads do anyway.
struct Polling {
  const char* name;
  int threads;
  bool intercepted;
};
void PrintTo(const Polling& polling, std::ostream* out) { *out << polling.name; }

class CancelledSoonTest : public ::testing::TestWithParam<Polling> {
 protected:
  using Client = std::function<void(int port, const std::shared_ptr<grpc::Channel>&)>;

  // Four clients at once, each with a connection of its own; then the server stops. Every call that
  // began is over then.
  void Run(const Call::Method& method, const Client& client) {
    RpcServer::Interceptors interceptors;
    if (GetParam().intercepted) interceptors.push_back(std::make_unique<Pass>());
    RpcServer server(All(method), GetParam().threads, std::move(interceptors));
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i)
      clients.emplace_back([&] { client(server.port(), server.Connect()); });
    for (std::thread& one : clients) one.join();
    server.Stop();
    EXPECT_EQ(counts_.done(), counts_.begun());
  }

  CallCounts counts_;
};
INSTANTIATE_TEST_SUITE_P(Pollings, CancelledSoonTest,
                         ::testing::Values(Polling{"OneThread", 1, false},
                                           Polling{"ThreeThreadsIntercepted", 3, true}),
                         [](const ::testing::TestParamInfo<Polling>& polling) {
                           return polling.param.name;
                         });

TEST_P(CancelledSoonTest, CallsThatAreCancelledOrResetAtOnceAreAllOverInTheEnd) {
  // Some of them before they are accepted.
  Run(Make<UntilCancel>(counts_), [](int port, const std::shared_ptr<grpc::Channel>& channel) {
    for (int i = 0; i < 100; ++i) {
      ClientCall call(channel, "/a.B/C");
      call.Cancel();
      EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
      StartAndResetCall(port, "/a.B/C");
    }
  });
  EXPECT_GT(counts_.begun(), 0);
  EXPECT_EQ(counts_.cancelled(), counts_.begun());
}

TEST_P(CancelledSoonTest, StreamsThatAreCancelledAtAnyTimeAreAllOverInTheEnd) {
  Run(Make<Echo>(counts_), [](int /*port*/, const std::shared_ptr<grpc::Channel>& channel) {
    for (int i = 0; i < 100; ++i) {
      ClientCall call(channel, "/a.B/C");
      std::string answer;
      for (int message = 0; message < i % 4; ++message) {
        ASSERT_TRUE(call.Write("m"));
        if (message % 2 == 0) {
          ASSERT_TRUE(call.Read(answer));
        }
      }
      // Answered and cancelled at the same time: each call ends once, either way.
      if (i % 5 == 4) {
        call.WritesDone();
      }
      call.Cancel();
      call.Finish();
    }
  });
}

}  // namespace
}  // namespace perceptrond
