// A table in memory: for models that need not outlive the process, and for tests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/journal/table.h"
#include "core/sync/mutex.h"

namespace perceptrond {

class MemoryTable final : public Table {
 public:
  MemoryTable() : MemoryTable(std::make_shared<Shared>()) {}
  ~MemoryTable() override;
  // Another opener of the same table, as another server of a fleet is.
  std::unique_ptr<MemoryTable> OpenAgain() const;

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override;
  absl::Status Scan(const KeyRange& range, OnRow on_row) override;
  absl::StatusOr<std::unique_ptr<TableReader>> Freeze(std::span<const KeyRange> ranges) override;
  absl::StatusOr<bool> Commit(const TableChange& change, bool sync) override;
  absl::Status Sync() override { return absl::OkStatus(); }
  uint64_t AwaitCommit(uint64_t seen, absl::Duration timeout) override;
  void Close() override;
  absl::Status Announce(absl::string_view message) override;
  void Listen(std::function<void(absl::string_view message)> listener) override;

 private:
  using Rows = std::map<std::string, std::shared_ptr<const std::string>, std::less<>>;
  class Frozen;
  // What all openers have.
  struct Shared {
    Mutex mutex;
    Rows rows ABSL_GUARDED_BY(mutex);
    uint64_t commits ABSL_GUARDED_BY(mutex) = 0;
    // Held while one of them is called.
    Mutex listeners_mutex;
    std::map<const MemoryTable*, std::function<void(absl::string_view)>> listeners
        ABSL_GUARDED_BY(listeners_mutex);
  };

  explicit MemoryTable(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  const std::shared_ptr<Shared> shared_;
  bool closed_ ABSL_GUARDED_BY(shared_->mutex) = false;
};

}  // namespace perceptrond
