// The store: names, etags, deletion, and its end.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <atomic>
#include <set>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/learners.h"
#include "tests/support/recording_journal.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::IntegerExample;
using testing::ReasonOf;
using testing::Send;
using testing::StateBytes;
using testing::StoreTest;
namespace v1 = ::perceptron::v1;

TEST_F(StoreTest, CreatesOnceUnlessTheSameRequestComesAgain) {
  const auto first = store_->Create(DenseSettings("a", 2), "request-1", false);
  ASSERT_OK(first.status());
  EXPECT_EQ(first->learner().perceptron().step_size(), 1);
  EXPECT_EQ(first->state(), v1::MODEL_STATE_ACTIVE);
  const auto again = store_->Create(DenseSettings("a", 2), "request-1", false);
  ASSERT_OK(again.status());
  EXPECT_EQ(again->uid(), first->uid());
  for (const char* request : {"", "request-2"}) {
    const absl::Status status = store_->Create(DenseSettings("a", 2), request, false).status();
    EXPECT_TRUE(absl::IsAlreadyExists(status));
    EXPECT_EQ(ReasonOf(status), "MODEL_EXISTS");
  }
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

// Sets the field to what no model has by itself.
void SetAny(v1::Model& model, const google::protobuf::FieldDescriptor& field) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *model.GetReflection();
  if (field.is_repeated()) {
    reflection.AddMessage(&model, &field);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    reflection.MutableMessage(&model, &field);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    reflection.SetString(&model, &field, "any");
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    reflection.SetEnumValue(&model, &field, v1::MODEL_STATE_FROZEN);
  } else {
    ASSERT_EQ(field.cpp_type(), FieldDescriptor::CPPTYPE_INT64) << field.name();
    reflection.SetInt64(&model, &field, 7);
  }
}

// Every field of a model is a setting or is set by the server; what a client sends of the latter,
// for example in a model that it read, is ignored.
TEST_F(StoreTest, OutputOnlyFieldsOfASentModelAreIgnored) {
  const std::set<std::string> settings = {
      "name",        "description",        "feature_space",   "learner",
      "label_names", "margin_of_interest", "stored_examples", "stored_predictions",
      "expire_after"};
  Create("part");
  v1::Model plain;
  plain.mutable_feature_space()->mutable_composition()->add_inputs()->set_model("part");
  plain.set_name("plain");
  v1::Model filled = plain;
  filled.set_name("filled");
  const google::protobuf::Descriptor& model = *v1::Model::descriptor();
  for (int i = 0; i < model.field_count(); ++i) {
    if (!settings.contains(model.field(i)->name())) SetAny(filled, *model.field(i));
  }
  // No space can have this dimension.
  filled.mutable_feature_space()
      ->mutable_composition()
      ->mutable_example_space()
      ->mutable_dense()
      ->set_dimension(0);
  v1::StoredExamples& stored = *filled.mutable_stored_examples();
  stored.set_updates(7);
  stored.set_sample(7);
  stored.set_memory_bytes(7);
  stored.set_complete(true);
  v1::Model expected = store_->Create(plain, "", false).value();
  const auto created = store_->Create(filled, "", false);
  ASSERT_OK(created.status());
  v1::Model got = *created;
  EXPECT_NE(got.uid(), "any");
  EXPECT_NE(got.etag(), "any");
  EXPECT_GT(got.create_time().seconds(), 0);
  for (v1::Model* each : {&expected, &got}) {
    each->clear_name();
    each->clear_uid();
    each->clear_etag();
    each->clear_create_time();
    each->clear_update_time();
  }
  EXPECT_EQ(got.DebugString(), expected.DebugString());
}

// The counters of one model are damaged.
class DamagedCounters final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<storage::Counters> LoadCounters(uint64_t model_id) override {
    if (model_id == damaged_id) return absl::DataLossError("block checksum mismatch");
    return JournalDecorator::LoadCounters(model_id);
  }
  std::atomic<uint64_t> damaged_id = 0;
};

TEST_F(StoreTest, AListNamesADamagedModelAmongTheOthers) {
  for (const char* name : {"a", "b", "c", "d"}) Create(name);
  auto damaged = std::make_unique<DamagedCounters>(journal_);
  damaged->damaged_id = journal_->Find("b")->id();
  store_ = std::make_unique<Store>(std::move(damaged), Store::Options());
  const Store::Found first = store_->List("", 3).value();
  ASSERT_EQ(first.models.size(), 2U);
  EXPECT_EQ(first.models[0].settings.name(), "a");
  EXPECT_EQ(first.models[1].settings.name(), "c");
  EXPECT_EQ(first.unreachable, std::vector<std::string>({"b"}));
  EXPECT_EQ(first.next, "c");
  const Store::Found rest = store_->List(first.next, 3).value();
  ASSERT_EQ(rest.models.size(), 1U);
  EXPECT_EQ(rest.models[0].settings.name(), "d");
  EXPECT_EQ(rest.next, "");
}

