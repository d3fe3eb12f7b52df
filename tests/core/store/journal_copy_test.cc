// Copies of journals: equal to the bit, whole or refused, and continued after an interruption.
#include "core/store/journal_copy.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/store/model_history.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/faulty_journal.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/journals.h"
#include "tests/support/learners.h"
#include "tests/support/temp_dir.h"
#include "tests/support/traffic.h"

namespace perceptrond::journal_copy_test {
namespace {

using testing::Message;
using testing::Space;
using testing::StateBytes;
namespace v1 = ::perceptron::v1;

constexpr char kKept[] = "models/Named-perceptron";
const char* const kLearners[] = {"perceptron", "arow", "voted-perceptron"};
const ImportOptions kImport{.id = "of-the-source"};

class JournalCopyTest : public ::testing::Test {
 protected:
  // Models with weights, and with rows, in each space, and one that learned nothing.
  JournalCopyTest() {
    Store store(std::make_unique<testing::JournalDecorator>(source_), Store::Options());
    for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed}) {
      testing::TrafficOptions traffic;
      traffic.space = space;
      traffic.producers = 3;
      for (const char* const learner : kLearners) {
        const std::string name = absl::StrCat("models/", testing::SpaceName(space), "-", learner);
        v1::Model settings = testing::SpaceSettings(space, name, traffic.dimension);
        testing::SetLearner(*settings.mutable_learner(), learner);
        settings.mutable_stored_examples()->set_max_sample(20);
        EXPECT_OK(store.Create(settings, "", false).status());
        for (const Message& message : MakeTraffic(7, traffic))
          EXPECT_OK(SendMessage(store, name, space, message).status);
      }
    }
    EXPECT_OK(store.Create(testing::DenseSettings("models/new", 3), "request", false).status());
    EXPECT_OK(testing::FreezeIn(store, "models/Dense-perceptron"));
    EXPECT_OK(ModelHistory(store).Keep(kKept, "k").status());
    EXPECT_OK(testing::PointAlias(store.catalogue(), "aliases/x", kKept));
    // Mistakes, after what is kept.
    for (const int label : {1, -1, 1}) {
      const testing::NamedColumns row({{{{"f1", 1000}}, label}});
      EXPECT_OK(testing::Send(store, kKept, "another", row.batch()).status);
    }
  }
  std::string directory() const { return dir_.path() + "/copy"; }
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> Open(bool import) const {
    RocksDbJournal::Options options;
    options.directory = directory();
    if (import) options.import = kImport;
    return RocksDbJournal::Open(options);
  }
  static std::vector<std::string> Positions(Journal& journal, const std::string& name) {
    std::vector<std::string> positions;
    const auto state = journal.LoadCommittedState(journal.Find(name)->id());
    for (const storage::ProducerPosition& position : state->positions)
      positions.push_back(position.SerializeAsString());
    std::sort(positions.begin(), positions.end());
    return positions;
  }
  static std::vector<EpochBegin> Epochs(Journal& journal, const std::string& name) {
    return journal.LoadCommittedState(journal.Find(name)->id())->epochs;
  }
  uint64_t Models() const { return source_->Count().value(); }

  const testing::TempDir dir_;
  const std::shared_ptr<MemoryJournal> source_ = std::make_shared<MemoryJournal>();
};

TEST_F(JournalCopyTest, HasEachModelToTheBitItsHistoryItsAliasesAndItsKeptSnapshots) {
  JournalCopy copy(nullptr);
  {
    const auto journal = Open(true);
    ASSERT_OK(journal.status());
    ASSERT_OK(copy.Run(*source_, **journal));
  }
  EXPECT_EQ(copy.statistics().models, Models());
  EXPECT_EQ(copy.statistics().copied_before, 0U);
  {
    const auto journal = Open(true);
    ASSERT_OK(journal.status());
    EXPECT_OK(copy.Verify(**journal));
    ASSERT_OK((*journal)->FinishImport());
  }
  auto journal = Open(false);
  ASSERT_OK(journal.status());
  EXPECT_EQ((*journal)->Id(), kImport.id);
  const storage::ModelHeader before = source_->Find("models/Dense-perceptron").value();
  storage::ModelHeader after = (*journal)->Find("models/Dense-perceptron").value();
  EXPECT_EQ(after.model().state(), v1::MODEL_STATE_FROZEN);
  after.set_id(before.id());
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
  EXPECT_EQ((*journal)->Find("models/new")->request_id(), "request");
  EXPECT_EQ((*journal)->aliases().size(), 1U);
  EXPECT_EQ((*journal)->aliases().ModelOf("aliases/x").value(), kKept);
  std::map<std::string, std::vector<std::string>> positions;
  const auto headers = (*journal)->List("", Models());
  ASSERT_OK(headers.status());
  for (const storage::ModelHeader& header : *headers)
    positions[header.model().name()] = Positions(**journal, header.model().name());
  EXPECT_EQ(Epochs(*source_, kKept).size(), 1U);
  EXPECT_EQ(Epochs(**journal, kKept), Epochs(*source_, kKept));
  // By the means of a server, not of the copy.
  Store one(std::make_unique<testing::JournalDecorator>(source_), Store::Options());
  Store other(*std::move(journal), Store::Options());
  for (const char* const learner : kLearners) {
    const std::string name = absl::StrCat("models/Named-", learner);
    const auto there = one.Acquire(name);
    const auto here = other.Acquire(name);
    ASSERT_OK(here.status());
    EXPECT_GT((*here)->revision(), 0U) << name;
    EXPECT_EQ(StateBytes(**here), StateBytes(**there)) << name;
    EXPECT_EQ((*here)->ledger().examples(), (*there)->ledger().examples()) << name;
    EXPECT_EQ(positions.at(name), Positions(*source_, name)) << name;
  }
  for (Store* store : {&one, &other})
    ASSERT_OK(ModelHistory(*store).RollBack(kKept, {"k"}, std::nullopt));
  EXPECT_EQ(StateBytes(**other.Acquire(kKept)), StateBytes(**one.Acquire(kKept)));
}

