// The journals that a command names: a data directory, or the database of a fleet.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/journal/journal.h"
#include "core/store/journal_copy.h"
#include "perceptron/storage/v1/verification.pb.h"
#include "server/config/options.h"

namespace perceptrond {

// Whether the text names a database, and not a directory.
bool IsFleet(const std::string& journal);
// Sets the database of `options`. INVALID_ARGUMENT for a text that names none.
absl::Status SetFleet(const std::string& journal, Options& options);

// Opens a journal to be read. `options` has the fleet's settings. UNAVAILABLE if a server uses the directory; a fleet
// may be in use. Other errors as RocksDbJournal::Open and OpenFleetJournal.
absl::StatusOr<std::unique_ptr<Journal>> OpenToRead(const std::string& journal, Options options);

// The outcome of MakeCopy.
struct MadeCopy {
  std::unique_ptr<Journal> journal;
  JournalCopy::Statistics statistics;
};

// Makes `to` a copy of `from`, and compares the two. FinishImport is the caller's. Says on a terminal how far it is.
// Errors as JournalCopy's, and those of opening `to`.
absl::StatusOr<MadeCopy> MakeCopy(Journal& from, const std::string& to, const Options& options,
                                  const ImportOptions& import);

}  // namespace perceptrond
