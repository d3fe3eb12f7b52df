#include "tests/bench/servers.h"

#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/model_service.grpc.pb.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

constexpr int kMostRounds = 100;

std::unique_ptr<Servers>& Instance() {
  static std::unique_ptr<Servers> instance;
  return instance;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

std::vector<std::string> ServerCommand(Server server, const std::string& dir) {
  const std::string tcp = "127.0.0.1:0";
  switch (server) {
    case Server::kReal:
      return {PERCEPTROND_BINARY,
              "--address",
              tcp,
              "--address",
              absl::StrCat("unix:", dir, "/real.sock"),
              "--data-dir",
              dir + "/data",
              "--metrics-address",
              tcp};
    case Server::kNull:
      return {NULL_SERVER_BINARY, tcp, absl::StrCat("unix:", dir, "/null.sock")};
    case Server::kCallback:
      return {NULL_CALLBACK_SERVER_BINARY, tcp, absl::StrCat("unix:", dir, "/callback.sock")};
  }
  std::abort();
}

Servers& Servers::Get() {
  if (Instance() == nullptr) Instance().reset(new Servers);
  return *Instance();
}

void Servers::Stop() { Instance().reset(); }

Servers::Running::Running(Server server, const std::string& dir)
    : process(ServerCommand(server, dir)) {
  for (size_t i = 0; i < 2; ++i) channels[i] = Connect(process.addresses()[i]);
}

Servers::Servers() {
  for (const Server server : {Server::kReal, Server::kNull, Server::kCallback})
    running_[static_cast<int>(server)] = std::make_unique<Running>(server, dir_.path());
}

grpc::Channel& Servers::channel(Server server, Transport transport) {
  return *running(server).channels[static_cast<int>(transport)];
}

std::shared_ptr<grpc::Channel> Servers::NewChannel(Server server) const {
  return Connect(running(server).process.addresses()[0]);
}

double Servers::ProcessorSeconds(Server server) const {
  clockid_t clock = 0;
  timespec used = {};
  if (clock_getcpuclockid(running(server).process.pid(), &clock) != 0 ||
      clock_gettime(clock, &used) != 0)
    std::abort();
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void Servers::CreateModel(const std::string& id, bool offset, uint32_t bits) {
  v1::Model model;
  model.mutable_feature_space()->mutable_hashed()->set_bits(bits);
  if (!offset) model.mutable_learner()->set_bias_input(0);
  CreateModel(id, model);
}

void Servers::CreateModel(const std::string& id, const v1::Model& model) {
  grpc::ClientContext context;
  v1::CreateModelRequest request;
  request.set_model_id(id);
  *request.mutable_model() = model;
  v1::Model created;
  const auto stub = v1::ModelService::NewStub(running(Server::kReal).channels[0]);
  const grpc::Status status = stub->CreateModel(&context, request, &created);
  if (status.ok()) return;
  std::fprintf(stderr, "CreateModel %s: %s\n", id.c_str(), status.error_message().c_str());
  std::abort();
}

void Servers::DeleteModel(const std::string& id) {
  grpc::ClientContext context;
  v1::DeleteModelRequest request;
  request.set_name("models/" + id);
  google::protobuf::Empty deleted;
  const auto stub = v1::ModelService::NewStub(running(Server::kReal).channels[0]);
  const grpc::Status status = stub->DeleteModel(&context, request, &deleted);
  if (status.ok()) return;
  std::fprintf(stderr, "DeleteModel: %s\n", status.error_message().c_str());
  std::abort();
}

void Servers::Converge(Messages& messages, uint64_t mistakes) {
  StreamOptions options;
  options.messages = messages.rest.size();
  for (int round = 0; round < kMostRounds; ++round) {
    if (RunStream(channel(Server::kReal), messages, options).mistakes <= mistakes) return;
  }
  std::fputs("the stream does not converge\n", stderr);
  std::abort();
}

}  // namespace perceptrond::bench
