// The journals that one server opens, and those in memory that several open.
#include "core/journal/memory_journal.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "tests/core/journal/history_conformance.h"
#include "tests/core/journal/journal_openers.h"
#include "tests/core/journal/tail_conformance.h"

namespace perceptrond {
namespace {

std::unique_ptr<Journal> OpenMemory(const std::string& /*directory*/) {
  return std::make_unique<MemoryJournal>(MemoryJournal::Options{.tail_bytes = kTailBytes});
}

std::unique_ptr<Journal> OpenRocksDb(const std::string& directory) {
  RocksDbJournal::Options options;
  options.directory = directory + "/journal";
  auto journal = RocksDbJournal::Open(options);
  EXPECT_OK(journal.status());
  return *std::move(journal);
}

INSTANTIATE_TEST_SUITE_P(Homes, JournalConformance,
                         ::testing::Values(Home{"Memory", OpenMemory},
                                           Home{"RocksDb", OpenRocksDb}),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Homes, TailConformance, ::testing::Values(Home{"Memory", OpenMemory}),
                         [](const auto& info) { return info.param.name; });

std::vector<std::unique_ptr<Journal>> OpenInMemory(int openers) {
  std::vector<std::unique_ptr<Journal>> journals;
  auto first = std::make_unique<MemoryJournal>(
      MemoryJournal::Options{.partitions = 2, .tail_bytes = 1 << 20});
  for (int i = 1; i < openers; ++i) journals.push_back(first->OpenAgain());
  journals.push_back(std::move(first));
  return journals;
}

INSTANTIATE_TEST_SUITE_P(Homes, Openers, ::testing::Values(SharedHome{"Memory", OpenInMemory}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perceptrond
