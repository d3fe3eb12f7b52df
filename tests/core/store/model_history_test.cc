// Copies, files, other names and rollbacks of models in a store. replay_test.cc: each gives the same bits, whatever the rule.
#include "core/store/model_history.h"

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/vector/name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/caller.h"
#include "tests/support/model_file.h"
#include "tests/support/status.h"
#include "tests/support/wait_until.h"

namespace perceptrond::model_history_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ModelFileFrame;
using testing::StoreTest;
namespace v1 = ::perceptron::v1;

constexpr char kName[] = "models/a";

class HistoryTest : public StoreTest {
 protected:
  ModelHistory History() { return ModelHistory(*store_); }
  absl::StatusOr<std::string> Export(const std::string& name) {
    const absl::StatusOr<ModelFilePieces> pieces = History().Export(name);
    if (!pieces.ok()) return pieces.status();
    return absl::StrJoin(*pieces, "");
  }
  // Imports the file in pieces of this many bytes.
  absl::Status Import(const std::string& file, const std::string& name, size_t piece = 1 << 20) {
    ModelFileReader reader = History().ReadFile();
    for (size_t at = 0; at < file.size(); at += piece) {
      absl::Status status = reader.Add(absl::string_view(file).substr(at, piece));
      if (!status.ok()) return status;
    }
    return History().Import(std::move(reader), name, "").status();
  }
  std::shared_ptr<Model> Get(const std::string& name) {
    const auto model = store_->Acquire(name);
    EXPECT_OK(model.status());
    return model.value();
  }
  void LearnRow(const std::string& name, const testing::Columns& columns) {
    EXPECT_OK(testing::Send(*store_, name, "p", columns.batch()).status);
  }
};

TEST_F(HistoryTest, ARollbackUndoesAWeightReplacementForTheTheorem) {
  Create(kName);
  LearnRow(kName, testing::Columns().AddDense({1, 2}, 1));
  const double ceiling = store_->Get(kName)->report.margin_ceiling();
  ASSERT_OK(History().Keep(kName, "k").status());
  NewWeights weights;
  weights.vectors.push_back({{0}, {9}, 0});
  ASSERT_OK(Get(kName)->ReplaceWeights(weights, std::nullopt).status());
  ASSERT_OK(store_->committer().Commit(Get(kName)));
  EXPECT_FALSE(store_->Get(kName)->report.has_bound_in_use());
  EXPECT_EQ(store_->Get(kName)->report.margin_ceiling(), ceiling);
  ASSERT_OK(History().RollBack(kName, {"k"}, std::nullopt));
  EXPECT_TRUE(store_->Get(kName)->report.has_bound_in_use());
  EXPECT_EQ(store_->Get(kName)->report.margin_ceiling(), ceiling);
  EXPECT_EQ(store_->Get(kName)->report.updates(), 3U);
}

TEST_F(HistoryTest, AfterARollbackClaimsToWhatItsJournalLostAreNotBelieved) {
  const auto start_again = [&] {
    store_.reset();
    store_ = std::make_unique<Store>(static_cast<MemoryJournal&>(*journal_).OpenAgain(),
                                     Store::Options());
  };
  Create(kName);
  LearnRow(kName, row_);
  ASSERT_OK(History().Keep(kName, "k").status());
  // An update that is acknowledged, and of which the journal knows nothing.
  const EpochBegin lost{Get(kName)->core().epoch, Get(kName)->revision() + 1};
  const auto has = [&](const EpochBegin& claim) {
    return Get(kName)->ledger().HasState(claim.epoch, claim.revision, Get(kName)->revision());
  };
  start_again();
  EXPECT_FALSE(has(lost));
  ASSERT_OK(History().RollBack(kName, {"k"}, std::nullopt));
  EXPECT_EQ(Get(kName)->revision(), lost.revision);
  EXPECT_FALSE(has(lost));
  EXPECT_TRUE(has({Get(kName)->core().epoch, lost.revision}));
  start_again();
  EXPECT_FALSE(has(lost));
}

