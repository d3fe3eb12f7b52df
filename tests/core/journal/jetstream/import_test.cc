// A fleet's journal that becomes a copy: no server uses it before it is whole.
#include <memory>
#include <string>

#include "core/journal/jetstream/jetstream_journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fleets.h"
#include "tests/support/journals.h"

namespace perceptrond::import_test {
namespace {

using ::testing::HasSubstr;

class ImportTest : public ::testing::Test {
 protected:
  JetStreamJournal::Options Options() const {
    JetStreamJournal::Options options;
    options.connection.servers = testing::SharedNats(1).urls();
    options.fleet = fleet_;
    options.partitions = 3;
    options.replicas = 1;
    return options;
  }
  absl::StatusOr<std::unique_ptr<JetStreamJournal>> Import(const std::string& history) const {
    JetStreamJournal::Options options = Options();
    options.import = ImportOptions{.id = "id", .history_id = history};
    return JetStreamJournal::Open(options);
  }
  absl::StatusOr<std::unique_ptr<JetStreamJournal>> Read() const {
    JetStreamJournal::Options options = Options();
    options.read_only = true;
    // What the fleet was created with is what counts.
    options.partitions = 16;
    options.replicas = 5;
    return JetStreamJournal::Open(options);
  }
  // Waits until the servers of NATS are there.
  void SetUp() override { testing::OpenFleet(testing::SharedNats(1), testing::NewFleet()); }

  const std::string fleet_ = testing::NewFleet();
};

TEST_F(ImportTest, NobodyOpensACopyBeforeItIsWhole) {
  {
    const auto journal = Import("past");
    ASSERT_OK(journal.status());
    ASSERT_OK((*journal)->BeginImport());
    const uint64_t id = testing::CreateModel(**journal, "a").id();
    ASSERT_OK(testing::CommitOne(**journal, testing::MakeEntry(id, {testing::MakeRecord(1, 2)})));
  }
  const absl::Status refused = JetStreamJournal::Open(Options()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("not whole"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Read().status())) << Read().status();
  {
    // The next attempt goes on with what is there.
    const auto journal = Import("past");
    ASSERT_OK(journal.status());
    ASSERT_OK((*journal)->BeginImport());
    EXPECT_EQ((*journal)->Count().value(), 1U);
    ASSERT_OK((*journal)->FinishImport());
  }
  const auto server = JetStreamJournal::Open(Options());
  ASSERT_OK(server.status());
  EXPECT_EQ((*server)->HistoryId(), "past");
  EXPECT_EQ((*server)->Id(), "id");
  EXPECT_EQ((*server)->LoadCounters((*server)->Find("a")->id())->report().updates(), 2U);
}

TEST_F(ImportTest, EachHasAHistoryOfItsOwnUnlessItKeepsOne) {
  std::vector<std::string> histories;
  for (int i = 0; i < 2; ++i) {
    const auto journal = Import("");
    ASSERT_OK(journal.status());
    ASSERT_OK((*journal)->BeginImport());
    ASSERT_OK((*journal)->FinishImport());
    histories.push_back((*journal)->HistoryId());
  }
  EXPECT_NE(histories[0], "");
  EXPECT_NE(histories[0], histories[1]);
}

// Nightly: it waits twice for as long as a server that ends may take.
TEST_F(ImportTest, DISABLED_AServerThatHasTheFleetOpenPreventsIt) {
  const auto server = JetStreamJournal::Open(Options());
  ASSERT_OK(server.status());
  const auto journal = Import("");
  ASSERT_OK(journal.status());
  const absl::Status refused = (*journal)->BeginImport();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("stop them first"));
  // The server goes on.
  testing::CreateModel(**server, "a");
  const auto reader = Read();
  ASSERT_OK(reader.status());
  EXPECT_TRUE(absl::IsFailedPrecondition((*reader)->ExcludeOthers()));
}

TEST_F(ImportTest, AFleetWithModelsIsNotOverwritten) {
  {
    const auto server = JetStreamJournal::Open(Options());
    ASSERT_OK(server.status());
    testing::CreateModel(**server, "a");
  }
  {
    const auto journal = Import("");
    ASSERT_OK(journal.status());
    const absl::Status refused = (*journal)->BeginImport();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr("has 1 models"));
  }
  EXPECT_OK(JetStreamJournal::Open(Options()).status());
}

TEST_F(ImportTest, AReaderTakesTheFleetAsItIsAndChangesNothing) {
  EXPECT_TRUE(absl::IsNotFound(Read().status())) << Read().status();
  {
    const auto server = JetStreamJournal::Open(Options());
    ASSERT_OK(server.status());
    testing::CreateModel(**server, "a");
    const auto reader = Read();
    ASSERT_OK(reader.status());
    EXPECT_EQ((*reader)->partitions(), 3U);
    storage::ModelHeader header = (*reader)->Find("a").value();
    EXPECT_FALSE((*reader)->Replace(header, header).ok());
    EXPECT_FALSE((*reader)->Delete("a").ok());
    EXPECT_FALSE((*reader)->SaveSnapshot(header.id(), storage::Snapshot()).ok());
    EXPECT_FALSE(testing::CommitOne(**reader, testing::MakeEntry(header.id(), {})).ok());
    header.mutable_model()->set_name("b");
    EXPECT_FALSE((*reader)->Create(header).ok());
    // It sees what is created from now on.
    testing::CreateModel(**server, "c");
    ASSERT_OK((*reader)->Refresh());
    EXPECT_EQ((*reader)->Count().value(), 2U);
  }
  // Once no server is there, a writer that stood still can write nothing any more.
  const auto late = JetStreamJournal::Open(Options());
  ASSERT_OK(late.status());
  const uint64_t id = (*late)->Find("a")->id();
  const uint32_t partition = (*late)->PartitionOf(id);
  ASSERT_OK(
      (*late)->TakeOver(partition, "late", (*late)->LastSequence(partition).value()).status());
  const auto reader = Read();
  ASSERT_OK(reader.status());
  ASSERT_OK(
      (*reader)->TakeOver(partition, "", (*reader)->LastSequence(partition).value()).status());
  const JournalEntry entry = testing::MakeEntry(id, {testing::MakeRecord(1, 1)});
  EXPECT_TRUE((*late)->Commit({&entry, 1}, {})->stale);
}

}  // namespace
}  // namespace perceptrond::import_test
