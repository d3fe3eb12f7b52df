// A journal in memory: for models that need not outlive the process, and for tests.
#pragma once

#include <memory>
#include <utility>

#include "core/journal/memory_table.h"
#include "core/journal/table_journal.h"

namespace perceptrond {

class MemoryJournal final : public TableJournal {
 public:
  struct Options {
    uint32_t partitions = 1;
    // TableJournal::Options::held_bytes.
    size_t tail_bytes = 0;
  };
  MemoryJournal() : MemoryJournal(Options()) {}
  explicit MemoryJournal(const Options& options)
      : MemoryJournal(std::make_unique<MemoryTable>(), options) {}
  // In the rows of a table that others may have opened.
  MemoryJournal(std::unique_ptr<MemoryTable> memory, const Options& options)
      : TableJournal(std::move(memory),
                     {.partitions = options.partitions,
                      .held_bytes = options.tail_bytes,
                      // The journal ends with the process, and its models' uids with it.
                      .id = "memory"}),
        options_(options) {
    // Memory does not fail.
    Begin().IgnoreError();
  }
  // Another opener of the same journal, as another server of a fleet is. Only of one that holds entries for tails.
  std::unique_ptr<MemoryJournal> OpenAgain() {
    auto again = static_cast<MemoryTable&>(table()).OpenAgain();
    return std::make_unique<MemoryJournal>(std::move(again), options_);
  }

 private:
  const Options options_;
};

}  // namespace perceptrond
