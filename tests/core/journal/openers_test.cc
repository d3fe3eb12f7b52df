// Openers of a journal in memory.
#include "core/journal/memory_journal.h"
#include "tests/core/journal/journal_openers.h"

namespace perceptrond {
namespace {

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