// A proof is kept unless the updates since the snapshot counted less or had other inputs.
TEST(RollBackCounters, KeepWhatStaysTrueOfTheData) {
  storage::Counters kept;
  kept.mutable_report()->set_updates(5);
  kept.set_margin_ceiling(2);
  kept.set_analysis_ceiling(0.5);
  storage::Counters now = kept;
  now.mutable_report()->set_updates(9);
  now.set_margin_ceiling(1);
  now.set_not_separable(true);
  now.set_analysis_ceiling(0.1);
  now.set_analysis_not_separable(true);
  EXPECT_EQ(RollBackCounters(now, kept).margin_ceiling(), 1);
  EXPECT_TRUE(RollBackCounters(now, kept).not_separable());
  EXPECT_TRUE(RollBackCounters(now, kept).analysis_not_separable());
  storage::Counters weighted = now;
  weighted.set_weighted_updates(1);
  weighted = RollBackCounters(weighted, kept);
  EXPECT_EQ(weighted.margin_ceiling(), 2);
  EXPECT_FALSE(weighted.not_separable());
  EXPECT_EQ(weighted.report().updates(), 10U);
  EXPECT_EQ(weighted.undone_updates(), 5U);
  now.set_inputs_changed_at(5);
  now = RollBackCounters(now, kept);
  EXPECT_FALSE(now.analysis_not_separable());
  EXPECT_EQ(now.analysis_ceiling(), 0.5);
  EXPECT_EQ(now.inputs_changed_at(), 10U);
}

TEST_F(HistoryTest, ARollbackIsRefusedWhereItWouldSurprise) {
  Create(kName);
  LearnRow(kName, row_);
  EXPECT_EQ(testing::ReasonOf(History().RollBack(kName, {"k"}, std::nullopt)),
            "SNAPSHOT_NOT_FOUND");
  ASSERT_OK(History().Keep(kName, "k").status());
  EXPECT_EQ(testing::ReasonOf(History().Keep(kName, "k").status()), "SNAPSHOT_EXISTS");
  EXPECT_EQ(testing::ReasonOf(History().RollBack(kName, {"k"}, 7)), "REVISION_MISMATCH");
  ASSERT_OK(testing::FreezeIn(*store_, kName));
  EXPECT_EQ(testing::ReasonOf(History().RollBack(kName, {"k"}, std::nullopt)), "MODEL_FROZEN");
  EXPECT_EQ(Get(kName)->revision(), 1U);
  EXPECT_EQ(testing::ReasonOf(History().Keep("models/none", "k").status()), "MODEL_NOT_FOUND");
}

TEST_F(HistoryTest, KeptSnapshotsAreLimitedAndListedByAge) {
  Create(kName);
  for (int i = 0; i < ModelHistory::kMostKept; ++i)
    ASSERT_OK(History().Keep(kName, absl::StrCat("k", i)).status());
  EXPECT_EQ(testing::ReasonOf(History().Keep(kName, "more").status()), "SNAPSHOT_LIMIT");
  ASSERT_OK(History().Delete(kName, "k0"));
  EXPECT_EQ(testing::ReasonOf(History().Delete(kName, "k0")), "SNAPSHOT_NOT_FOUND");
  ASSERT_OK(History().Keep(kName, "more").status());
  const auto all = History().List(kName);
  ASSERT_OK(all.status());
  ASSERT_EQ(all->size(), static_cast<size_t>(ModelHistory::kMostKept));
  EXPECT_EQ(all->front().id(), "k1");
  EXPECT_EQ(all->back().id(), "more");
}

TEST_F(HistoryTest, ACopyIsAModelOfItsOwnWithoutSnapshotsAndIsMadeOnce) {
  Create(kName);
  LearnRow(kName, row_);
  ASSERT_OK(History().Keep(kName, "k").status());
  const auto copy = History().Copy(kName, "models/b", "request");
  ASSERT_OK(copy.status());
  EXPECT_NE(copy->uid(), Get(kName)->uid());
  EXPECT_TRUE(History().List("models/b")->empty());
  LearnRow("models/b", testing::Columns().AddDense({-5, 1}, 1));
  EXPECT_EQ(Get("models/b")->revision(), 2U);
  EXPECT_EQ(Get(kName)->revision(), 1U);
  // A repeated request is answered with the model that it made.
  EXPECT_OK(History().Copy(kName, "models/b", "request").status());
  EXPECT_EQ(testing::ReasonOf(History().Copy(kName, "models/b", "another").status()),
            "MODEL_EXISTS");
}

