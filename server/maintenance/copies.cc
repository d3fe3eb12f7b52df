#include "server/maintenance/copies.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/maintenance/journals.h"

namespace perceptrond {

using ::perceptron::storage::v1::Migration;

absl::StatusOr<Migration> Migrate(const std::string& from, const std::string& to,
                                  const Options& options) {
  if (IsFleet(from) == IsFleet(to)) {
    return absl::InvalidArgumentError(
        "one of the two must be a fleet, as postgres://..., and one a data directory");
  }
  const absl::StatusOr<std::unique_ptr<Journal>> source = OpenToRead(from, options);
  if (!source.ok()) return source.status();
  if (absl::Status status = (*source)->ExcludeOthers(); !status.ok()) return status;
  // A power failure may have taken what was acknowledged.
  const bool may_lack = (*source)->Stats().may_lack_updates;
  const ImportOptions import{(*source)->Id(), may_lack ? "" : (*source)->HistoryId()};
  const absl::StatusOr<MadeCopy> copy = MakeCopy(**source, to, options, import);
  if (!copy.ok()) return copy.status();
  // A server that came meanwhile may have learned.
  if (absl::Status status = (*source)->ExcludeOthers(); !status.ok()) return status;
  if (absl::Status status = copy->journal->FinishImport(); !status.ok()) return status;
  Migration migration;
  migration.set_from(from);
  migration.set_to(to);
  migration.set_models(static_cast<int64_t>(copy->statistics.models));
  migration.set_copied_before(static_cast<int64_t>(copy->statistics.copied_before));
  migration.set_bytes(static_cast<int64_t>(copy->statistics.bytes));
  migration.set_history_id(copy->journal->HistoryId());
  return migration;
}

}  // namespace perceptrond
