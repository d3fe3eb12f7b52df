// Changes of one model's header and aliases by two servers at once: none undoes the other.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/journal/memory_journal.h"
#include "core/store/model_catalogue.h"
#include "core/store/model_history.h"
#include "core/store/store.h"
#include "tests/core/store/store_fixture.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/models.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

using testing::DenseSettings;
using testing::ReasonOf;
namespace v1 = ::perceptron::v1;

constexpr char kName[] = "models/m";
constexpr char kAlias[] = "aliases/a";

// Has something happen once, just before a change is written.
class Overtaken final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

  absl::Status Replace(const storage::ModelHeader& header,
                       const storage::ModelHeader& before) override {
    Happen();
    return JournalDecorator::Replace(header, before);
  }
  absl::Status PutAlias(const Alias& alias, absl::string_view etag) override {
    Happen();
    return JournalDecorator::PutAlias(alias, etag);
  }

  absl::Status SaveKept(uint64_t model_id, const storage::Snapshot& snapshot,
                        storage::KeptSnapshot& kept) override {
    Happen();
    return JournalDecorator::SaveKept(model_id, snapshot, kept);
  }

  std::function<void()> event;
  // Changes that are written before it.
  int events_before = 0;

 private:
  absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) override {
    Happen();
    return JournalDecorator::CreateModel(header, guard);
  }
  absl::Status DeleteModel(absl::string_view name, const ModelGuard& guard) override {
    Happen();
    return JournalDecorator::DeleteModel(name, guard);
  }
  absl::Status CreateLearned(storage::ModelHeader& header, const storage::Snapshot& snapshot,
                             const CommittedState& committed, const ModelGuard& guard) override {
    Happen();
    return JournalDecorator::CreateLearned(header, snapshot, committed, guard);
  }
  void Happen() {
    if (event != nullptr && events_before-- > 0) return;
    if (const auto once = std::exchange(event, nullptr)) once();
  }
};

absl::Status Describe(ModelCatalogue& catalogue, const char* description = "new") {
  const auto describe = [description](v1::Model& model) {
    model.set_description(description);
    return absl::OkStatus();
  };
  return catalogue.Change(kName, {}, describe).status();
}

v1::Model Composition() {
  v1::Model composition;
  composition.set_name("models/composition");
  v1::FeatureSpace::Composition::Input& input =
      *composition.mutable_feature_space()->mutable_composition()->add_inputs();
  input.set_model(kName);
  input.set_output(v1::FeatureSpace::Composition::OUTPUT_SCORE);
  return composition;
}

absl::Status Delete(ModelCatalogue& catalogue, Journal& journal) {
  const auto remove = [&](const ModelGuard& guard) { return journal.Delete(kName, guard); };
  return catalogue.Delete(kName, "", false, remove).status();
}

class CatalogueConflictsTest : public ::testing::Test {
 protected:
  CatalogueConflictsTest() {
    auto journal = std::make_unique<Overtaken>(std::shared_ptr<Journal>(journal_.OpenAgain()));
    overtaken_ = journal.get();
    store_ = std::make_unique<Store>(std::move(journal), Store::Options());
    EXPECT_OK(store_->Create(DenseSettings(kName, 2), "", false).status());
  }
  storage::ModelHeader Header() { return *journal_.Find(kName); }

  MemoryJournal journal_{{.tail_bytes = 1 << 20}};
  const std::unique_ptr<MemoryJournal> again_ = journal_.OpenAgain();
  // Another server's.
  ModelCatalogue other_{*again_, CatalogueLimits()};
  // Owned by the store.
  Overtaken* overtaken_ = nullptr;
  std::unique_ptr<Store> store_;
};

