// The journals that one server opens.
#include "core/journal/memory_journal.h"
#include "core/journal/rocksdb_journal.h"
#include "tests/core/journal/history_conformance.h"
#include "tests/core/journal/tail_conformance.h"

namespace perceptrond {
namespace {

std::unique_ptr<Journal> OpenMemory(const std::string& /*directory*/) {
  return std::make_unique<MemoryJournal>(MemoryJournal::Options{.tail_bytes = kTailBytes});
}

std::unique_ptr<Journal> OpenRocksDb(const std::string& directory) {
  RocksDbJournal::Options options;
  options.directory = directory + "/journal";
  options.tail_bytes = kTailBytes;
  auto journal = RocksDbJournal::Open(options);
  EXPECT_OK(journal.status());
  return *std::move(journal);
}

INSTANTIATE_TEST_SUITE_P(Homes, JournalConformance,
                         ::testing::Values(Home{"Memory", OpenMemory},
                                           Home{"RocksDb", OpenRocksDb}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perceptrond
