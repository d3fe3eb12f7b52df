// A model of texts in a store whose server has another version of ICU.
#include "core/features/words.h"
#include "core/journal/memory_journal.h"
#include "gtest/gtest.h"
#include "tests/core/store/store_fixture.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

TEST(TextStore, SaysThatAModelWasCreatedWithAnotherVersionOfIcu) {
  auto owned = std::make_unique<MemoryJournal>();
  MemoryJournal& journal = *owned;
  std::vector<std::string> reports;
  Store::Options options;
  options.on_other_icu = [&reports](const std::string& model, const std::string& version) {
    reports.push_back(model + " " + version);
  };
  Store store(std::move(owned), options);
  for (const char* name : {"models/same", "models/other"}) {
    v1::Model settings;
    settings.set_name(name);
    settings.mutable_feature_space()->mutable_text()->set_bits(4);
    const auto created = store.Create(settings, "", false);
    ASSERT_OK(created.status());
    EXPECT_EQ(created->feature_space().text().icu_version(), IcuVersion());
  }
  auto header = journal.Find("models/other");
  ASSERT_OK(header.status());
  const storage::ModelHeader before = *header;
  header->mutable_model()->mutable_feature_space()->mutable_text()->set_icu_version("1.0");
  ASSERT_OK(journal.Replace(*header, before));
  ASSERT_OK(store.Acquire("models/same").status());
  ASSERT_OK(store.Acquire("models/other").status());
  EXPECT_EQ(reports, std::vector<std::string>{"models/other 1.0"});
}

}  // namespace
}  // namespace perceptrond