TEST_F(CatalogueConflictsTest, AModelThatGetsAnAliasOrACompositionWhileItIsDeletedStays) {
  const std::function<absl::Status()> uses[] = {
      [&] { return testing::PointAlias(other_, kAlias, kName); },
      [&] { return other_.Create(Composition(), "", false).status(); }};
  for (const std::function<absl::Status()>& use : uses) {
    overtaken_->event = [&] { EXPECT_OK(use()); };
    const absl::Status deleted = store_->Delete(kName, "", false);
    EXPECT_EQ(ReasonOf(deleted), "MODEL_IN_USE") << deleted;
    EXPECT_OK(store_->Acquire(kName).status());
    ASSERT_OK(journal_.Refresh());
    if (journal_.aliases().empty()) continue;
    EXPECT_EQ(journal_.aliases().ModelOf(kAlias), kName);
    ASSERT_OK(store_->catalogue().DeleteAlias(kAlias, ""));
  }
}

TEST_F(CatalogueConflictsTest, AnAliasIsNotGivenToAModelThatIsDeletedMeanwhile) {
  overtaken_->event = [&] { EXPECT_OK(again_->Delete(kName)); };
  const absl::Status set = testing::PointAlias(store_->catalogue(), kAlias, kName);
  EXPECT_EQ(ReasonOf(set), "MODEL_NOT_FOUND") << set;
  ASSERT_OK(journal_.Refresh());
  EXPECT_TRUE(journal_.aliases().empty());
}

