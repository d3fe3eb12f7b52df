// A model that was away comes back as it was, to the bit: weights, counters, producers' positions
// and the passes they are in, from wherever it was dropped.
#include <google/protobuf/util/message_differencer.h>

#include "core/journal/rocksdb_journal.h"
#include "gtest/gtest.h"
#include "tests/support/recording_journal.h"
#include "tests/support/temp_dir.h"
#include "tests/support/traffic.h"

namespace perceptrond::recovery_test {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::JournalDecorator;
using testing::Message;
using testing::RecordingJournal;
using testing::Sent;
using testing::Space;
using testing::StateBytes;

struct Case {
  Space space;
  bool snapshots;
  bool rocksdb;
};

void PrintTo(const Case& c, std::ostream* out) { *out << testing::SpaceName(c.space); }

class Recovery : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr char kName[] = "model";

  Recovery() { Reopen(); }

  // Drops everything in memory.
  void Reopen() {
    store_.reset();
    if (GetParam().rocksdb || journal_ == nullptr) {
      journal_.reset();
      journal_ = std::make_shared<RecordingJournal>(OpenHome());
    }
    Store::Options options;
    options.snapshot_bytes = GetParam().snapshots ? 1 : uint64_t{1} << 40;
    store_ = std::make_unique<Store>(std::make_unique<JournalDecorator>(journal_), options);
  }

  std::shared_ptr<Journal> OpenHome() {
    if (!GetParam().rocksdb) return std::make_shared<MemoryJournal>();
    RocksDbJournal::Options options;
    options.directory = directory_.path();
    return RocksDbJournal::Open(options).value();
  }

  static void ExpectSameBooks(const ConvergenceReport& report, const ConvergenceReport& expected) {
    EXPECT_TRUE(MessageDifferencer::Equals(WithoutWindows(report), WithoutWindows(expected)))
        << report.ShortDebugString() << "\n"
        << expected.ShortDebugString();
  }

  // Of the window a loaded model may lack the oldest hundred, and the drift's begins anew.
  static ConvergenceReport WithoutWindows(ConvergenceReport report) {
    report.clear_window_examples();
    report.clear_window_error();
    report.clear_window_risk();
    report.mutable_drift()->clear_window_examples();
    report.mutable_drift()->clear_window_error();
    return report;
  }

  const testing::TempDir directory_;
  std::shared_ptr<RecordingJournal> journal_;
  std::unique_ptr<Store> store_;
};

// The same traffic to a store that is dropped again and again and to a model that never is.
TEST_P(Recovery, IsExactWhereverTheStoreIsDropped) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const Space space = GetParam().space;
    testing::TrafficOptions traffic;
    traffic.space = space;
    traffic.messages = 160;
    traffic.producers = 3;
    const std::string name = absl::StrCat(kName, seed);
    const auto settings = testing::SpaceSettings(space, name, traffic.dimension);
    ASSERT_OK(store_->Create(settings, "", false).status());
    MemoryJournal unused;
    const std::shared_ptr<Model> twin = testing::MakeModel(unused, settings);
    std::mt19937 random(seed);
    for (const Message& message : MakeTraffic(seed, traffic)) {
      const Sent sent = SendMessage(*store_, name, space, message);
      ASSERT_OK(sent.status);
      const testing::SpaceBatch batch(space, message.examples);
      LearnCall call;
      call.batch = batch.batch();
      const std::shared_ptr<Producer> producer =
          twin->ledger().FindProducer(message.producer).value();
      call.producer = producer.get();
      call.completed_pass = message.completed_pass;
      LearnOutcome expected;
      ASSERT_OK(twin->Learn(call, expected));
      ASSERT_EQ(sent.outcome.next_offset, expected.next_offset);
      ASSERT_EQ(sent.outcome.update_revisions, expected.update_revisions);
      ASSERT_EQ(sent.outcome.row_errors.size(), expected.row_errors.size());
      ASSERT_EQ(sent.outcome.pass.has_value(), expected.pass.has_value());
      if (expected.pass.has_value()) {
        // Also of passes that went on while the model was away.
        ASSERT_TRUE(MessageDifferencer::Equals((*sent.outcome.pass), (*expected.pass)))
            << (*sent.outcome.pass).ShortDebugString() << "\n"
            << (*expected.pass).ShortDebugString();
      }
      if (random() % 10 != 0) continue;
      Reopen();
      const std::shared_ptr<Model> model = store_->Acquire(name).value();
      ASSERT_EQ(StateBytes(*model), StateBytes(*twin));
      ExpectSameBooks(MakeReport(*model), MakeReport(*twin));
      ASSERT_TRUE(
          MessageDifferencer::Equals(model->ledger().counters(), twin->ledger().counters()));
      for (int i = 0; i < traffic.producers; ++i) {
        const std::string id = absl::StrCat("producer-", i);
        const auto one = model->ledger().FindProducer(id).value();
        const auto other = twin->ledger().FindProducer(id).value();
        ASSERT_EQ(testing::PositionOf(*one).next_offset, testing::PositionOf(*other).next_offset);
        ASSERT_EQ(testing::PositionOf(*one).passes, testing::PositionOf(*other).passes);
      }
    }
    EXPECT_GT(twin->revision(), 100U);
    // On disk the count begins anew with each opening.
    if (GetParam().snapshots && !GetParam().rocksdb) journal_->AwaitSnapshots(1);
  }
}

