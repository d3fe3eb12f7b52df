// Who may export, import and copy models in a fleet: at the server that writes all models, and at one that writes none
// and passes the calls on. What is denied leaves nothing.
#include <csignal>
#include <map>

#include "core/journal/jetstream/stream.h"
#include "tests/integration/fleet_access_fixture.h"
#include "tests/integration/transfer_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kReaderToken[] = "reader-token";
constexpr char kTrainerToken[] = "trainer-token";

class TransferFleetAccessTest : public SecuredFleet {
 protected:
  // One partition, so that one server writes all models.
  TransferFleetAccessTest() : SecuredFleet(RulesWithKeeper(), 2, 1) {
    AwaitCreated("spam-a");
    AwaitCreated("other");
    const auto [writer, other] = WriterAndOther("spam-a");
    writer_ = writer;
    other_ = other;
    ends_ = {{"writer", writer}, {"other", other}};
    jetstream::ConnectionOptions options;
    options.servers = nats_.urls();
    connection_ = jetstream::Connection::Open(options).value();
  }
  static std::unique_ptr<v1::HistoryService::Stub> HistoryOf(const Secured& server) {
    return v1::HistoryService::NewStub(server.member.channel);
  }
  static grpc::Status Export(const Secured& server, const std::string& id, const std::string& token,
                             std::string* file = nullptr) {
    const auto history = HistoryOf(server);
    ExportCall call(*history, id, token);
    grpc::Status status = call.Finish();
    if (file != nullptr) *file = call.file();
    return status;
  }
  static grpc::Status Import(const Secured& server, const std::string& id, const std::string& token,
                             const std::string& file) {
    const auto history = HistoryOf(server);
    ImportCall call(*history, id, "", token);
    call.SendAll(file, file.size() / 2 + 1);
    return call.Finish();
  }
  static grpc::Status Copy(const Secured& server, const std::string& id, const std::string& new_id,
                           const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::CopyModelRequest request;
    request.set_name("models/" + id);
    request.set_new_name("models/" + new_id);
    v1::Model copy;
    return HistoryOf(server)->CopyModel(&context, request, &copy);
  }
  bool Exists(const std::string& id) const {
    grpc::ClientContext context;
    Authorize(context, "admin");
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    v1::Model model;
    const grpc::Status status = writer_->member.models->GetModel(&context, request, &model);
    if (!status.ok()) {
      EXPECT_EQ(Reason(status), "MODEL_NOT_FOUND");
    }
    return status.ok();
  }
  // Where the streams are that the catalogue and the states of models are in: any message moves it.
  std::vector<uint64_t> Written() const {
    std::vector<uint64_t> last;
    for (const char* const name : {"catalogue", "snapshots"}) {
      const auto stream =
          jetstream::Stream::Open(connection_, {.name = absl::StrCat("perceptrond-", name),
                                                .subject = absl::StrCat("perceptrond.", name),
                                                .must_exist = true});
      EXPECT_TRUE(stream.ok()) << stream.status();
      last.push_back((*stream)->LastSequence().value());
    }
    return last;
  }
  // Calls until the writer's log says that it has worked for the principal, whose call another server passed on.
  void ExpectPassedOnFor(const std::string& principal, const std::string& method,
                         const std::function<grpc::Status()>& call) const {
    const std::vector<std::string> parts = {"HistoryService/" + method + " ",
                                            "principal=" + principal};
    const size_t before = writer_->Lines(parts).size();
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
      const grpc::Status status = call();
      ASSERT_TRUE(status.ok()) << status.error_message();
      // Of a second the log has some lines only.
      if (writer_->Lines(parts).size() > before) return;
    }
    FAIL() << method << ": the writer did not work for " << principal;
  }

  Secured* writer_ = nullptr;
  Secured* other_ = nullptr;
  std::map<std::string, Secured*> ends_;
  std::shared_ptr<jetstream::Connection> connection_;
};

TEST_F(TransferFleetAccessTest, AModelIsExportedForThoseWhoMayReadIt) {
  const std::vector<uint64_t> before = Written();
  for (const auto& [end, server] : ends_) {
    SCOPED_TRACE(end);
    std::string file;
    for (const std::string& id : {std::string("other"), std::string("none")}) {
      EXPECT_EQ(Reason(Export(*server, id, kReaderToken, &file)), "PERMISSION_DENIED");
      EXPECT_EQ(file, "");
    }
    EXPECT_EQ(Reason(Export(*server, "spam-a", "", &file)), "UNAUTHENTICATED");
    EXPECT_EQ(file, "");
    const grpc::Status status = Export(*server, "spam-a", kReaderToken, &file);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(file, ::testing::StartsWith("perceptrond model 1\n"));
  }
  EXPECT_EQ(Written(), before);
  ExpectPassedOnFor("reader", "ExportModel",
                    [&] { return Export(*other_, "spam-a", kReaderToken); });
}

