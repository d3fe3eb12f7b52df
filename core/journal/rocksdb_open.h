// Opening a RocksDB directory, and what its errors mean to whoever runs the server.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/journal/rocksdb_journal.h"

namespace perceptrond {

// DATA_LOSS for damage, UNAVAILABLE for anything else.
absl::Status ToAbsl(const rocksdb::Status& status);

// Opens or creates the database in the directory, whose DirectoryLock the caller holds. Errors as
// ToAbsl.
absl::StatusOr<std::unique_ptr<rocksdb::DB>> OpenRocksDb(const RocksDbJournal::Options& options);

// Damage, with where it is and what can be done about it; other statuses as they are.
absl::Status WithDamageAdvice(absl::Status status, const std::string& directory);

}  // namespace perceptrond