TEST_P(Recovery, AReportWithoutLoadingIsThatOfTheLastCommit) {
  testing::TrafficOptions traffic;
  traffic.space = GetParam().space;
  ASSERT_OK(
      store_->Create(testing::SpaceSettings(traffic.space, kName, traffic.dimension), "", false)
          .status());
  for (const Message& message : MakeTraffic(9, traffic))
    ASSERT_OK(SendMessage(*store_, kName, traffic.space, message).status);
  const ConvergenceReport report = MakeReport(**store_->Acquire(kName));
  Reopen();
  const std::vector<ModelSummary> page = store_->List("", 10).value().models;
  ASSERT_EQ(page.size(), 1U);
  EXPECT_FALSE(page[0].in_memory);
  EXPECT_EQ(page[0].revision, report.updates());
  // What is stored is as it was; what takes the weights is absent.
  ConvergenceReport stored = report;
  for (const char* figure :
       {"weight_norm", "separate_prediction_weights", "margin_ceiling", "margin_floor",
        "bound_in_use", "update_bound", "not_separable", "error_ceiling"})
    stored.GetReflection()->ClearField(&stored, stored.GetDescriptor()->FindFieldByName(figure));
  EXPECT_TRUE(MessageDifferencer::Equals(WithoutWindows(page[0].report), WithoutWindows(stored)))
      << page[0].report.ShortDebugString() << "\n"
      << stored.ShortDebugString();
  EXPECT_EQ(store_->stats().loads, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Spaces, Recovery,
    ::testing::Values(Case{Space::kDense, false, false}, Case{Space::kDense, true, false},
                      Case{Space::kHashed, false, false}, Case{Space::kHashed, true, false},
                      Case{Space::kNamed, false, false}, Case{Space::kNamed, true, false},
                      Case{Space::kDense, true, true}, Case{Space::kHashed, false, true},
                      Case{Space::kNamed, true, true}),
    [](const auto& info) {
      return testing::SpaceName(info.param.space) + (info.param.snapshots ? "Snapshots" : "") +
             (info.param.rocksdb ? "RocksDb" : "");
    });

// A record whose replay does not come out as it was written is not taken.
class Contradiction : public ::testing::Test {
 protected:
  // Learns something, then lets `change` have at the journal's records, and loads again.
  absl::Status Reload(const std::function<void(std::vector<storage::UpdateRecord>&)>& change) {
    MemoryJournal journal;
    const auto settings = testing::DenseSettings("model", 2);
    const std::shared_ptr<Model> model = testing::MakeModel(journal, settings);
    Producer producer("");
    LearnCall call;
    const testing::Columns columns =
        testing::Columns().AddDense({1, 2}, 1).AddDense({2, 1}, -1).AddDense({3, 1}, 1);
    call.batch = columns.batch();
    call.producer = &producer;
    LearnOutcome outcome;
    EXPECT_OK(model->Learn(call, outcome));
    EXPECT_EQ(outcome.revision, 3U);
    JournalEntry entry = model->ledger().TakePending();
    entry.model_id = model->id();
    change(entry.records);
    EXPECT_OK(journal.Commit({&entry, 1}, {}).status());
    return Model::Load(journal.Find("model").value(), journal, Model::Limits()).status();
  }
};

TEST_F(Contradiction, AnUntouchedRecordIsTaken) {
  EXPECT_OK(Reload([](auto&) {}));
}
TEST_F(Contradiction, AMissingRecordIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(Reload([](auto& records) { records.clear(); })));
}
TEST_F(Contradiction, AnotherLabelIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(Reload([](auto& records) { records[0].set_labels(1, 1); })));
}
TEST_F(Contradiction, AnotherValueIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(Reload([](auto& records) { records[0].set_values(5, 3.5F); })));
}
TEST_F(Contradiction, AnotherNormIsDataLoss) {
  EXPECT_TRUE(
      absl::IsDataLoss(Reload([](auto& records) { records[0].set_squared_norm(14.000001); })));
}
TEST_F(Contradiction, ARecordThatBeginsTooLateIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(Reload([](auto& records) { records[0].set_first_revision(2); })));
}
TEST_F(Contradiction, ColumnsThatDoNotFitAreDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(Reload([](auto& records) { records[0].mutable_labels()->Add(1); })));
}
TEST_F(Contradiction, ARowOutsideTheModelIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(Reload([](auto& records) {
    records[0].set_dense_width(3);  // three values a row: the model has two weights
    records[0].mutable_labels()->RemoveLast();
  })));
}

}  // namespace
}  // namespace perceptrond::recovery_test