TEST_F(HistoryTest, AFileThatWasCutOrChangedIsRefused) {
  Create(kName);
  LearnRow(kName, row_);
  const std::string file = Export(kName).value();
  size_t piece = 1;
  const auto refusal = [&](const std::string& bytes) {
    piece = piece % 7 + 1;
    return testing::ReasonOf(Import(bytes, "models/b", piece));
  };
  for (size_t size = 0; size < file.size(); ++size)
    ASSERT_EQ(refusal(file.substr(0, size)), "BAD_MODEL_FILE") << size;
  for (size_t i = 0; i < file.size(); ++i) {
    std::string changed = file;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    ASSERT_EQ(refusal(changed), "BAD_MODEL_FILE") << i;
  }
  EXPECT_EQ(refusal(file + "x"), "BAD_MODEL_FILE");
  EXPECT_EQ(refusal(file), "");
  EXPECT_EQ(refusal(file), "MODEL_EXISTS");
  EXPECT_EQ(testing::StateBytes(*Get("models/b")), testing::StateBytes(*Get(kName)));
}

// Anyone can make a checksum.
TEST_F(HistoryTest, AFileWithTheRightChecksumIsReadAsOneOfAStranger) {
  Create(kName);
  LearnRow(kName, row_);
  const std::vector<ModelFileFrame> whole = testing::FramesOf(Export(kName).value());
  ASSERT_EQ(whole.size(), 4U);
  EXPECT_EQ(testing::ModelFileOf(whole),
            testing::ModelFileOf(testing::FramesOf(testing::ModelFileOf(whole))));
  using Change = std::function<void(ModelFileFrame & head, ModelFileFrame & counters,
                                    ModelFileFrame & position, ModelFileFrame & state)>;
  const auto at_revision = [](uint64_t revision) -> Change {
    return [revision](auto&, ModelFileFrame& counters, auto&, ModelFileFrame& state) {
      counters.mutable_counters()->mutable_report()->set_updates(revision);
      counters.mutable_counters()->mutable_report()->set_examples(revision);
      state.mutable_state()->set_revision(revision);
    };
  };
  const auto add_unknown = [](google::protobuf::Message* message) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(999, 1);
  };
  const std::pair<std::string, Change> changes[] = {
      {"no head", [](ModelFileFrame& head, auto&, auto&, auto&) { head.mutable_head()->Clear(); }},
      {"no rule",
       [](ModelFileFrame& head, auto&, auto&, auto&) {
         head.mutable_head()->mutable_model()->mutable_learner()->clear_rule();
       }},
      {"no learner", [](ModelFileFrame& head, auto&, auto&,
                        auto&) { head.mutable_head()->mutable_model()->clear_learner(); }},
      {"revision 2^63", at_revision(uint64_t{1} << 63)},
      {"revision 2^63 - 1", at_revision((uint64_t{1} << 63) - 1)},
      {"2^64 - 1 examples",
       [](auto&, ModelFileFrame& counters, auto&, auto&) {
         counters.mutable_counters()->mutable_report()->set_examples(~uint64_t{0});
       }},
      {"more examples undone than seen",
       [](auto&, ModelFileFrame& counters, auto&, auto&) {
         counters.mutable_counters()->set_undone_examples(1'000'000);
       }},
      {"more updates undone than made",
       [](auto&, ModelFileFrame& counters, auto&, auto&) {
         counters.mutable_counters()->set_undone_updates(1'000'000);
       }},
      {"offset below 0", [](auto&, auto&, ModelFileFrame& position,
                            auto&) { position.mutable_position()->set_next_offset(-1); }},
      {"offset 2^63 - 1",
       [](auto&, auto&, ModelFileFrame& position, auto&) {
         position.mutable_position()->set_next_offset(std::numeric_limits<int64_t>::max());
       }},
      {"a producer without an id", [](auto&, auto&, ModelFileFrame& position,
                                      auto&) { position.mutable_position()->clear_id(); }},
      {"a stored example that does not ascend",
       [](auto&, auto&, auto&, ModelFileFrame& state) {
         auto& row = *state.mutable_state()->mutable_stored_rows()->mutable_rows(0);
         row.set_dense(false);
         for (const uint32_t index : {1, 0}) row.add_indices(index);
       }},
      {"an unknown part", [&](ModelFileFrame& head, auto&, auto&, auto&) { add_unknown(&head); }},
      {"an unknown setting", [&](ModelFileFrame& head, auto&, auto&,
                                 auto&) { add_unknown(head.mutable_head()->mutable_model()); }},
      {"an unknown counter",
       [&](auto&, ModelFileFrame& counters, auto&, auto&) {
         add_unknown(counters.mutable_counters()->mutable_report());
       }},
      {"an unknown field of the state",
       [&](auto&, auto&, auto&, ModelFileFrame& state) { add_unknown(state.mutable_state()); }},
      {"an unknown field of a stored example",
       [&](auto&, auto&, auto&, ModelFileFrame& state) {
         add_unknown(state.mutable_state()->mutable_stored_rows()->mutable_rows(0));
       }},
  };
  for (const auto& [what, change] : changes) {
    std::vector<ModelFileFrame> frames = whole;
    change(frames[0], frames[1], frames[2], frames[3]);
    EXPECT_EQ(testing::ReasonOf(Import(testing::ModelFileOf(frames), "models/b")), "BAD_MODEL_FILE")
        << what;
    EXPECT_EQ(testing::ReasonOf(store_->Acquire("models/b").status()), "MODEL_NOT_FOUND") << what;
  }
  EXPECT_OK(Import(testing::ModelFileOf(whole), "models/b"));
}

