// Checks a journal that no server uses: each model is restored as a server restores it, and so
// compared with what its records say of themselves (docs/journal.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/journal/backups.h"
#include "perceptron/storage/v1/verification.pb.h"

namespace perceptrond {

// Verifies the journal of a data directory, and changes nothing. O(journal). NOT_FOUND if there is
// none; UNAVAILABLE if it cannot be read, or a server uses it.
absl::StatusOr<::perceptron::storage::v1::Verification> VerifyDirectory(
    const std::string& directory);
// Verifies a backup in place: first its files' checksums.
::perceptron::storage::v1::Verification VerifyBackup(const std::string& directory,
                                                     const Backup& backup);

}  // namespace perceptrond
