// What is known of models while the table of a journal that servers share cannot be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "core/journal/memory_table.h"
#include "core/journal/table_journal.h"
#include "tests/support/status.h"
#include "tests/support/wait_until.h"

namespace perceptrond {
namespace {

using ::testing::ElementsAre;

// Cannot be read or written while it is away.
class AwayTable final : public Table {
 public:
  AwayTable(std::unique_ptr<Table> base, std::shared_ptr<std::atomic<bool>> away)
      : base_(std::move(base)), away_(std::move(away)) {}

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override {
    if (*away_) return Away();
    return base_->Get(key);
  }
  absl::Status Scan(const KeyRange& range, OnRow on_row) override {
    return *away_ ? Away() : base_->Scan(range, on_row);
  }
  absl::StatusOr<std::unique_ptr<TableReader>> Freeze(std::span<const KeyRange> ranges) override {
    if (*away_) return Away();
    return base_->Freeze(ranges);
  }
  absl::StatusOr<bool> Commit(const TableChange& change, bool sync) override {
    if (*away_) return Away();
    return base_->Commit(change, sync);
  }
  absl::Status Sync() override { return base_->Sync(); }
  uint64_t AwaitCommit(uint64_t seen, absl::Duration timeout) override {
    return base_->AwaitCommit(seen, timeout);
  }
  void Close() override { base_->Close(); }
  absl::Status Announce(absl::string_view message) override { return base_->Announce(message); }
  void Listen(std::function<void(absl::string_view message)> listener) override {
    base_->Listen(std::move(listener));
  }

 private:
  static absl::Status Away() { return absl::UnavailableError("away"); }

  const std::unique_ptr<Table> base_;
  const std::shared_ptr<std::atomic<bool>> away_;
};

class NamesAwayTest : public ::testing::Test {
 protected:
  std::unique_ptr<TableJournal> Open(std::unique_ptr<Table> table) {
    TableJournal::Options options;
    options.held_bytes = 1 << 20;
    auto journal = TableJournal::Open(std::move(table), options);
    EXPECT_OK(journal.status());
    return *std::move(journal);
  }
  static void Create(Journal& journal, const std::string& name) {
    storage::ModelHeader header;
    header.mutable_model()->set_name(name);
    EXPECT_OK(journal.Create(header, nullptr));
  }
  static std::vector<std::string> Names(Journal& journal, const std::string& after, size_t limit) {
    std::vector<std::string> names;
    const auto headers = journal.List(after, limit);
    EXPECT_OK(headers.status());
    for (const storage::ModelHeader& header : *headers) names.push_back(header.model().name());
    return names;
  }

  MemoryTable table_;
  const std::shared_ptr<std::atomic<bool>> away_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(NamesAwayTest, ModelsAreFoundAndListedAsTheyWereReadLast) {
  const auto other = Open(table_.OpenAgain());
  Create(*other, "models/b");
  // One is there at the start, and others come, change and go later.
  const auto journal = Open(std::make_unique<AwayTable>(table_.OpenAgain(), away_));
  Create(*journal, "models/a");
  Create(*other, "models/c");
  Create(*other, "models/d");
  ASSERT_OK(other->Delete("models/d", nullptr));
  storage::ModelHeader renamed = *other->Find("models/c");
  const storage::ModelHeader before = renamed;
  renamed.mutable_model()->set_name("models/e");
  ASSERT_OK(other->Rename(renamed, before));
  ASSERT_OK(journal->Refresh());
  *away_ = true;
  EXPECT_THAT(Names(*journal, "", 9), ElementsAre("models/a", "models/b", "models/e"));
  EXPECT_THAT(Names(*journal, "models/a", 1), ElementsAre("models/b"));
  EXPECT_EQ(journal->Find("models/e")->id(), before.id());
  // It may have been created since.
  EXPECT_TRUE(absl::IsUnavailable(journal->Find("models/d").status()));
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/f");
  EXPECT_TRUE(absl::IsUnavailable(journal->Create(header, nullptr)));
  // What is there is read again once it can be.
  ASSERT_OK(other->Delete("models/b", nullptr));
  *away_ = false;
  testing::WaitUntil([&] { return absl::IsNotFound(journal->Find("models/b").status()); });
  EXPECT_EQ(*journal->Count(), 2U);
}

}  // namespace
}  // namespace perceptrond
