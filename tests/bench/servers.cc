#include "tests/bench/servers.h"

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

std::vector<std::string> RealServerCommand(const std::string& dir) {
  return {PERCEPTROND_BINARY,
          "--address",
          "127.0.0.1:0",
          "--address",
          absl::StrCat("unix:", dir, "/real.sock"),
          "--data-dir",
          dir + "/data",
          "--metrics-address",
          "127.0.0.1:0"};
}

std::vector<std::string> NullServerCommand(const std::string& dir) {
  return {NULL_SERVER_BINARY, "127.0.0.1:0", absl::StrCat("unix:", dir, "/null.sock")};
}

Servers& Servers::Get() {
  if (Instance() == nullptr) Instance().reset(new Servers);
  return *Instance();
}

void Servers::Stop() { Instance().reset(); }

Servers::Servers() : real_(RealServerCommand(dir_.path())), null_(NullServerCommand(dir_.path())) {
  for (size_t i = 0; i < 2; ++i) {
    real_channels_[i] = Connect(real_.addresses()[i]);
    null_channels_[i] = Connect(null_.addresses()[i]);
  }
}

grpc::Channel& Servers::real(Transport transport) {
  return *real_channels_[static_cast<int>(transport)];
}
grpc::Channel& Servers::null(Transport transport) {
  return *null_channels_[static_cast<int>(transport)];
}

std::shared_ptr<grpc::Channel> Servers::NewReal() const { return Connect(real_.addresses()[0]); }
std::shared_ptr<grpc::Channel> Servers::NewNull() const { return Connect(null_.addresses()[0]); }

void Servers::CreateModel(const std::string& id, bool offset, uint32_t bits) {
  grpc::ClientContext context;
  v1::CreateModelRequest request;
  request.set_model_id(id);
  request.mutable_model()->mutable_feature_space()->mutable_hashed()->set_bits(bits);
  if (!offset) request.mutable_model()->mutable_learner()->set_bias_input(0);
  v1::Model created;
  const auto stub = v1::ModelService::NewStub(real_channels_[0]);
  const grpc::Status status = stub->CreateModel(&context, request, &created);
  if (status.ok()) return;
  std::fprintf(stderr, "CreateModel: %s\n", status.error_message().c_str());
  std::abort();
}

void Servers::DeleteModel(const std::string& id) {
  grpc::ClientContext context;
  v1::DeleteModelRequest request;
  request.set_name("models/" + id);
  google::protobuf::Empty deleted;
  const auto stub = v1::ModelService::NewStub(real_channels_[0]);
  const grpc::Status status = stub->DeleteModel(&context, request, &deleted);
  if (status.ok()) return;
  std::fprintf(stderr, "DeleteModel: %s\n", status.error_message().c_str());
  std::abort();
}

void Servers::Converge(Messages& messages, uint64_t mistakes) {
  StreamOptions options;
  options.messages = messages.rest.size();
  for (int round = 0; round < kMostRounds; ++round) {
    if (RunStream(real(), messages, options).mistakes <= mistakes) return;
  }
  std::fputs("the stream does not converge\n", stderr);
  std::abort();
}

}  // namespace perceptrond::bench
