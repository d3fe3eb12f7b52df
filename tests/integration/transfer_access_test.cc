// Access that is withdrawn during a transfer: it ends, and leaves no model; what was denied is no part of a file.
#include <csignal>

#include "tests/integration/transfer_fixture.h"

namespace perceptrond::testing {
namespace {

class TransferAccessTest : public Transfers<AccessTest> {
 protected:
  // With an administrator of some models.
  TransferAccessTest() {
    Replace(RulesWithKeeper());
    CreateLarge("spam-a", 4, kAdminToken);
  }
  // Returns once the server has the rules in use.
  void Replace(const std::string& text) {
    const auto reloads = [&] {
      size_t count = 0;
      const std::string log = ReadAll(audit_log());
      for (size_t at = 0; (at = log.find("reload access file", at)) != std::string::npos; ++at)
        ++count;
      return count;
    };
    const size_t before = reloads();
    Write(text);
    server_.Signal(SIGHUP);
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (reloads() == before) ASSERT_LT(absl::Now(), deadline);
  }
};

TEST_F(TransferAccessTest, AnExportOfARemovedPrincipalEnds) {
  const auto history = NarrowHistory();
  ExportCall call(*history, "spam-a", "reader-token");
  ASSERT_TRUE(call.ReadPiece());
  Replace(Text("reader"));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(Reason(status), "UNAUTHENTICATED");
  EXPECT_LT(call.file().size(), Export("spam-a", kAdminToken).size());
}

TEST_F(TransferAccessTest, AnExportOfARemovedPrincipalThatIsNotReadIsCutOff) {
  const auto history = NarrowHistory();
  ExportCall call(*history, "spam-a", "reader-token");
  ASSERT_TRUE(call.ReadPiece());
  Replace(Text("reader"));
  const auto held = [&] {
    const std::string page =
        RunCommand(absl::StrCat("curl -sf -H 'Authorization: Bearer scraper-token' "
                                "http://127.0.0.1:",
                                server_.metrics_port(), "/metrics"))
            .out;
    const size_t at = page.find("\nperceptrond_memory_reserved_bytes{use=\"answers\"} ");
    return at == std::string::npos ? -1 : std::stod(page.substr(page.find(' ', at)));
  };
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (held() != 0) ASSERT_LT(absl::Now(), deadline);
  EXPECT_FALSE(call.Finish().ok());
}

TEST_F(TransferAccessTest, AnImportOfARemovedPrincipalEndsAndLeavesNoModel) {
  const std::string file = Export("spam-a", kAdminToken);
  ImportCall call(*history_, "spam-b", "", kKeeperToken);
  call.SendAll(file);
  Replace(Text());
  EXPECT_EQ(Reason(call.AwaitEnd()), "UNAUTHENTICATED");
  EXPECT_FALSE(Exists("spam-b", kAdminToken));
}

TEST_F(TransferAccessTest, AMessageThatIsDeniedIsNotTheEndOfTheFile) {
  const std::string file = Export("spam-a", kAdminToken);
  {
    ImportCall call(*history_, "spam-b", "", kKeeperToken);
    call.SendAll(file);
    call.next().set_new_name("models/other");
    call.Send("");
    EXPECT_EQ(Reason(call.AwaitEnd()), "PERMISSION_DENIED");
  }
  v1::ImportModelRequest first;
  first.set_new_name("models/spam-b");
  first.set_piece(file.substr(0, 1 << 20));
  std::vector<std::string> messages = {first.SerializeAsString()};
  for (size_t at = 1 << 20; at < file.size(); at += 1 << 20) {
    v1::ImportModelRequest next;
    next.set_piece(file.substr(at, 1 << 20));
    messages.push_back(next.SerializeAsString());
  }
  messages.push_back("\xff");
  EXPECT_EQ(
      Reason(CallRaw("/perceptron.v1.HistoryService/ImportModel", messages, nullptr, kKeeperToken)),
      "MALFORMED_MESSAGE");
  EXPECT_FALSE(Exists("spam-b", kAdminToken));
  // The file itself is good.
  ImportCall call(*history_, "spam-b", "", kKeeperToken);
  call.SendAll(file);
  const grpc::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace
}  // namespace perceptrond::testing
