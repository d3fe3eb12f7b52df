// Checks a journal that no server uses, or a fleet's: each model is restored as a server restores it, and so
// compared with what its records say of themselves (docs/journal.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/journal/rocksdb/backups.h"
#include "perceptron/storage/v1/verification.pb.h"
#include "server/config/options.h"

namespace perceptrond {

// Verifies the journal of a data directory, and changes nothing. O(journal). NOT_FOUND if there is
// none; UNAVAILABLE if it cannot be read, or a server uses it.
absl::StatusOr<::perceptron::storage::v1::Verification> VerifyDirectory(
    const std::string& directory);
// Verifies a fleet's journal, which servers may use meanwhile, and changes nothing. NOT_FOUND if there is none;
// FAILED_PRECONDITION if it is a copy that is not whole; UNAVAILABLE if the database cannot be read.
absl::StatusOr<::perceptron::storage::v1::Verification> VerifyFleet(const std::string& fleet,
                                                                    const Options& options);
// Verifies a backup in place: first its files' checksums.
::perceptron::storage::v1::Verification VerifyBackup(const std::string& directory,
                                                     const Backup& backup);

}  // namespace perceptrond