// The committed state of one model is damaged for as long as damaged_id names it.
class DamagedJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  absl::StatusOr<CommittedState> LoadCommittedState(uint64_t model_id) override {
    if (model_id == damaged_id) return absl::DataLossError("block checksum mismatch");
    return JournalDecorator::LoadCommittedState(model_id);
  }
  std::atomic<uint64_t> damaged_id = 0;
};

// Who is on call has the alert, which names no model, and the log.
TEST_F(StoreTest, ADamagedModelIsNamedInTheErrorAndReportedOnceUntilItCanBeLoaded) {
  Create("a");
  Create("b");
  std::vector<std::string> reports;
  Store::Options options;
  options.on_damage = [&reports](const std::string& name, const absl::Status& why) {
    reports.push_back(absl::StrCat(name, ": ", why.message()));
  };
  auto damaged = std::make_unique<DamagedJournal>(journal_);
  DamagedJournal& journal = *damaged;
  store_ = std::make_unique<Store>(std::move(damaged), options);
  journal.damaged_id = journal_->Find("a")->id();
  const std::string message = "model \"a\" is damaged: block checksum mismatch";
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = store_->Acquire("a").status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_EQ(ReasonOf(status), "JOURNAL_CORRUPT");
    EXPECT_EQ(status.message(), message);
  }
  EXPECT_OK(store_->Acquire("b").status());
  EXPECT_TRUE(absl::IsNotFound(store_->Acquire("c").status()));
  EXPECT_EQ(reports, std::vector<std::string>({"a: " + message}));
  journal.damaged_id = 0;
  EXPECT_OK(store_->Acquire("a").status());
  EXPECT_EQ(reports.size(), 1U);
}

TEST_F(StoreTest, OnlyValidatesWhenAsked) {
  EXPECT_OK(store_->Create(DenseSettings("a", 2), "", true).status());
  EXPECT_EQ(store_->catalogue().Count().value(), 0U);
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Create(DenseSettings("a", 0), "", true).status()));
  Create("a");
  EXPECT_OK(store_->Delete("a", "", true));
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

TEST_F(StoreTest, AnEtagGuardsChangesAndDeletion) {
  const v1::Model first = Create("a");
  const auto describe = [](v1::Model& model) {
    model.set_description("changed");
    return absl::OkStatus();
  };
  const auto changed = store_->Change("a", {first.etag(), {}, false}, describe);
  ASSERT_OK(changed.status());
  EXPECT_NE(changed->etag(), first.etag());
  EXPECT_EQ(ReasonOf(store_->Change("a", {first.etag(), {}, false}, describe).status()),
            "ETAG_MISMATCH");
  EXPECT_TRUE(absl::IsAborted(store_->Delete("a", first.etag(), false)));
  EXPECT_OK(store_->Delete("a", changed->etag(), false));
}

TEST_F(StoreTest, WhatIsNotThereIsNotFound) {
  const auto nothing = [](v1::Model&) { return absl::OkStatus(); };
  for (const absl::Status& status :
       {store_->Acquire("a").status(), store_->Get("a").status(), store_->Delete("a", "", false),
        store_->Change("a", {"", {}, false}, nothing).status()}) {
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_EQ(ReasonOf(status), "MODEL_NOT_FOUND");
  }
}

TEST_F(StoreTest, AFrozenModelStaysFrozenAfterARestart) {
  Create("a");
  ASSERT_OK(store_
                ->Change("a", {"", {}, false},
                         [](v1::Model& model) {
                           model.set_state(v1::MODEL_STATE_FROZEN);
                           return absl::OkStatus();
                         })
                .status());
  EXPECT_EQ(ReasonOf(Send(*store_, "a", "p", row_.batch()).status), "MODEL_FROZEN");
  Open(Store::Options());
  EXPECT_EQ(ReasonOf(Send(*store_, "a", "p", row_.batch()).status), "MODEL_FROZEN");
}

TEST_F(StoreTest, ADeletedModelIsClosedToThoseWhoHoldItAndItsSuccessorIsAnother) {
  const v1::Model first = Create("a");
  ASSERT_OK(Send(*store_, "a", "p", row_.batch(), 0).status);
  const std::shared_ptr<Model> held = store_->Acquire("a").value();
  ASSERT_OK(store_->Delete("a", "", false));
  EXPECT_EQ(ReasonOf(held->closed()), "MODEL_NOT_FOUND");
  EXPECT_EQ(ReasonOf(store_->committer().Commit(held)), "MODEL_NOT_FOUND");
  EXPECT_TRUE(absl::IsNotFound(store_->Acquire("a").status()));
  EXPECT_NE(Create("a").uid(), first.uid());
  const std::shared_ptr<Model> successor = store_->Acquire("a").value();
  EXPECT_NE(successor->id(), held->id());
  EXPECT_EQ(successor->revision(), 0U);
  const testing::Sent sent = Send(*store_, "a", "p", row_.batch(), 0);
  ASSERT_OK(sent.status);
  EXPECT_EQ(sent.outcome.duplicates, 0U);
}

