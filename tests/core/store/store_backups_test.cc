// Backups of a store end with the call that asked for them.
#include <memory>
#include <string>

#include "core/journal/rocksdb/backups.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/store/store.h"
#include "gtest/gtest.h"
#include "tests/support/journals.h"
#include "tests/support/stop_after.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

class StoreBackups : public ::testing::Test {
 protected:
  StoreBackups() {
    RocksDbJournal::Options options;
    options.directory = directory_.path() + "/journal";
    auto journal = RocksDbJournal::Open(options);
    EXPECT_OK(journal.status());
    // Some 12 MB: several times what is copied between two looks at the token.
    const uint64_t id = testing::CreateModel(**journal, "a").id();
    for (uint64_t i = 0; i < 12; ++i) {
      const auto entry = testing::MakeEntry(id, {testing::MakeRecord(i * 30'000 + 1, 30'000)});
      EXPECT_OK(testing::CommitOne(**journal, entry, /*sync=*/false));
    }
    Store::Options store;
    store.backup_directory = backups();
    store_ = std::make_unique<Store>(*std::move(journal), store);
  }
  std::string backups() const { return directory_.path() + "/backups"; }

  const testing::TempDir directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreBackups, ABackupThatIsStoppedLeavesNoneAndTheNextIsWhole) {
  {
    const testing::StopAfter token(1, StopReason::kDraining);
    const CancellationScope scope(&token);
    const auto stopped = store_->CreateBackup(0);
    EXPECT_TRUE(absl::IsUnavailable(stopped.status())) << stopped.status();
    EXPECT_EQ(testing::ReasonOf(stopped.status()), "DRAINING");
  }
  EXPECT_TRUE(store_->ListBackups().value_or(std::vector<Backup>()).empty());
  const auto whole = store_->CreateBackup(0);
  ASSERT_OK(whole.status());
  EXPECT_GT(whole->bytes, 10U << 20);
  EXPECT_EQ(store_->ListBackups()->size(), 1U);
}

}  // namespace
}  // namespace perceptrond
