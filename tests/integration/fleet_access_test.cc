// Who may call the servers of a fleet that have certificates and tokens, and what the writer knows of a call that another
// server passed on.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/strings/match.h"
#include "perceptron/v1/history_service.grpc.pb.h"
#include "tests/integration/access_fixture.h"
#include "tests/integration/certificates.h"
#include "tests/integration/fleet_process.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kTrace[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kScraper[] = "Authorization: Bearer scraper-token";

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
    EXPECT_TRUE(Eventually([this] { return Create("spam-a").ok(); }));
  }
  std::string Audit(int member) const { return absl::StrCat(dir_.path(), "/audit", member); }
  static void Authorize(grpc::ClientContext& context, const std::string& principal) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    context.AddMetadata("authorization", "Bearer " + principal + "-token");
  }
  grpc::Status Create(const std::string& id) const {
    grpc::ClientContext context;
    Authorize(context, "admin");
    v1::CreateModelRequest request;
    request.set_model_id(id);
    request.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(2);
    v1::Model created;
    return members_[0]->models->CreateModel(&context, request, &created);
  }
  // Rows that are mistakes: the same row with either label.
  static grpc::Status Learn(const Member& member, int rows, const std::string& principal,
                            const std::string& trace = "") {
    grpc::ClientContext context;
    Authorize(context, principal);
    if (!trace.empty()) context.AddMetadata("traceparent", trace);
    v1::LearnRequest request;
    request.set_model("models/spam-a");
    for (int i = 0; i < rows; ++i)
      *request.add_examples() = SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1.0F}, {1, 1.0F}});
    v1::LearnResponse response;
    return member.learning->Learn(&context, request, &response);
  }
  static grpc::Status List(const std::string& address,
                           const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                           const std::string& token = "") {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("perceptrond");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(grpc::CreateCustomChannel(address, credentials, arguments))
        ->ListModels(&context, v1::ListModelsRequest(), &models);
  }
  double OfAll(const std::string& metric) const {
    double sum = 0;
    for (const auto& member : members_) sum += member->Metric(metric, kScraper);
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
  // Of the authority, and not for a server.
  EXPECT_EQ(List(port, certificates_.Credentials("client"), "admin-token").error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  // The service between servers is not on the port for clients.
  grpc::GenericStub stub(members_[0]->channel);
  grpc::ClientContext context;
  Authorize(context, "admin");
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/perceptron.fleet.v1.SegmentService/Learn", &queue);
  grpc::Status status;
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(&tag);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  call->Finish(&status, &tag);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
}

TEST_F(FleetAccessTest, RenewedCertificatesAreUsedByBothSidesWithoutARestart) {
  certificates_.MakeAuthority("ca");
  const auto before = certificates_.Credentials("server");
  certificates_.Certify("server", "perceptrond", "ca");
  for (const std::string& port : fleet_addresses_) {
    EXPECT_TRUE(Eventually([&] { return List(port, certificates_.Credentials("server")).ok(); }));
    EXPECT_EQ(List(port, before).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  for (const auto& member : members_)
    EXPECT_TRUE(Eventually([&] { return Learn(*member, 1, "admin").ok(); }));
}

TEST_F(FleetAccessTest, APrincipalIsCheckedCountedAndLimitedWhereItsCallArrives) {
  for (const auto& member : members_)
    EXPECT_EQ(Learn(*member, 10, "reader").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  Member& other = OtherThan(AwaitWriter(kScraper));
  ASSERT_TRUE(Eventually([&] { return Learn(other, 500, "slow").ok(); }));
  EXPECT_EQ(Learn(other, 500, "slow").error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(OfAll("perceptrond_principal_limited_total{principal=\"slow\"}"), 1);
  EXPECT_EQ(OfAll("perceptrond_principal_calls_total{principal=\"slow\",outcome=\"ok\"}"), 1);
  EXPECT_EQ(OfAll("perceptrond_principal_examples_total{principal=\"slow\"}"), 500);
  // A change is recorded where it was asked for alone.
  grpc::ClientContext context;
  Authorize(context, "admin");
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/spam-a");
  v1::Model frozen;
  ASSERT_TRUE(other.models->FreezeModel(&context, freeze, &frozen).ok());
  const int at = &other == members_[0].get() ? 0 : 1;
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(ReadAll(Audit(at)), "FreezeModel"); }));
  EXPECT_THAT(ReadAll(Audit(at)), ::testing::ContainsRegex("\"principal\":\"admin\"[^\n]*Freeze"));
  EXPECT_THAT(ReadAll(Audit(1 - at)), ::testing::Not(HasSubstr("FreezeModel")));
}

TEST_F(FleetAccessTest, TheWriterKnowsTheTraceAndThePrincipalOfACallThatWasPassedOn) {
  Member& writer = AwaitWriter(kScraper);
  // Of a second the log has some lines only.
  EXPECT_TRUE(Eventually([&] {
    (void)Learn(OtherThan(writer), 2, "admin", kTrace);
    const std::vector<std::string> log = writer.process.Log();
    return std::any_of(log.begin(), log.end(), [](const std::string& line) {
      return absl::StrContains(line, "LearningService/Learn ") &&
             absl::StrContains(line, "trace_id=4bf92f3577b34da6a3ce929d0e0e4736") &&
             absl::StrContains(line, "principal=admin");
    });
  }));
}

TEST_F(FleetAccessTest, WhatIsDeniedOfAnImportThatIsPassedOnIsNotTheEndOfItsFile) {
  ASSERT_TRUE(Eventually([&] { return Learn(*members_[0], 2, "admin").ok(); }));
  Member& other = OtherThan(AwaitWriter(kScraper));
  const auto history = v1::HistoryService::NewStub(other.channel);
  v1::ExportModelRequest out;
  out.set_name("models/spam-a");
  grpc::ClientContext exporting;
  Authorize(exporting, "reader");
  const auto reader = history->ExportModel(&exporting, out);
  std::string file;
  for (v1::ExportModelResponse piece; reader->Read(&piece);) file += piece.piece();
  ASSERT_TRUE(reader->Finish().ok());
  grpc::ClientContext importing;
  Authorize(importing, "keeper");
  v1::Model imported;
  access_.Write(absl::StrCat(AccessFile::Text(), "principal { name: 'keeper' token_sha256: '",
                             AccessFile::Digest("keeper-token"),
                             "' allow { role: ADMIN models: 'spam-' } }\n"));
  for (const auto& member : members_) {
    member->process.Signal(SIGHUP);
    EXPECT_TRUE(Eventually([&] { return Learn(*member, 1, "keeper").ok(); }));
  }
  const auto writer = history->ImportModel(&importing, &imported);
  v1::ImportModelRequest in;
  in.set_new_name("models/spam-b");
  in.set_piece(file);
  writer->Write(in);
  in.set_new_name("models/other-b");
  in.clear_piece();
  writer->Write(in);
  EXPECT_EQ(Reason(writer->Finish()), "PERMISSION_DENIED");
  for (const char* const id : {"spam-b", "other-b"}) {
    grpc::ClientContext context;
    Authorize(context, "admin");
    v1::GetModelRequest get;
    get.set_name(absl::StrCat("models/", id));
    v1::Model model;
    EXPECT_EQ(Reason(members_[0]->models->GetModel(&context, get, &model)), "MODEL_NOT_FOUND");
  }
}

}  // namespace
}  // namespace perceptrond::testing
