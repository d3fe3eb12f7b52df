// Opens the store of models as the server's options say.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/store/store.h"
#include "server/config/options.h"

namespace perceptrond {

// Opens the journal, waiting a few seconds for a previous server to release it, and the store on
// it. What an operator must know of the journal, and failures later on, are logged.
// `on_expired` as Store::Options. Errors as RocksDbJournal::Open.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(
    const Options& options, std::function<void(const std::string& model)> on_expired);

// What a fleet's journal is opened for: by a server; to be read, or to become a copy.
struct FleetUse {
  bool read_only = false;
  std::optional<ImportOptions> import;
};

// Opens the journal in PostgreSQL that the options name, waiting some seconds for a database that cannot be reached.
// Errors as PostgresTable::Open and TableJournal::Open.
absl::StatusOr<std::unique_ptr<Journal>> OpenFleetJournal(const Options& options,
                                                          const FleetUse& use);

}  // namespace perceptrond
