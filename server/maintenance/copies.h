// Moves all models from a data directory to a fleet, or back.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "perceptron/storage/v1/verification.pb.h"
#include "server/config/options.h"

namespace perceptrond {

// Makes the copy of a journal that no server uses: of a fleet in an empty directory, or of a directory in a fleet without
// models. It keeps its id and its history, so that producers go on. INVALID_ARGUMENT if both are of one kind;
// other errors are JournalCopy's and those of opening the journals. Interrupted, it goes on where it was when it is called
// again.
absl::StatusOr<::perceptron::storage::v1::Migration> Migrate(const std::string& from,
                                                             const std::string& to,
                                                             const Options& options);

}  // namespace perceptrond
