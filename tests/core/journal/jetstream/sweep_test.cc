// What deletions that failed have left in a fleet's streams is deleted by the writer, and nothing else is.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/journal/jetstream/catalogue.h"
#include "core/journal/jetstream/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fleets.h"
#include "tests/support/journals.h"

namespace perceptrond {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() {
    journal_ = testing::OpenFleet(testing::SharedNats(1), fleet_);
    // Of each partition.
    for (uint32_t i = 0; i < journal_->partitions(); ++i) TakeOver(*journal_, i);
    jetstream::ConnectionOptions options;
    options.servers = testing::SharedNats(1).urls();
    auto connection = jetstream::Connection::Open(options);
    EXPECT_OK(connection.status());
    connection_ = *std::move(connection);
  }

  static void TakeOver(Journal& journal, uint32_t partition) {
    EXPECT_OK(
        journal.TakeOver(partition, "here", journal.LastSequence(partition).value()).status());
  }
  std::unique_ptr<jetstream::Stream> Open(const std::string& name) const {
    auto stream = jetstream::Stream::Open(connection_, {.name = absl::StrCat(fleet_, "-", name),
                                                        .subject = absl::StrCat(fleet_, ".", name),
                                                        .replicas = 1});
    EXPECT_OK(stream.status());
    return *std::move(stream);
  }
  // A model with an entry, a snapshot, and two that are kept, of which the header lists the first.
  storage::ModelHeader CreateWhole(const std::string& name) {
    const storage::ModelHeader before = testing::CreateModel(*journal_, name);
    storage::ModelHeader header = before;
    EXPECT_OK(testing::CommitOne(*journal_, EntryOf(header.id(), 1)));
    EXPECT_OK(journal_->SaveSnapshot(header.id(), testing::MakeState(1, 1)));
    EXPECT_OK(testing::CommitOne(*journal_, EntryOf(header.id(), 2)));
    Keep(header, 1, true);
    Keep(header, 2, false);
    header.set_last_kept_number(2);
    EXPECT_OK(journal_->Replace(header, before));
    return header;
  }
  static JournalEntry EntryOf(uint64_t id, uint64_t revision) {
    return testing::MakeEntry(id, {testing::MakeRecord(revision, 1)});
  }
  void Keep(storage::ModelHeader& header, uint64_t number, bool is_listed) {
    storage::KeptSnapshot kept;
    kept.set_number(number);
    EXPECT_OK(journal_->SaveKept(header.id(), testing::MakeState(number, 2), kept));
    if (is_listed) *header.add_kept_snapshots() = kept;
  }
  // As a server that ends before it has deleted what the model has.
  void DeleteFromCatalogueAlone(const std::string& name) {
    const std::unique_ptr<jetstream::Stream> stream = Open("catalogue");
    storage::FleetSettings settings;
    settings.set_partitions(journal_->partitions());
    const auto catalogue = jetstream::Catalogue::Open(*stream, settings, false);
    ASSERT_OK(catalogue.status());
    ASSERT_OK((*catalogue)->Delete(name, {}).status());
  }
  // The subjects of all streams but the catalogue that have this model's messages.
  std::vector<std::string> SubjectsOf(uint64_t id) const {
    std::vector<std::string> found;
    const std::string partition = absl::StrCat("p", journal_->PartitionOf(id));
    for (const std::string& name : {partition, std::string("snapshots")}) {
      const std::unique_ptr<jetstream::Stream> stream = Open(name);
      const auto subjects = stream->Subjects();
      EXPECT_OK(subjects.status());
      for (const std::string& subject : *subjects) {
        for (const char* form : {".m.$", ".s.$", ".$.", ".kept-$."}) {
          const std::string part = absl::StrReplaceAll(form, {{"$", absl::StrCat(id)}});
          const bool whole =
              part.back() == '.' ? absl::StrContains(subject, part) : absl::EndsWith(subject, part);
          if (whole) found.push_back(subject);
        }
      }
    }
    return found;
  }

  const std::string fleet_ = testing::NewFleet();
  std::unique_ptr<Journal> journal_;
  std::shared_ptr<jetstream::Connection> connection_;
};

TEST_F(SweepTest, EverythingOfADeletedModelIsDeletedAndOtherModelsAreWhole) {
  const storage::ModelHeader deleted = CreateWhole("deleted");
  const storage::ModelHeader other = CreateWhole("other");
  ASSERT_NO_FATAL_FAILURE(DeleteFromCatalogueAlone("deleted"));
  ASSERT_EQ(SubjectsOf(deleted.id()).size(), 5U);
  ASSERT_OK(journal_->Sweep());
  EXPECT_THAT(SubjectsOf(deleted.id()), IsEmpty());
  const auto stored = journal_->Load(other.id());
  ASSERT_OK(stored.status());
  EXPECT_EQ((*stored)->TakeSnapshot()->value().revision(), 1U);
  EXPECT_EQ((*stored)->committed().counters.report().updates(), 2U);
  EXPECT_OK(journal_->LoadKept(other.id(), other.kept_snapshots(0)).status());
}

TEST_F(SweepTest, TheLastCommitOfAModelThatComesAfterItsDeletionIsDeleted) {
  const uint64_t id = testing::CreateModel(*journal_, "a").id();
  ASSERT_OK(journal_->Delete("a"));
  ASSERT_OK(testing::CommitOne(*journal_, EntryOf(id, 1)));
  ASSERT_EQ(SubjectsOf(id).size(), 1U);
  ASSERT_OK(journal_->Sweep());
  EXPECT_THAT(SubjectsOf(id), IsEmpty());
}

