// Opens the store of models as the server's options say.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/store/store.h"
#include "server/config/options.h"

namespace perceptrond {

// Opens the journal, waiting a few seconds for a previous server to release it, and the store on
// it. What an operator must know of the journal, and failures later on, are logged. Errors as
// RocksDbJournal::Open.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Options& options);

}  // namespace perceptrond