TEST_F(HistoryTest, AFileWithNamesThatTheDictionaryCannotKeepIsRefused) {
  ASSERT_OK(store_->Create(testing::NamedSettings(kName), "", false).status());
  const testing::NamedColumns rows({{{{"u", 1.0F}, {"v", 2.0F}}, 1}});
  ASSERT_OK(testing::Send(*store_, kName, "p", rows.batch()).status);
  const std::vector<ModelFileFrame> whole = testing::FramesOf(Export(kName).value());
  for (const std::string& name :
       {std::string(), std::string("u"), std::string(kMaxNameBytes + 1, 'x'),
        std::string((1 << 16) + 1, 'x')}) {
    std::vector<ModelFileFrame> frames = whole;
    ASSERT_EQ(frames.back().state().names_size(), 2);
    frames.back().mutable_state()->set_names(1, name);
    EXPECT_EQ(testing::ReasonOf(Import(testing::ModelFileOf(frames), "models/b")), "BAD_MODEL_FILE")
        << name.size();
  }
  EXPECT_OK(Import(testing::ModelFileOf(whole), "models/b"));
}

TEST_F(HistoryTest, AFileThatIsLargerThanAnyModelEndsEarly) {
  Create(kName);
  const std::string file = Export(kName).value();
  ModelLimits limits;
  limits.max_model_bytes = 1 << 20;
  ModelFileReader reader(limits);
  ASSERT_OK(reader.Add(file.substr(0, file.size() - 20)));
  // A part of 1 GiB.
  ModelFileReader endless(limits);
  ASSERT_OK(endless.Add("perceptrond model 1\n"));
  ASSERT_OK(endless.Add(std::string("\x80\x80\x80\x80\x04", 5)));
  const std::string piece(1 << 20, 'x');
  absl::Status status;
  int pieces = 0;
  while (status.ok() && pieces < 1000) {
    status = endless.Add(piece);
    ++pieces;
  }
  EXPECT_EQ(testing::ReasonOf(status), "MODEL_TOO_LARGE");
  EXPECT_LT(pieces, 100);
}

TEST_F(HistoryTest, WhatTheSettingsOfAFileForbidIsKnownBeforeItsEnd) {
  Create(kName);
  ModelFileReader reader = History().ReadFile();
  ASSERT_EQ(reader.header(), nullptr);
  const std::string file = Export(kName).value();
  ASSERT_OK(reader.Add(file.substr(0, file.size() - 1)));
  ASSERT_NE(reader.header(), nullptr);
  EXPECT_EQ(testing::ReasonOf(History().CheckImport(*reader.header(), kName, "")), "MODEL_EXISTS");
  EXPECT_OK(History().CheckImport(*reader.header(), "models/b", ""));
  EXPECT_EQ(testing::ReasonOf(store_->Acquire("models/b").status()), "MODEL_NOT_FOUND");
}

