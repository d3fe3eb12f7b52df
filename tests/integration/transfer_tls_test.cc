// A server's certificate is renewed during transfers: they go on over the connections that they began on.
#include <csignal>

#include "tests/integration/certificates.h"
#include "tests/integration/transfer_fixture.h"

namespace perceptrond::testing {
namespace {

// Called with TLS.
class TlsServer : public Certificates, public ServerTest {
 protected:
  TlsServer()
      : ServerTest(
            {"--tls-cert", Certificates::Path("server.pem"), "--tls-key", Path("server.key")}) {
    channel_ = Channel(Credentials(""));
    models_ = v1::ModelService::NewStub(channel_);
    learning_ = v1::LearningService::NewStub(channel_);
  }
  // With connections of its own.
  std::shared_ptr<grpc::Channel> Channel(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("perceptrond");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server_.address(), credentials, arguments);
  }
  // Of a call on a new connection.
  grpc::Status CallWith(const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ClientContext context;
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(Channel(credentials))
        ->ListModels(&context, v1::ListModelsRequest(), &models);
  }
};

using TransferTlsTest = Transfers<TlsServer>;

TEST_F(TransferTlsTest, TransfersUnderWayEndWellAfterNewConnectionsUseAnotherCertificate) {
  CreateLarge("a", 1);
  const std::string file = Export("a");
  ExportCall exported(*history_, "a");
  ASSERT_TRUE(exported.ReadPiece());
  ImportCall imported(*history_, "b");
  const size_t half = file.size() / 2;
  imported.SendAll(file.substr(0, half));
  const auto before = Credentials("");
  MakeAuthority("ca");
  Certify("server", "perceptrond", "ca");
  server_.Signal(SIGHUP);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!CallWith(Credentials("")).ok()) ASSERT_LT(absl::Now(), deadline);
  EXPECT_EQ(CallWith(before).error_code(), grpc::StatusCode::UNAVAILABLE);
  const grpc::Status received = exported.Finish();
  EXPECT_TRUE(received.ok()) << received.error_message();
  EXPECT_TRUE(IsAsLong(exported.file(), file));
  imported.SendAll(file.substr(half));
  const grpc::Status sent = imported.Finish();
  EXPECT_TRUE(sent.ok()) << sent.error_message();
  EXPECT_EQ(imported.model().revision(), Get("a", v1::MODEL_VIEW_UNSPECIFIED).revision());
}

}  // namespace
}  // namespace perceptrond::testing
