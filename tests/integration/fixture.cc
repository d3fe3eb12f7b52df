#include "tests/integration/fixture.h"

namespace perceptrond::testing {

std::string MetricsPage(const ServerProcess& server, const std::string& token) {
  return RunCommand("curl -sf -H 'Authorization: Bearer " + token +
                    "' http://127.0.0.1:" + std::to_string(server.metrics_port()) + "/metrics")
      .out;
}

std::string Metric(const ServerProcess& server, const std::string& sample,
                   const std::string& token) {
  const std::string page = "\n" + MetricsPage(server, token);
  size_t at = page.find("\n" + sample + " ");
  if (at == std::string::npos) return "";
  at += sample.size() + 2;
  return page.substr(at, page.find('\n', at) - at);
}

std::string RunToEnd(int exit_code, const std::string& arguments) {
  const CommandResult result = RunServer(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << arguments << ": " << result.out;
  return result.out;
}

std::shared_ptr<grpc::Channel> ServerTest::NarrowChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(server_.address(), grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace perceptrond::testing