TEST_F(SweepTest, PiecesOfAKeptSnapshotThatTheHeaderLacksAreDeletedUnlessItIsBeingSaved) {
  storage::ModelHeader header = CreateWhole("a");
  const std::string prefix = absl::StrCat(fleet_, ".snapshots.kept-", header.id(), ".");
  const std::string epoch = absl::StrCat("-", header.kept_snapshots(0).epoch());
  // The next number.
  Keep(header, 3, false);
  // As a server before epochs were in names.
  const jetstream::NewMessage old{prefix + "1", "x", ""};
  ASSERT_OK(Open("snapshots")->Append({&old, 1}, std::nullopt, absl::Hours(1)).status());
  ASSERT_OK(journal_->Sweep());
  std::vector<std::string> kept = SubjectsOf(header.id());
  std::erase_if(kept,
                [](const std::string& subject) { return !absl::StrContains(subject, "kept"); });
  EXPECT_THAT(kept, UnorderedElementsAre(prefix + "1" + epoch, prefix + "3" + epoch));
}

TEST_F(SweepTest, WhatAModelHasBeforeTheCatalogueKnowsItStays) {
  const storage::ModelHeader other = testing::CreateModel(*journal_, "a");
  // Of the same partition.
  const uint64_t id = other.id() + 100 * journal_->partitions();
  ASSERT_OK(testing::CommitOne(*journal_, EntryOf(id, 1)));
  ASSERT_OK(journal_->Sweep());
  EXPECT_EQ(SubjectsOf(id).size(), 1U);
}

TEST_F(SweepTest, WhatACopyHasLeftWhoseServerEndedIsDeleted) {
  const storage::ModelHeader other = CreateWhole("other");
  const std::unique_ptr<jetstream::Stream> catalogue = Open("catalogue");
  storage::FleetSettings settings;
  settings.set_partitions(journal_->partitions());
  const uint64_t id = jetstream::Catalogue::Open(*catalogue, settings, false)
                          .value()
                          ->ReserveId([](uint64_t /*id*/) { return true; })
                          .value();
  const std::string partition = absl::StrCat("p", journal_->PartitionOf(id));
  const jetstream::NewMessage piece{absl::StrCat(fleet_, ".snapshots.", id, ".1-1"), "x", ""};
  const jetstream::NewMessage head{absl::StrCat(fleet_, ".", partition, ".s.", id), "x", ""};
  ASSERT_OK(Open("snapshots")->Append({&piece, 1}, std::nullopt, absl::Hours(1)).status());
  ASSERT_OK(Open(partition)->Append({&head, 1}, std::nullopt, absl::Hours(1)).status());
  ASSERT_EQ(SubjectsOf(id).size(), 2U);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(journal_->Sweep());
    EXPECT_THAT(SubjectsOf(id), IsEmpty());
  }
  EXPECT_OK(journal_->Load(other.id()).status());
  EXPECT_EQ(journal_->Count().value(), 1U);
}

TEST_F(SweepTest, ACopyWhosePartitionAnotherServerHasTakenOverAndSweptIsRefused) {
  const auto other = testing::OpenFleet(testing::SharedNats(1), fleet_);
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/a");
  // All of it is written but the catalogue's entry.
  const ModelGuard guard = [&](const ModelsNow& /*models*/) {
    EXPECT_EQ(SubjectsOf(header.id()).size(), 2U);
    TakeOver(*other, other->PartitionOf(header.id()));
    EXPECT_OK(other->Sweep());
    return absl::OkStatus();
  };
  const absl::Status refused = journal_->CreateWith(header, testing::MakeState(1, 2), {}, guard);
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(SubjectsOf(header.id()), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(other->Find("models/a").status()));
  ASSERT_OK(other->CreateWith(header, testing::MakeState(1, 2), {}));
  EXPECT_TRUE(other->LoadSnapshot(header.id()).value().has_value());
}

TEST_F(SweepTest, AServerThatDoesNotKnowOfItsSuccessorLeavesTheCopyThatThatMakes) {
  const auto other = testing::OpenFleet(testing::SharedNats(1), fleet_);
  for (uint32_t i = 0; i < other->partitions(); ++i) TakeOver(*other, i);
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/a");
  const ModelGuard guard = [&](const ModelsNow& /*models*/) {
    EXPECT_OK(journal_->Sweep());
    return absl::OkStatus();
  };
  ASSERT_OK(other->CreateWith(header, testing::MakeState(1, 2), {}, guard));
  EXPECT_TRUE(other->LoadSnapshot(header.id()).value().has_value());
}

TEST_F(SweepTest, WhoDoesNotWriteThePartitionDeletesNothing) {
  const storage::ModelHeader header = CreateWhole("a");
  ASSERT_NO_FATAL_FAILURE(DeleteFromCatalogueAlone("a"));
  const auto other = testing::OpenFleet(testing::SharedNats(1), fleet_);
  TakeOver(*other, (journal_->PartitionOf(header.id()) + 1) % journal_->partitions());
  ASSERT_OK(other->Sweep());
  EXPECT_EQ(SubjectsOf(header.id()).size(), 5U);
  TakeOver(*other, journal_->PartitionOf(header.id()));
  ASSERT_OK(other->Sweep());
  EXPECT_THAT(SubjectsOf(header.id()), IsEmpty());
}

}  // namespace
}  // namespace perceptrond
