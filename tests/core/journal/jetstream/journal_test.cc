// The journal of a fleet on real servers.
#include "core/journal/jetstream/jetstream_journal.h"

#include <nats/nats.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/core/journal/history_conformance.h"
#include "tests/core/journal/journal_openers.h"
#include "tests/core/journal/tail_conformance.h"
#include "tests/support/fleets.h"

namespace perceptrond {
namespace {

std::unique_ptr<Journal> OpenOne(const std::string& /*directory*/) {
  std::unique_ptr<Journal> journal =
      testing::OpenFleet(testing::SharedNats(1), testing::NewFleet());
  for (uint32_t i = 0; i < journal->partitions(); ++i)
    EXPECT_OK(journal->TakeOver(i, "here", journal->LastSequence(i).value()).status());
  return journal;
}

INSTANTIATE_TEST_SUITE_P(Homes, JournalConformance,
                         ::testing::Values(Home{"JetStream", OpenOne, true}),
                         [](const auto& info) { return info.param.name; });

TEST(JetStreamJournalTest, AFleetThatHasOtherPartitionsIsRefusedAndGetsNoStreamsForThem) {
  const std::string fleet = testing::NewFleet();
  ASSERT_EQ(testing::OpenFleet(testing::SharedNats(1), fleet)->partitions(), 2U);
  JetStreamJournal::Options options;
  options.connection.servers = testing::SharedNats(1).urls();
  options.fleet = fleet;
  options.partitions = 4;
  options.replicas = 1;
  const absl::Status refused = JetStreamJournal::Open(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("created with 2 partitions and not 4"));
  const auto connection = jetstream::Connection::Open(options.connection);
  ASSERT_OK(connection.status());
  for (int i = 0; i < 4; ++i) {
    const auto stream =
        jetstream::Stream::Open(*connection, {.name = absl::StrCat(fleet, "-p", i),
                                              .subject = absl::StrCat(fleet, ".p", i),
                                              .must_exist = true});
    EXPECT_EQ(stream.status().code(), i < 2 ? absl::StatusCode::kOk : absl::StatusCode::kNotFound);
  }
}

// An operator may deny deletions.
TEST(JetStreamJournalTest, ASnapshotWhoseEntriesCannotBeDeletedSaysSoAndIsWhole) {
  const std::string fleet = testing::NewFleet();
  const auto journal = testing::OpenFleet(testing::SharedNats(1), fleet);
  const uint64_t id = CreateModel(*journal, "a").id();
  const uint32_t partition = journal->PartitionOf(id);
  ASSERT_OK(
      journal->TakeOver(partition, "here", journal->LastSequence(partition).value()).status());
  ASSERT_OK(CommitOne(*journal, MakeEntry(id, {MakeRecord(1, 3)})));
  jetstream::ConnectionOptions options;
  options.servers = testing::SharedNats(1).urls();
  const auto connection = jetstream::Connection::Open(options);
  ASSERT_OK(connection.status());
  const std::shared_ptr<jetstream::Link> link = (*connection)->link();
  jsStreamInfo* info = nullptr;
  ASSERT_EQ(js_GetStreamInfo(&info, link->context, absl::StrCat(fleet, "-p", partition).c_str(),
                             nullptr, nullptr),
            NATS_OK);
  jsStreamConfig config = *info->Config;
  config.DenyDelete = true;
  EXPECT_EQ(js_UpdateStream(nullptr, link->context, &config, nullptr, nullptr), NATS_OK);
  jsStreamInfo_Destroy(info);
  storage::Snapshot snapshot;
  snapshot.set_revision(3);
  EXPECT_TRUE(absl::IsUnavailable(journal->SaveSnapshot(id, snapshot)));
  const auto loaded = journal->LoadSnapshot(id);
  ASSERT_OK(loaded.status());
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ((*loaded)->revision(), 3U);
  EXPECT_EQ(journal->LoadCounters(id)->report().updates(), 3U);
}

std::vector<std::unique_ptr<Journal>> OpenOn(int servers, int openers) {
  std::vector<std::unique_ptr<Journal>> journals;
  const std::string fleet = testing::NewFleet();
  for (int i = 0; i < openers; ++i)
    journals.push_back(testing::OpenFleet(testing::SharedNats(servers), fleet));
  return journals;
}

INSTANTIATE_TEST_SUITE_P(Homes, Openers,
                         ::testing::Values(SharedHome{
                             "JetStream", [](int openers) { return OpenOn(1, openers); }}),
                         [](const auto& info) { return info.param.name; });
// For the nightly run, which has disabled tests alone.
INSTANTIATE_TEST_SUITE_P(DISABLED_Homes, Openers,
                         ::testing::Values(SharedHome{
                             "ThreeServers", [](int openers) { return OpenOn(3, openers); }}),
                         [](const auto& info) { return info.param.name; });

// It does not know of the other's take-over before it asks.
TEST(FleetsJournalTest, AModelThatHasLearnedIsCreatedWhereItsOpenerStillWrites) {
  const std::vector<std::unique_ptr<Journal>> journals = OpenOn(1, 2);
  ASSERT_EQ(journals[0]->partitions(), 2U);
  const auto take_over = [](Journal& journal, uint32_t partition) {
    const auto outcome = journal.TakeOver(partition, "it", journal.LastSequence(partition).value());
    ASSERT_OK(outcome.status());
    ASSERT_FALSE(outcome->stale);
  };
  take_over(*journals[0], 0);
  take_over(*journals[0], 1);
  take_over(*journals[1], 1);
  for (int i = 0; i < 3; ++i) {
    storage::ModelHeader header;
    header.mutable_model()->set_name("models/" + std::to_string(i));
    ASSERT_OK(journals[0]->CreateWith(header, MakeState(1, 2), {}));
    EXPECT_EQ(journals[0]->PartitionOf(header.id()), 0U);
    const auto loaded = journals[1]->Load(header.id());
    ASSERT_OK(loaded.status());
    EXPECT_EQ((*loaded)->TakeSnapshot().value()->revision(), 1U);
  }
  take_over(*journals[1], 0);
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/none");
  EXPECT_TRUE(absl::IsUnavailable(journals[0]->CreateWith(header, MakeState(1, 2), {})));
}

}  // namespace
}  // namespace perceptrond
