#include "core/journal/memory_table.h"

#include <utility>
#include <vector>

namespace perceptrond {

class MemoryTable::Frozen final : public TableReader {
 public:
  explicit Frozen(Rows rows) : rows_(std::move(rows)) {}

  absl::StatusOr<std::optional<std::string>> Get(absl::string_view key) override {
    const auto found = rows_.find(key);
    return found == rows_.end() ? std::nullopt : std::optional(*found->second);
  }
  absl::Status Scan(const KeyRange& range, OnRow on_row) override {
    for (auto it = rows_.lower_bound(range.begin); it != rows_.end() && it->first < range.end; ++it)
      if (!on_row(it->first, *it->second)) break;
    return absl::OkStatus();
  }

 private:
  const Rows rows_;
};

MemoryTable::~MemoryTable() { Listen(nullptr); }

std::unique_ptr<MemoryTable> MemoryTable::OpenAgain() const {
  return std::unique_ptr<MemoryTable>(new MemoryTable(shared_));
}

absl::StatusOr<std::optional<std::string>> MemoryTable::Get(absl::string_view key) {
  MutexLock lock(&shared_->mutex);
  const auto found = shared_->rows.find(key);
  return found == shared_->rows.end() ? std::nullopt : std::optional(*found->second);
}

absl::Status MemoryTable::Scan(const KeyRange& range, OnRow on_row) {
  // Called without the lock, some rows at a time.
  constexpr size_t kRowsAtOnce = 256;
  std::string next = range.begin;
  std::vector<std::pair<std::string, std::shared_ptr<const std::string>>> rows;
  do {
    rows.clear();
    {
      MutexLock lock(&shared_->mutex);
      for (auto it = shared_->rows.lower_bound(next);
           it != shared_->rows.end() && it->first < range.end && rows.size() < kRowsAtOnce; ++it)
        rows.emplace_back(it->first, it->second);
    }
    for (const auto& [key, value] : rows)
      if (!on_row(key, *value)) return absl::OkStatus();
    if (!rows.empty()) next = rows.back().first + '\0';
  } while (rows.size() == kRowsAtOnce);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TableReader>> MemoryTable::Freeze(std::span<const KeyRange> ranges) {
  Rows rows;
  MutexLock lock(&shared_->mutex);
  for (const KeyRange& range : ranges) {
    rows.insert(shared_->rows.lower_bound(range.begin), shared_->rows.lower_bound(range.end));
  }
  return std::make_unique<Frozen>(std::move(rows));
}

absl::StatusOr<bool> MemoryTable::Commit(const TableChange& change, bool /*sync*/) {
  MutexLock lock(&shared_->mutex);
  Rows& rows = shared_->rows;
  for (const TableChange::Condition& condition : change.conditions) {
    const auto found = rows.find(condition.key);
    const bool is_there = found != rows.end();
    if (is_there != condition.value.has_value() || (is_there && *found->second != *condition.value))
      return false;
  }
  for (const KeyRange& range : change.deletions)
    rows.erase(rows.lower_bound(range.begin), rows.lower_bound(range.end));
  for (const TableRow& row : change.puts)
    rows.insert_or_assign(row.key, std::make_shared<const std::string>(row.value));
  ++shared_->commits;
  return true;
}

uint64_t MemoryTable::AwaitCommit(uint64_t seen, absl::Duration timeout) {
  const auto has_more = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared_->mutex) {
    return shared_->commits > seen || closed_;
  };
  MutexLock lock(&shared_->mutex);
  shared_->mutex.AwaitWithTimeout(absl::Condition(&has_more), timeout);
  return shared_->commits;
}

void MemoryTable::Close() {
  MutexLock lock(&shared_->mutex);
  closed_ = true;
}

absl::Status MemoryTable::Announce(absl::string_view message) {
  MutexLock lock(&shared_->listeners_mutex);
  for (const auto& [table, listener] : shared_->listeners)
    if (table != this) listener(message);
  return absl::OkStatus();
}

void MemoryTable::Listen(std::function<void(absl::string_view)> listener) {
  MutexLock lock(&shared_->listeners_mutex);
  if (listener == nullptr) {
    shared_->listeners.erase(this);
  } else {
    shared_->listeners[this] = std::move(listener);
  }
}

}  // namespace perceptrond
