// Opens a RocksDB directory, and explains its errors to operators.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/journal/rocksdb_journal.h"

namespace perceptrond {

// DATA_LOSS for damage, UNAVAILABLE for every other error.
absl::Status ToAbsl(const rocksdb::Status& status);

// Opens or creates the database in the directory, whose DirectoryLock the caller holds. Errors as
// ToAbsl.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocksDb(const RocksDbJournal::Options& options);

// Adds to DATA_LOSS where the damage is and what to do about it. Returns other statuses unchanged.
absl::Status WithDamageAdvice(absl::Status status, const std::string& directory);

}  // namespace perceptrond
