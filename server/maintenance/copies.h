// What makes one journal of another: a fleet's backup, its restoration, and a migration either way.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/journal/backups.h"
#include "perceptron/storage/v1/verification.pb.h"
#include "server/config/options.h"

namespace perceptrond {

// Errors of each, besides those it names, are JournalCopy's and those of opening the journals. Interrupted, each goes on
// where it was when it is called again.

// Adds a backup of a fleet, which may serve meanwhile, to a directory, as Backups::Create: each model is as it was at
// one moment.
absl::StatusOr<Backup> BackUpFleet(const std::string& fleet, const std::string& backups,
                                   uint32_t keep, const Options& options);
// Makes a fleet that has no models, and that no server uses, the copy of a backup. It begins a new history.
absl::Status RestoreToFleet(const std::string& backups, uint32_t number, const std::string& fleet,
                            const Options& options);
// Makes the copy of a journal that no server uses: of a fleet in an empty directory, or of a directory in a fleet without
// models. It keeps its id and its history, so that producers go on. INVALID_ARGUMENT if both are of one kind.
absl::StatusOr<::perceptron::storage::v1::Migration> Migrate(const std::string& from,
                                                             const std::string& to,
                                                             const Options& options);

}  // namespace perceptrond