TEST_F(HistoryTest, AModelThatOneMayNotReadIsNoComponentByACopyOrAFileEither) {
  v1::Model composition;
  composition.set_name("models/spam-c");
  composition.mutable_feature_space()->mutable_composition()->add_inputs()->set_model(
      "models/secret");
  Create("models/secret");
  ASSERT_OK(store_->Create(composition, "", false).status());
  const std::string file = Export("models/spam-c").value();
  composition.set_name("models/spam-d");
  const std::function<absl::Status()> ways[] = {
      [&] { return store_->Create(composition, "", false).status(); },
      [&] { return History().Copy("models/spam-c", "models/spam-d", "").status(); },
      [&] { return Import(file, "models/spam-d"); },
      [&] {
        ModelFileReader reader = History().ReadFile();
        EXPECT_OK(reader.Add(file));
        return History().CheckImport(*reader.header(), "models/spam-d", "");
      }};
  const testing::TestCaller reader("reader", "", "models/spam-");
  for (const auto& way : ways)
    EXPECT_TRUE(absl::IsPermissionDenied(testing::As(reader, way))) << &way - ways;
  const testing::TestCaller owner("owner");
  EXPECT_OK(testing::As(owner, [&] { return Import(file, "models/other"); }));
  for (const char* const name : {"models/other", "models/spam-c"})
    EXPECT_OK(store_->Delete(name, "", false));
  // No mark of what was refused is left, so that its owner can delete it.
  EXPECT_OK(store_->Delete("models/secret", "", false));
  for (const auto* const way : {&ways[0], &ways[2], &ways[3]})
    EXPECT_TRUE(absl::IsPermissionDenied(testing::As(reader, *way))) << way - ways;
}

TEST_F(HistoryTest, ARenamedModelKeepsItsUidAndLeavesItsNameToOthers) {
  Create(kName);
  Create("models/taken");
  LearnRow(kName, row_);
  const std::string uid = Get(kName)->uid();
  EXPECT_EQ(testing::ReasonOf(History().Rename(kName, "models/taken", "")), "MODEL_EXISTS");
  EXPECT_EQ(testing::ReasonOf(History().Rename(kName, "models/b", "another")), "ETAG_MISMATCH");
  EXPECT_OK(store_->Acquire(kName).status());
  ASSERT_OK(History().Rename(kName, "models/b", ""));
  EXPECT_EQ(testing::ReasonOf(store_->Acquire(kName).status()), "MODEL_NOT_FOUND");
  EXPECT_EQ(Get("models/b")->uid(), uid);
  Create(kName);
  Open(Store::Options());
  EXPECT_EQ(Get("models/b")->revision(), 1U);
  EXPECT_EQ(Get(kName)->revision(), 0U);
}

TEST_F(HistoryTest, AnAliasKeepsItsModelFromBeingDeleted) {
  Create(kName);
  ASSERT_OK(testing::PointAlias(store_->catalogue(), "aliases/x", kName));
  EXPECT_EQ(testing::ReasonOf(store_->Delete(kName, "", false)), "MODEL_IN_USE");
  ASSERT_OK(History().Rename(kName, "models/b", ""));
  EXPECT_EQ(store_->catalogue().aliases().ModelOf("aliases/x").value(), "models/b");
  ASSERT_OK(store_->catalogue().DeleteAlias("aliases/x", ""));
  EXPECT_OK(store_->Delete("models/b", "", false));
}

