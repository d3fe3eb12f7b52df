#include "tests/bench/servers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "perceptron/v1/model_service.grpc.pb.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kMostRounds = 1000;
constexpr char kFreePort[] = "127.0.0.1:0";

// The response of an HTTP server on the loopback address; aborts if there is none.
std::string GetPage(int port, const std::string& path) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      write(connection, request.data(), request.size()) != static_cast<ssize_t>(request.size()))
    std::abort();
  std::string answer;
  char part[4096];
  for (ssize_t got = 0; (got = read(connection, part, sizeof part)) > 0;)
    answer.append(part, static_cast<size_t>(got));
  close(connection);
  return answer;
}

// A channel with a connection of its own.
std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Servers& Servers::Get() {
  static Servers servers;
  return servers;
}

Servers::Running::Running(const std::vector<std::string>& command)
    : process(command), channel(Connect(process.addresses()[0])) {}

Servers::Servers()
    : real_({PERCEPTROND_BINARY, "--address", kFreePort, "--data-dir", dir_.path() + "/data",
             "--metrics-address", kFreePort}),
      null_({NULL_SERVER_BINARY, kFreePort}) {}

double Servers::ProcessorSeconds(Server server) const {
  clockid_t clock = 0;
  timespec used = {};
  if (clock_getcpuclockid(running(server).process.pid(), &clock) != 0 ||
      clock_gettime(clock, &used) != 0)
    std::abort();
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

uint64_t Servers::JournalCommits() const {
  const std::string metrics =
      GetPage(std::stoi(running(Server::kReal).process.Field("metrics_port")), "/metrics");
  const std::string name = "\nperceptrond_journal_commits_total ";
  const size_t at = metrics.find(name);
  if (at == std::string::npos) std::abort();
  return static_cast<uint64_t>(std::strtod(metrics.c_str() + at + name.size(), nullptr));
}

void Servers::CreateModel(const std::string& id, bool named_space, bool offset) {
  grpc::ClientContext context;
  v1::CreateModelRequest request;
  request.set_model_id(id);
  v1::Model& model = *request.mutable_model();
  if (named_space) model.mutable_feature_space()->mutable_named();
  if (!named_space) model.mutable_feature_space()->mutable_hashed()->set_bits(kHashedBits);
  if (!offset) model.mutable_learner()->set_bias_input(0);
  v1::Model created;
  const auto stub = v1::ModelService::NewStub(running(Server::kReal).channel);
  const grpc::Status status = stub->CreateModel(&context, request, &created);
  if (status.ok()) return;
  std::fprintf(stderr, "CreateModel %s: %s\n", id.c_str(), status.error_message().c_str());
  std::abort();
}

void Servers::Converge(Messages& messages, uint64_t mistakes) {
  StreamOptions options;
  options.messages = messages.size();
  for (int round = 0; round < kMostRounds; ++round) {
    if (RunStream(channel(Server::kReal), messages, options).mistakes <= mistakes) return;
  }
  std::fputs("the stream does not converge\n", stderr);
  std::abort();
}

}  // namespace perceptrond::bench