// Deletes nothing.
class UndeletingJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

 private:
  absl::Status DeleteModel(absl::string_view /*name*/, const ModelGuard& /*guard*/) override {
    return absl::UnavailableError("injected");
  }
};

TEST_F(StoreTest, AModelWhoseDeletionFailedIsThereAsItWas) {
  store_.reset();
  store_ = std::make_unique<Store>(std::make_unique<UndeletingJournal>(journal_), Store::Options());
  Create("a");
  ASSERT_OK(Send(*store_, "a", "p", row_.batch(), 0).status);
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete("a", "", false)));
  const testing::Sent again = Send(*store_, "a", "p", row_.batch(), 0);
  ASSERT_OK(again.status);
  EXPECT_EQ(again.outcome.duplicates, 1U);
  EXPECT_EQ(store_->catalogue().Count().value(), 1U);
}

TEST_F(StoreTest, AListLeavesOutStartingWeights) {
  v1::Model settings = DenseSettings("a", 2);
  testing::StartingVector(*settings.mutable_learner()).add_indices(1);
  testing::StartingVector(*settings.mutable_learner()).add_values(3);
  ASSERT_OK(store_->Create(settings, "", false).status());
  const ModelSummary listed = store_->List("", 10).value().models.at(0);
  EXPECT_FALSE(listed.settings.learner().has_starting_weights());
  EXPECT_EQ(store_->Get("a").value().settings.learner().starting_weights().vectors_size(), 1);
}

TEST_F(StoreTest, EverythingSubmittedIsAnsweredBeforeTheStoreEnds) {
  // Commits that ask for snapshots while the store goes.
  for (int round = 0; round < 30; ++round) {
    Store::Options options;
    options.snapshot_bytes = 1;
    Open(options);
    const std::string name = absl::StrCat("model-", round);
    Create(name, 20'000);
    int answered = 0;
    {
      std::shared_ptr<Model> model = store_->Acquire(name).value();
      Producer producer("");
      LearnOutcome outcome;
      for (int i = 0; i < 4; ++i) {
        const Columns columns =
            Columns().AddDense(std::vector<float>(20'000, 1), i % 2 == 0 ? 1 : -1);
        LearnCall call;
        call.batch = columns.batch();
        call.producer = &producer;
        ASSERT_OK(model->Learn(call, outcome));
        ASSERT_EQ(outcome.mistakes, 1U);
        store_->committer().Submit(model, [&](const absl::Status& status) {
          EXPECT_OK(status);
          ++answered;
        });
      }
    }
    store_.reset();
    EXPECT_EQ(answered, 4);
  }
}

TEST_F(StoreTest, ADeletedModelEndsItsStreams) {
  const v1::Model model = Create("a");
  std::vector<absl::Status> ended;
  const auto listen = [&](const absl::Status& why) { ended.push_back(why); };
  const auto ticket = store_->streams().Open(model.uid(), "", listen);
  EXPECT_TRUE(absl::IsAborted(store_->Delete("a", "another etag", false)));
  ASSERT_OK(store_->Delete("a", "", true));
  EXPECT_TRUE(ended.empty());
  ASSERT_OK(store_->Delete("a", "", false));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ReasonOf(ended[0]), "MODEL_NOT_FOUND");
}

TEST_F(StoreTest, ASnapshotShortensTheJournalAndIsReported) {
  auto recording = std::make_shared<testing::RecordingJournal>(journal_);
  Store::Options options;
  options.snapshot_bytes = 1;
  store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(recording), options);
  Create("a", 10);
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(Send(*store_, "a", "p", Columns({IntegerExample(random, 10)}).batch()).status);
  }
  recording->AwaitSnapshots(1);
  const std::string state = StateBytes(*store_->Acquire("a").value());
  store_.reset();  // finishes the snapshot it is at
  Open(Store::Options());
  const ModelSummary summary = store_->Get("a").value();
  EXPECT_NE(summary.journal->snapshot_time, absl::InfinitePast());
  EXPECT_EQ(StateBytes(*store_->Acquire("a").value()), state);
  uint64_t all = 0;
  for (const storage::UpdateRecord& record : recording->records()) all += record.ByteSizeLong();
  EXPECT_LT(summary.journal->bytes, all);
}

}  // namespace
}  // namespace perceptrond