TEST_F(TransferFleetAccessTest, AModelIsImportedForThoseWhoMayCreateIt) {
  std::string file;
  ASSERT_TRUE(Export(*writer_, "spam-a", kAdminToken, &file).ok());
  const std::vector<uint64_t> before = Written();
  for (const auto& [end, server] : ends_) {
    SCOPED_TRACE(end);
    for (const char* const token : {kReaderToken, kTrainerToken})
      EXPECT_EQ(Reason(Import(*server, "spam-b", token, file)), "PERMISSION_DENIED");
    EXPECT_EQ(Reason(Import(*server, "other-b", kKeeperToken, file)), "PERMISSION_DENIED");
    EXPECT_EQ(Reason(Import(*server, "spam-b", "", file)), "UNAUTHENTICATED");
  }
  EXPECT_EQ(Written(), before);
  for (const char* const id : {"spam-b", "other-b"}) EXPECT_FALSE(Exists(id));
  for (const auto& [end, server] : ends_) {
    const grpc::Status status = Import(*server, "spam-from-" + end, kKeeperToken, file);
    EXPECT_TRUE(status.ok()) << end << ": " << status.error_message();
    EXPECT_TRUE(Exists("spam-from-" + end));
  }
  int imports = 0;
  ExpectPassedOnFor("keeper", "ImportModel", [&] {
    return Import(*other_, absl::StrCat("spam-", ++imports), kKeeperToken, file);
  });
}

TEST_F(TransferFleetAccessTest, AModelIsCopiedForThoseWhoMayReadItAndCreateTheCopy) {
  const std::vector<uint64_t> before = Written();
  for (const auto& [end, server] : ends_) {
    SCOPED_TRACE(end);
    for (const char* const token : {kReaderToken, kTrainerToken})
      EXPECT_EQ(Reason(Copy(*server, "spam-a", "spam-b", token)), "PERMISSION_DENIED");
    EXPECT_EQ(Reason(Copy(*server, "other", "spam-b", kKeeperToken)), "PERMISSION_DENIED");
    EXPECT_EQ(Reason(Copy(*server, "spam-a", "other-b", kKeeperToken)), "PERMISSION_DENIED");
    EXPECT_EQ(Reason(Copy(*server, "spam-a", "spam-b", "")), "UNAUTHENTICATED");
  }
  EXPECT_EQ(Written(), before);
  for (const char* const id : {"spam-b", "other-b"}) EXPECT_FALSE(Exists(id));
  for (const auto& [end, server] : ends_) {
    const grpc::Status status = Copy(*server, "spam-a", "spam-from-" + end, kKeeperToken);
    EXPECT_TRUE(status.ok()) << end << ": " << status.error_message();
    EXPECT_TRUE(Exists("spam-from-" + end));
  }
  int copies = 0;
  ExpectPassedOnFor("keeper", "CopyModel", [&] {
    return Copy(*other_, "spam-a", absl::StrCat("spam-", ++copies), kKeeperToken);
  });
  // It is recorded where it was asked for alone.
  std::string records;
  for (const absl::Time end = absl::Now() + kLong;
       !absl::StrContains(records, "models/spam-from-other") && absl::Now() < end;)
    records = ReadAll(other_->audit);
  EXPECT_THAT(records, ::testing::ContainsRegex("\"principal\":\"keeper\"[^\n]*CopyModel"));
  EXPECT_THAT(ReadAll(writer_->audit), ::testing::Not(HasSubstr("models/spam-from-other")));
}

// An import that the other server passes on: all of the file but the end of what is sent.
class PassedOnImportTest : public TransferFleetAccessTest {
 protected:
  PassedOnImportTest() {
    std::string file;
    EXPECT_TRUE(Export(*writer_, "spam-a", kAdminToken, &file).ok());
    call_.SendAll(file);
  }
  void ExpectEndThatLeavesNothing(const std::string& reason) {
    EXPECT_EQ(Reason(call_.AwaitEnd()), reason);
    EXPECT_FALSE(Exists("spam-b"));
    EXPECT_EQ(Written(), before_);
  }

  const std::vector<uint64_t> before_ = Written();
  const std::unique_ptr<v1::HistoryService::Stub> history_ = HistoryOf(*other_);
  ImportCall call_{*history_, "spam-b", "", kKeeperToken};
};

TEST_F(PassedOnImportTest, WhatIsDeniedOfItIsNotTheEndOfTheFile) {
  call_.next().set_new_name("models/other-b");
  call_.Send("");
  ExpectEndThatLeavesNothing("PERMISSION_DENIED");
}

TEST_F(PassedOnImportTest, ItEndsWithTheRightsOfItsCallerAndLeavesNothing) {
  access_.Write(AccessFile::Text());
  other_->member.process.Signal(SIGHUP);
  ExpectEndThatLeavesNothing("UNAUTHENTICATED");
}

}  // namespace
}  // namespace perceptrond::testing
