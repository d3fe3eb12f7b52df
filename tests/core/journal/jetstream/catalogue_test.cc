// The catalogue of a fleet while its connection is replaced, and where a server ends amid a change.
#include "core/journal/jetstream/catalogue.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/journal/jetstream/parts.h"
#include "gtest/gtest.h"
#include "tests/support/fleets.h"
#include "tests/support/journals.h"
#include "tests/support/status.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::jetstream {
namespace {

class CatalogueTest : public ::testing::Test {
 protected:
  std::unique_ptr<Stream> Open(const ConnectionOptions& options) {
    // The server may be starting.
    const absl::Time end = absl::Now() + absl::Seconds(60);
    absl::StatusOr<std::unique_ptr<Stream>> stream = absl::UnavailableError("");
    while (!stream.ok() && absl::Now() < end) {
      absl::StatusOr<std::shared_ptr<Connection>> connection = Connection::Open(options);
      if (connection.ok())
        stream =
            Stream::Open(*std::move(connection), {fleet_ + "-catalogue", fleet_ + ".catalogue", 1});
    }
    EXPECT_OK(stream.status());
    return stream.ok() ? *std::move(stream) : nullptr;
  }
  // As one that changes its password.
  void WriteCredentials(const std::string& password) const {
    std::ofstream(credentials_) << "user:" << password << "\n";
  }

  const std::string fleet_ = testing::NewFleet();
  const testing::TempDir directory_;
  const std::string credentials_ = directory_.path() + "/credentials";
};

TEST_F(CatalogueTest,
       AModelWhoseHeaderComesInPartsIsKnownAlsoIfTheConnectionIsReplacedBetweenThem) {
  WriteCredentials("first");
  absl::Notification renewed;
  ConnectionOptions options;
  options.servers = testing::SharedNats(1).urls();
  const std::unique_ptr<Stream> others = Open(options);
  ASSERT_NE(others, nullptr);
  options.credentials_file = credentials_;
  options.on_renewed = [&] {
    if (!renewed.HasBeenNotified()) renewed.Notify();
  };
  const std::unique_ptr<Stream> stream = Open(options);
  ASSERT_NE(stream, nullptr);
  storage::FleetSettings settings;
  settings.set_partitions(1);
  auto catalogue = Catalogue::Open(*stream, settings, false);
  ASSERT_OK(catalogue.status());
  storage::CatalogueEntry entry;
  entry.mutable_model()->set_id(7);
  entry.mutable_model()->mutable_model()->set_name("models/large");
  entry.mutable_model()->mutable_model()->set_description(std::string(1000, 'x'));
  std::vector<NewMessage> parts;
  AddInParts(fleet_ + ".catalogue.m.7", entry.SerializeAsString(), 600, parts);
  ASSERT_EQ(parts.size(), 2U);
  ASSERT_OK(others->Append({&parts[0], 1}, std::nullopt, absl::Seconds(5)).status());
  // It has read the first.
  ASSERT_OK((*catalogue)->Refresh());
  WriteCredentials("second, which is longer");
  renewed.WaitForNotification();
  ASSERT_OK(others->Append({&parts[1], 1}, std::nullopt, absl::Seconds(5)).status());
  EXPECT_OK((*catalogue)->Find("models/large").status());
}

TEST_F(CatalogueTest, AliasesFollowARenamedModelAlsoIfItsServerEndsBeforeTheyHaveEntries) {
  ConnectionOptions options;
  options.servers = testing::SharedNats(1).urls();
  const std::unique_ptr<Stream> stream = Open(options);
  ASSERT_NE(stream, nullptr);
  storage::FleetSettings settings;
  settings.set_partitions(1);
  const auto open = [&] {
    auto catalogue = Catalogue::Open(*stream, settings, false);
    EXPECT_OK(catalogue.status());
    return *std::move(catalogue);
  };
  const std::unique_ptr<Catalogue> catalogue = open();
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/a");
  ASSERT_OK(catalogue->Create(header, {}));
  ASSERT_OK(catalogue->PutAlias(testing::MakeAlias("aliases/x", "models/a", "1"), ""));
  // The first step of Rename.
  storage::CatalogueEntry entry;
  header.mutable_model()->set_name("models/b");
  *entry.mutable_model() = header;
  entry.set_deleted_id(header.id());
  entry.set_deleted_name("models/a");
  const NewMessage message{absl::StrCat(fleet_, ".catalogue.m.", header.id()),
                           entry.SerializeAsString(), ""};
  ASSERT_OK(stream->Append({&message, 1}, std::nullopt, absl::Seconds(5)).status());
  // It is not lost with that entry.
  for (const char* description : {"one", "two"}) {
    const storage::ModelHeader before = header;
    header.mutable_model()->set_description(description);
    ASSERT_OK(open()->Replace(header, before));
    EXPECT_EQ(open()->aliases().ModelOf("aliases/x"), "models/b");
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(catalogue->Delete("models/b", {}).status()));
  // Once it has an entry of its own, older headers go.
  ASSERT_OK(catalogue->PutAlias(testing::MakeAlias("aliases/x", "models/b", "2"), "1"));
  const storage::ModelHeader before = header;
  header.mutable_model()->set_name("models/c");
  ASSERT_OK(catalogue->Rename(header, before));
  const storage::ModelHeader renamed = header;
  header.mutable_model()->set_description("three");
  ASSERT_OK(catalogue->Replace(header, renamed));
  EXPECT_EQ(open()->aliases().ModelOf("aliases/x"), "models/c");
  const auto reader = stream->Read(message.subject, 0);
  ASSERT_OK(reader.status());
  const auto only = (*reader)->Next(absl::Seconds(5));
  ASSERT_OK(only.status());
  ASSERT_TRUE(only->has_value());
  EXPECT_EQ((*only)->pending, 0U);
}

}  // namespace
}  // namespace perceptrond::jetstream