// Rollbacks to revisions, for which the journal holds records.
class RevisionRollback : public HistoryTest {
 protected:
  // The server writes a snapshot of the model, as when its journal has grown.
  void TakeSnapshot() {
    const uint64_t before = store_->stats().snapshots;
    ASSERT_OK(History().Keep(kName, "passing").status());
    ASSERT_OK(History().Delete(kName, "passing"));
    testing::WaitUntil([&] { return store_->stats().snapshots > before; });
  }
  // The perceptron makes one update: an example that is right is wrong with the other label.
  void Update() {
    const uint64_t before = Get(kName)->revision();
    const auto x = static_cast<float>(100 * (before + 1));
    for (const int label : {1, -1}) {
      if (Get(kName)->revision() == before)
        LearnRow(kName, testing::Columns().AddDense({x, 1}, label));
    }
    ASSERT_EQ(Get(kName)->revision(), before + 1);
  }
  absl::Status RollBack(uint64_t revision) {
    return History().RollBack(kName, {"", revision}, std::nullopt);
  }
  // The revisions of the records that the journal has.
  std::vector<uint64_t> Held() {
    std::vector<uint64_t> revisions;
    EXPECT_OK(journal_->Replay(store_->catalogue().Find(kName)->id(), 0,
                               [&](const storage::UpdateRecord& record, size_t /*bytes*/) {
                                 revisions.push_back(LastRevision(record));
                                 return absl::OkStatus();
                               }));
    return revisions;
  }
};

TEST_F(RevisionRollback, IsRefusedWithTheRevisionsThatThereAre) {
  Create(kName);
  Update();
  EXPECT_EQ(testing::ReasonOf(RollBack(1)), "REVISION_NOT_KEPT");
  Update();
  TakeSnapshot();
  ASSERT_OK(History().Keep(kName, "two").status());
  Update();
  TakeSnapshot();
  Update();
  for (const uint64_t revision : {0, 1, 5}) {
    const absl::Status status = RollBack(revision);
    EXPECT_EQ(testing::ReasonOf(status), "REVISION_NOT_KEPT");
    EXPECT_THAT(status.message(), HasSubstr("it keeps 2 to 4")) << revision;
  }
  EXPECT_EQ(Get(kName)->revision(), 4U);
  ASSERT_OK(RollBack(3));
}

TEST_F(RevisionRollback, TheOldestRecordsAreDroppedBeyondTheLimit) {
  Store::Options options;
  options.max_history_bytes = 1;
  Open(options);
  Create(kName);
  ASSERT_OK(History().Keep(kName, "first").status());
  Update();
  Update();
  TakeSnapshot();
  Update();
  ASSERT_OK(History().Keep(kName, "third").status());
  Update();
  const absl::Status status = RollBack(1);
  EXPECT_EQ(testing::ReasonOf(status), "REVISION_NOT_KEPT");
  EXPECT_THAT(status.message(), HasSubstr("it keeps 0, 3 to 4"));
  ASSERT_OK(RollBack(4));
  ASSERT_OK(RollBack(0));
}

TEST_F(RevisionRollback, RecordsGoWithTheSnapshotThatTheyWereHeldFor) {
  Create(kName);
  ASSERT_OK(History().Keep(kName, "k").status());
  Update();
  Update();
  TakeSnapshot();
  EXPECT_THAT(Held(), ElementsAre(1, 2));
  ASSERT_OK(History().Delete(kName, "k"));
  testing::WaitUntil([&] { return Held().empty(); });
}

// Calls `before` as its first snapshot is about to be saved.
class InterruptedJournal final : public testing::JournalDecorator {
 public:
  InterruptedJournal(std::shared_ptr<Journal> base, std::function<void()> before)
      : JournalDecorator(std::move(base)), before_(std::move(before)) {}
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override {
    if (before_) std::exchange(before_, nullptr)();
    return JournalDecorator::SaveSnapshot(model_id, snapshot);
  }

 private:
  // Of the snapshotter's thread.
  std::function<void()> before_;
};

TEST_F(RevisionRollback, RecordsGoThoughASnapshotIsInProgressWhenTheirsIsDeleted) {
  const auto remove = [this] { EXPECT_OK(History().Delete(kName, "k")); };
  store_ = std::make_unique<Store>(std::make_unique<InterruptedJournal>(journal_, remove),
                                   Store::Options());
  Create(kName);
  ASSERT_OK(History().Keep(kName, "k").status());
  Update();
  TakeSnapshot();
  testing::WaitUntil([&] { return Held().empty(); });
}

}  // namespace
}  // namespace perceptrond::model_history_test
