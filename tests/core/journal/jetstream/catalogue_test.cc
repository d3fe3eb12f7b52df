// The catalogue of a fleet where a server ends amid a change.
#include "core/journal/jetstream/catalogue.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/fleets.h"
#include "tests/support/journals.h"
#include "tests/support/status.h"

namespace perceptrond::jetstream {
namespace {

TEST(CatalogueTest, AliasesFollowARenamedModelAlsoIfItsServerEndsBeforeTheyHaveEntries) {
  const std::string fleet = testing::NewFleet();
  // Waits until the server is there.
  testing::OpenFleet(testing::SharedNats(1), testing::NewFleet());
  ConnectionOptions options;
  options.servers = testing::SharedNats(1).urls();
  const auto connection = Connection::Open(options);
  ASSERT_OK(connection.status());
  const auto opened = Stream::Open(*connection, {fleet + "-catalogue", fleet + ".catalogue", 1});
  ASSERT_OK(opened.status());
  const std::unique_ptr<Stream>& stream = *opened;
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
  const NewMessage message{absl::StrCat(fleet, ".catalogue.m.", header.id()),
                           entry.SerializeAsString(), ""};
  ASSERT_OK(stream->Append({&message, 1}, std::nullopt, absl::Hours(1)).status());
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
  const auto only = (*reader)->Next(absl::Hours(1));
  ASSERT_OK(only.status());
  ASSERT_TRUE(only->has_value());
  EXPECT_EQ((*only)->pending, 0U);
}

}  // namespace
}  // namespace perceptrond::jetstream