// The sweep for expired models notes no use of its own: the model is never acquired.
TEST_F(CatalogueConflictsTest, ANoteOfAUseKeepsWhatAnotherServerHasChanged) {
  const auto expire = [](v1::Model& model) {
    model.mutable_expire_after()->set_seconds(3600);
    return absl::OkStatus();
  };
  ASSERT_OK(store_->Change(kName, {}, expire).status());
  overtaken_->event = [&] { EXPECT_OK(Describe(other_)); };
  const absl::Time last_use = absl::FromUnixSeconds(1'800'000'000);
  ASSERT_OK(store_->catalogue().SaveUse(kName, Header().id(), last_use));
  EXPECT_EQ(Header().model().description(), "new");
  EXPECT_EQ(Header().last_use_time().seconds(), 1'800'000'000);
}

TEST_F(CatalogueConflictsTest, EachChangeKeepsWhatAnotherServerHasChanged) {
  const std::function<absl::Status()> changes[] = {
      [&] { return ModelHistory(*store_).Keep(kName, "k").status(); },
      [&] { return store_->Create(Composition(), "", false).status(); }};
  for (const std::function<absl::Status()>& change : changes) {
    EXPECT_OK(Describe(other_, "old"));
    overtaken_->event = [&] { EXPECT_OK(Describe(other_)); };
    ASSERT_OK(change());
    EXPECT_EQ(Header().model().description(), "new");
  }
  EXPECT_EQ(Header().kept_snapshots_size(), 1);
  EXPECT_EQ(Header().used_by_size(), 1);
}

TEST_F(CatalogueConflictsTest, AChangeKeepsTheSnapshotsThatAnotherServerHasKept) {
  overtaken_->event = [&] {
    const auto keep = [](storage::ModelHeader& header) {
      header.set_last_kept_number(1);
      header.add_kept_snapshots()->set_number(1);
      return absl::OkStatus();
    };
    EXPECT_OK(other_.ChangeKept(kName, keep));
  };
  ASSERT_OK(Describe(store_->catalogue()));
  EXPECT_EQ(Header().model().description(), "new");
  EXPECT_EQ(Header().kept_snapshots_size(), 1);
}

TEST_F(CatalogueConflictsTest, AChangeWithAnEtagIsRefusedOnceAnotherServerHasChangedTheModel) {
  overtaken_->event = [&] { EXPECT_OK(Describe(other_)); };
  const std::string etag = Header().model().etag();
  const absl::Status changed = testing::FreezeIn(*store_, kName, etag);
  EXPECT_EQ(ReasonOf(changed), "ETAG_MISMATCH") << changed;
  EXPECT_EQ(Header().model().state(), v1::MODEL_STATE_ACTIVE);
}

TEST_F(CatalogueConflictsTest, AComponentThatAnotherServerDeletesMeanwhileMakesNoComposition) {
  // Just before the component is marked, and just before the composition is added.
  for (const int changes : {1, 2}) {
    overtaken_->events_before = changes - 1;
    overtaken_->event = [&] { EXPECT_OK(Delete(other_, *again_)); };
    const absl::Status created = store_->Create(Composition(), "", false).status();
    EXPECT_TRUE(absl::IsNotFound(created)) << created;
    EXPECT_TRUE(absl::IsNotFound(journal_.Find("models/composition").status()));
    ASSERT_OK(store_->Create(DenseSettings(kName, 2), "", false).status());
  }
}

TEST_F(CatalogueConflictsTest, ModelsChangeWhileTheStateOfAnotherIsWritten) {
  ASSERT_OK(store_->Create(DenseSettings("models/large", 2), "", false).status());
  const auto change_others = [&] {
    // The state is written only after this.
    std::thread([&] {
      EXPECT_OK(store_->Create(DenseSettings("models/other", 2), "", false).status());
      EXPECT_OK(Describe(store_->catalogue()));
      EXPECT_OK(ModelHistory(*store_).Copy(kName, "models/second", "").status());
      for (const char* name : {"models/other", "models/second"})
        EXPECT_OK(store_->Delete(name, "", false));
    }).join();
  };
  overtaken_->event = change_others;
  EXPECT_OK(ModelHistory(*store_).Copy("models/large", "models/copy", "").status());
  EXPECT_OK(store_->Acquire("models/copy").status());
  overtaken_->event = change_others;
  EXPECT_OK(ModelHistory(*store_).Keep("models/large", "one").status());
  EXPECT_EQ(ModelHistory(*store_).List("models/large")->size(), 1U);
}

TEST_F(CatalogueConflictsTest, ANameThatIsTakenWhileTheStateOfACopyIsWrittenStaysTaken) {
  std::string uid;
  overtaken_->event = [&] {
    uid = store_->Create(DenseSettings("models/copy", 3), "", false)->uid();
  };
  const absl::Status refused = ModelHistory(*store_).Copy(kName, "models/copy", "").status();
  EXPECT_EQ(ReasonOf(refused), "MODEL_EXISTS") << refused;
  EXPECT_EQ(journal_.Find("models/copy")->model().uid(), uid);
  // A copy that failed keeps no name.
  ASSERT_OK(store_->Delete("models/copy", "", false));
  EXPECT_OK(ModelHistory(*store_).Copy(kName, "models/copy", "").status());
}

TEST_F(CatalogueConflictsTest, AComponentThatIsDeletedWhileACompositionIsCopiedMakesNoCopy) {
  ASSERT_OK(store_->Create(Composition(), "", false).status());
  // The component's mark.
  overtaken_->events_before = 1;
  overtaken_->event = [&] {
    EXPECT_OK(store_->Delete("models/composition", "", false));
    EXPECT_OK(store_->Delete(kName, "", false));
  };
  const absl::Status refused =
      ModelHistory(*store_).Copy("models/composition", "models/copy", "").status();
  EXPECT_EQ(ReasonOf(refused), "COMPONENT_NOT_FOUND") << refused;
  EXPECT_TRUE(absl::IsNotFound(journal_.Find("models/copy").status()));
}

TEST_F(CatalogueConflictsTest, TheLastModelThatThereMayBeIsCreatedByOneServer) {
  CatalogueLimits limits;
  limits.max_models = 2;
  ModelCatalogue limited(*overtaken_, limits);
  overtaken_->event = [&] {
    EXPECT_OK(other_.Create(DenseSettings("models/other", 2), "", false).status());
  };
  const absl::Status refused = limited.Create(DenseSettings("models/third", 2), "", false).status();
  EXPECT_EQ(ReasonOf(refused), "MODEL_LIMIT") << refused;
  EXPECT_EQ(*limited.Count(), 2U);
}

}  // namespace
}  // namespace perceptrond