TEST_F(JournalCopyTest, ThatWasInterruptedIsOpenedByNoServerAndGoesOn) {
  constexpr int kLoads = 5;
  {
    const auto journal = Open(true);
    ASSERT_OK(journal.status());
    using Call = testing::FaultyJournal::Call;
    using Fate = testing::FaultyJournal::Fate;
    testing::FaultyJournal source(source_, [](Call call, uint64_t number) {
      return call == Call::kLoadCommittedState && number > kLoads ? Fate::kFails : Fate::kWorks;
    });
    JournalCopy copy(nullptr);
    const absl::Status status = copy.Run(source, **journal);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "models/")) << status;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Open(false).status())) << Open(false).status();
  // The source goes on meanwhile.
  const std::string deleted = source_->List("", 1)->front().model().name();
  ASSERT_NE(deleted, kKept);
  ASSERT_OK(source_->Delete(deleted));
  const auto journal = Open(true);
  ASSERT_OK(journal.status());
  const storage::ModelHeader changed = (*journal)->List(deleted, 1)->front();
  ASSERT_OK(
      (*journal)->PutAlias(testing::MakeAlias("aliases/old", changed.model().name(), "1"), ""));
  JournalEntry entry;
  entry.model_id = changed.id();
  entry.counters.mutable_report()->set_examples(1);
  ASSERT_OK((*journal)->Commit({&entry, 1}, {}).status());
  JournalCopy copy(nullptr);
  ASSERT_OK(copy.Run(*source_, **journal));
  EXPECT_OK(copy.Verify(**journal));
  EXPECT_EQ(copy.statistics().models, Models());
  EXPECT_EQ((*journal)->Count().value(), Models());
  EXPECT_EQ((*journal)->aliases().size(), 1U);
  // One was deleted, and one changed.
  EXPECT_EQ(copy.statistics().copied_before, kLoads - 2U);
}

TEST_F(JournalCopyTest, ThatIsNotWhatWasReadIsFound) {
  const auto journal = Open(true);
  ASSERT_OK(journal.status());
  JournalCopy copy(nullptr);
  ASSERT_OK(copy.Run(*source_, **journal));
  ASSERT_OK(copy.Verify(**journal));
  const auto header = (*journal)->Find("models/Named-arow");
  JournalEntry entry;
  entry.model_id = header->id();
  entry.counters = (*journal)->LoadCounters(header->id()).value();
  entry.counters.mutable_report()->set_examples(entry.counters.report().examples() + 1);
  ASSERT_OK((*journal)->Commit({&entry, 1}, {}).status());
  const absl::Status differs = copy.Verify(**journal);
  EXPECT_TRUE(absl::IsDataLoss(differs)) << differs;
  EXPECT_TRUE(absl::StrContains(differs.message(), "models/Named-arow")) << differs;
  ASSERT_OK((*journal)->Delete("models/Named-arow"));
  EXPECT_TRUE(absl::IsDataLoss(copy.Verify(**journal)));
}

TEST_F(JournalCopyTest, IsMadeOfNoDamagedModelAndInNoJournalThatHasModels) {
  const storage::ModelHeader header = source_->Find("models/Dense-perceptron").value();
  JournalEntry entry;
  entry.model_id = header.id();
  entry.counters = source_->LoadCounters(header.id()).value();
  entry.counters.mutable_report()->set_updates(entry.counters.report().updates() + 1);
  ASSERT_OK(source_->Commit({&entry, 1}, {}).status());
  JournalCopy copy(nullptr);
  {
    const auto journal = Open(true);
    const absl::Status status = copy.Run(*source_, **journal);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), header.model().name())) << status;
  }
  RocksDbJournal::Options options;
  options.directory = dir_.path() + "/other";
  {
    const auto other = RocksDbJournal::Open(options);
    storage::ModelHeader own;
    own.mutable_model()->set_name("models/own");
    ASSERT_OK((*other)->Create(own));
  }
  options.import = kImport;
  const auto other = RocksDbJournal::Open(options);
  ASSERT_OK(other.status());
  JournalCopy refused(nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.Run(*source_, **other)));
  EXPECT_EQ((*other)->Count().value(), 1U);
}

}  // namespace
}  // namespace perceptrond::journal_copy_test
