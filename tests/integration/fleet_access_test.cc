// Servers of a fleet with certificates and tokens: who may call them, and what the writer knows of a call that another
// server passed on.
#include "tests/integration/access_fixture.h"
#include "tests/integration/certificates.h"
#include "tests/integration/fleet_process.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kScraper[] = "scraper-token";

class FleetAccessTest : public FleetProcesses {
 protected:
  FleetAccessTest() {
    access_.Write(
        absl::StrCat(AccessFile::Text(), "principal { name: 'slow' token_sha256: '",
                     AccessFile::Digest("slow-token"),
                     "' allow { role: LEARN models: '' } max_examples_per_second: 1 }\n"));
    for (int i = 0; i < 2; ++i) {
      Start({"--fleet-cert", certificates_.Path("server.pem"), "--fleet-key",
             certificates_.Path("server.key"), "--fleet-ca", certificates_.Path("ca.pem"),
             "--access-file", access_.path(), "--audit-log", Audit(i), "--slow-call", "1us"});
    }
    WaitUntil([this] {
      return members_[0]->Call(
                 "ModelService/CreateModel",
                 "model_id: 'spam-a' model { feature_space { dense { dimension: 2 } } }", nullptr,
                 "admin-token") == "OK";
    });
  }
  std::string Audit(int member) const { return absl::StrCat(dir_.path(), "/audit", member); }
  // Rows that are mistakes: one row with either label.
  static v1::LearnRequest Rows(int rows) {
    v1::LearnRequest request;
    request.set_model("models/spam-a");
    for (int i = 0; i < rows; ++i)
      *request.add_examples() = SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1.0F}, {1, 1.0F}});
    return request;
  }
  static std::string Learn(Member& member, int rows, const std::string& principal) {
    return Outcome(member.CallRaw("/perceptron.v1.LearningService/Learn",
                                  {Rows(rows).SerializeAsString()}, nullptr, principal + "-token"));
  }
  static grpc::Status List(const std::string& address,
                           const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                           const std::string& token = "") {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("perceptrond");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Hours(1)));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(grpc::CreateCustomChannel(address, credentials, arguments))
        ->ListModels(&context, v1::ListModelsRequest(), &models);
  }
  int OfAll(const std::string& figure) const {
    int sum = 0;
    for (const auto& member : members_)
      sum +=
          std::atoi(Metric(member->process, "perceptrond_principal_" + figure, kScraper).c_str());
    return sum;
  }

  const Certificates certificates_;
  const AccessFile access_;
};

TEST_F(FleetAccessTest, OnlyServersOfTheFleetReachTheFleetsPort) {
  const std::string& port = fleet_addresses_[0];
  EXPECT_TRUE(List(port, certificates_.Credentials("server")).ok());
  // No certificate; one of another authority; none, with the token of somebody who may do everything; no encryption.
  for (const auto& credentials :
       {certificates_.Credentials(""), certificates_.Credentials("foreign"),
        grpc::InsecureChannelCredentials()})
    EXPECT_EQ(List(port, credentials, "admin-token").error_code(), grpc::StatusCode::UNAVAILABLE);
  // A client's certificate of the same authority.
  EXPECT_EQ(List(port, certificates_.Credentials("client"), "admin-token").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  // The service between servers is not on the port for clients.
  EXPECT_EQ(members_[0]
                ->CallRaw("/perceptron.fleet.v1.SegmentService/Learn", {}, nullptr, "admin-token")
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(FleetAccessTest, RenewedCertificatesAreUsedByBothSidesWithoutARestart) {
  certificates_.MakeAuthority("ca");
  const auto before = certificates_.Credentials("server");
  certificates_.Certify("server", "perceptrond", "ca");
  for (const std::string& port : fleet_addresses_) {
    WaitUntil([&] { return List(port, certificates_.Credentials("server")).ok(); });
    EXPECT_EQ(List(port, before).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  for (const auto& member : members_) WaitUntil([&] { return Learn(*member, 1, "admin") == "OK"; });
}

TEST_F(FleetAccessTest, APrincipalIsCheckedCountedAndLimitedWhereItsCallArrives) {
  for (const auto& member : members_)
    EXPECT_EQ(Learn(*member, 10, "reader"), "PERMISSION_DENIED PERMISSION_DENIED");
  Member& writer = AwaitWriter(kScraper);
  Member& other = OtherThan(writer);
  WaitUntil([&] { return Learn(other, 500, "slow") == "OK"; });
  EXPECT_EQ(Learn(other, 500, "slow"), "RESOURCE_EXHAUSTED RATE_LIMITED");
  EXPECT_EQ(OfAll("limited_total{principal=\"slow\"}"), 1);
  EXPECT_EQ(OfAll("calls_total{principal=\"slow\",outcome=\"ok\"}"), 1);
  EXPECT_EQ(OfAll("examples_total{principal=\"slow\"}"), 500);
  // A change is recorded where it was asked for alone.
  EXPECT_EQ(other.Call("ModelService/FreezeModel", "name: 'models/spam-a'", nullptr, "admin-token"),
            "OK");
  const int at = &other == members_[0].get() ? 0 : 1;
  WaitUntil([&] { return absl::StrContains(ReadAll(Audit(at)), "FreezeModel"); });
  EXPECT_THAT(ReadAll(Audit(at)), ::testing::ContainsRegex("\"principal\":\"admin\"[^\n]*Freeze"));
  EXPECT_THAT(ReadAll(Audit(1 - at)), ::testing::Not(HasSubstr("FreezeModel")));
  // The writer knows the trace and the principal of a call that was passed on. Its log has only some lines of a second.
  WaitUntil([&] {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer admin-token");
    context.AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    v1::LearnResponse response;
    (void)other.learning().Learn(&context, Rows(2), &response);
    const std::vector<std::string> log = writer.process.Log();
    return std::any_of(log.begin(), log.end(), [](const std::string& line) {
      return absl::StrContains(line, "LearningService/Learn ") &&
             absl::StrContains(line, "trace_id=4bf92f3577b34da6a3ce929d0e0e4736") &&
             absl::StrContains(line, "principal=admin");
    });
  });
}

TEST_F(FleetAccessTest, AnImportThatIsPassedOnAndDeniedIsNotTheEndOfItsFile) {
  access_.Write(absl::StrCat(AccessFile::Text(), "principal { name: 'mover' token_sha256: '",
                             AccessFile::Digest("mover-token"),
                             "' allow { role: ADMIN models: 'spam-' } }\n"));
  for (const auto& member : members_) {
    member->process.Signal(SIGHUP);
    WaitUntil([&] { return Learn(*member, 1, "mover") == "OK"; });
  }
  Member& other = OtherThan(AwaitWriter(kScraper));
  const auto history = v1::HistoryService::NewStub(other.channel());
  ExportCall exported(*history, "spam-a", "mover-token");
  ASSERT_EQ(Outcome(exported.Finish()), "OK");
  ImportCall imported(*history, "spam-b", "", "mover-token");
  imported.Send(exported.file());
  imported.next().set_new_name("models/other-b");
  imported.Send("");
  EXPECT_EQ(Reason(imported.AwaitEnd()), "PERMISSION_DENIED");
  for (const char* const id : {"spam-b", "other-b"}) {
    EXPECT_EQ(members_[0]->Call("ModelService/GetModel", absl::StrCat("name: 'models/", id, "'"),
                                nullptr, "admin-token"),
              "NOT_FOUND MODEL_NOT_FOUND");
  }
}

}  // namespace
}  // namespace perceptrond::testing
