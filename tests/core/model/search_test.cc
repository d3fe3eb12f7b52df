// Finding models in the store without using any.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
namespace v1 = ::perceptron::v1;

bool All(const v1::Model&) { return true; }
bool Even(const v1::Model& model) { return (model.name().back() - '0') % 2 == 0; }

class SearchTest : public ::testing::Test {
 protected:
  static constexpr int kModels = 700;

  SearchTest() {
    Open();
    for (int i = 0; i < kModels; ++i) {
      EXPECT_OK(store_->Create(DenseSettings(Name(i), 1), "", false).status());
    }
  }
  void Open() {
    store_.reset();
    store_ = std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_),
                                     Store::Options());
  }
  static std::string Name(int i) { return absl::StrFormat("models/m%03d", i); }

  // The names that come with going on until the end.
  std::vector<std::string> Names(size_t limit, size_t most_read,
                                 const std::function<bool(const v1::Model&)>& wanted) {
    std::vector<std::string> names;
    std::string after;
    do {
      const absl::StatusOr<Store::Found> found = store_->Search(after, limit, most_read, wanted);
      if (!found.ok() || found->models.size() > limit ||
          (!after.empty() && found->next <= after && !found->next.empty())) {
        ADD_FAILURE() << found.status();
        break;
      }
      for (const ModelSummary& model : found->models) names.push_back(model.settings.name());
      after = found->next;
    } while (!after.empty());
    return names;
  }

  const std::shared_ptr<Journal> journal_ = std::make_shared<MemoryJournal>();
  std::unique_ptr<Store> store_;
};

TEST_F(SearchTest, FindsEveryModelOnceInTheOrderOfNamesWhateverThePagesAndTheReading) {
  std::vector<std::string> all;
  std::vector<std::string> even;
  for (int i = 0; i < kModels; ++i) {
    all.push_back(Name(i));
    if (i % 2 == 0) even.push_back(Name(i));
  }
  for (const size_t limit : {1, 7, 256, 350, 700, 1000}) {
    for (const size_t most_read : {1, 10, 256, 257, 700, 10'000}) {
      if (limit * 100 < kModels && most_read > 1000) continue;
      EXPECT_EQ(Names(limit, most_read, All), all) << limit << " " << most_read;
      EXPECT_EQ(Names(limit, most_read, Even), even) << limit << " " << most_read;
    }
  }
}

TEST_F(SearchTest, LooksAtNoMoreThanItMay) {
  int looked_at = 0;
  const auto none = [&](const v1::Model&) {
    ++looked_at;
    return false;
  };
  const absl::StatusOr<Store::Found> found = store_->Search("", 10, 300, none);
  ASSERT_OK(found.status());
  EXPECT_EQ(looked_at, 300);
  EXPECT_TRUE(found->models.empty());
  EXPECT_EQ(found->next, Name(299));
  // There is nothing after the last.
  EXPECT_EQ(store_->Search(Name(399), 10, 300, none)->next, "");
  EXPECT_EQ(store_->Search(Name(kModels - 1), 10, 300, none)->next, "");
}

TEST_F(SearchTest, LookingAndPeekingLoadNothing) {
  EXPECT_OK(testing::Send(*store_, Name(1), "p", Columns().AddDense({1}, 1).batch()).status);
  Open();
  const absl::StatusOr<ModelSummary> stored = store_->GetSummary(Name(1));
  ASSERT_OK(stored.status());
  EXPECT_FALSE(stored->in_memory);
  EXPECT_EQ(stored->report.examples(), 1U);
  EXPECT_EQ(store_->GetIfLoaded(Name(1)), nullptr);
  EXPECT_EQ(store_->GetIfLoaded("models/none"), nullptr);
  EXPECT_TRUE(absl::IsNotFound(store_->GetSummary("models/none").status()));
  ASSERT_OK(store_->Search("", 100, 100, All).status());
  EXPECT_EQ(store_->stats().loads, 0U);
  const std::shared_ptr<Model> model = *store_->Acquire(Name(1));
  EXPECT_EQ(store_->GetIfLoaded(Name(1)), model);
  EXPECT_TRUE(store_->GetSummary(Name(1))->in_memory);
}

}  // namespace
}  // namespace perceptrond
