#include "server/maintenance/verify.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/store/store.h"
#include "server/maintenance/journals.h"

namespace perceptrond {
namespace {

using ::perceptron::storage::v1::ModelVerification;
using ::perceptron::storage::v1::Verification;

constexpr size_t kNamesAtOnce = 256;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// A model that was deleted meanwhile is none of the journal's.
void DropDeleted(Journal& journal, Verification& found) {
  auto& models = *found.mutable_models();
  models.erase(std::remove_if(models.begin(), models.end(),
                              [&](const ModelVerification& model) {
                                return !model.error().empty() &&
                                       absl::IsNotFound(journal.Find(model.name()).status());
                              }),
               models.end());
}

// The last error of a journal that could not be read goes to `unavailable`.
ModelVerification VerifyModel(Store& store, const std::string& name, absl::Status& unavailable) {
  ModelVerification found;
  found.set_name(name);
  const absl::StatusOr<ModelSummary> summary = store.Get(name);
  if (absl::IsUnavailable(summary.status())) unavailable = summary.status();
  if (!summary.ok()) {
    found.set_error(Text(summary.status()));
    return found;
  }
  found.set_revision(static_cast<int64_t>(summary->revision));
  found.set_examples(static_cast<int64_t>(summary->report.examples()));
  return found;
}

absl::Status VerifyModels(Store& store, Verification& found) {
  absl::Status unavailable;
  std::string after;
  do {
    absl::StatusOr<Store::Found> page = store.List(after, kNamesAtOnce);
    if (!page.ok()) {
      found.set_error(Text(page.status()));
      return unavailable;
    }
    std::vector<std::string> names = page->unreachable;
    for (const ModelSummary& summary : page->models) names.push_back(summary.settings.name());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names)
      *found.add_models() = VerifyModel(store, name, unavailable);
    after = page->next;
  } while (!after.empty());
  return unavailable;
}

// Reads all of a journal; a damaged log up to the damage, and counts what is missing. NOT_FOUND or
// UNAVAILABLE if there is none that can be read.
absl::Status VerifyJournal(RocksDbJournal::Options options, uint64_t sequence,
                           Verification& found) {
  options.read_only = true;
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(options);
  if (absl::IsNotFound(journal.status()) || absl::IsUnavailable(journal.status()))
    return journal.status();
  if (absl::IsDataLoss(journal.status())) {
    found.set_error(Text(journal.status()));
    options.accept_data_loss = true;
    journal = RocksDbJournal::Open(options);
  }
  // The first error is the one that says what is wrong.
  const auto set_error = [&found](const absl::Status& status) {
    if (!status.ok() && found.error().empty()) found.set_error(Text(status));
  };
  set_error(journal.status());
  if (!journal.ok()) return absl::OkStatus();
  uint64_t lost = (*journal)->Stats().lost_writes;
  if ((*journal)->sequence() < sequence) lost = sequence - (*journal)->sequence();
  found.set_lost_writes(static_cast<int64_t>(lost));
  set_error((*journal)->Verify());
  Store store(*std::move(journal), Store::Options());
  // A disk that cannot be read is damage.
  (void)VerifyModels(store, found);
  return absl::OkStatus();
}

Verification WithVerdict(Verification found) {
  bool sound = found.error().empty() && found.lost_writes() == 0;
  for (const ModelVerification& model : found.models()) sound &= model.error().empty();
  found.set_sound(sound);
  return found;
}

}  // namespace

absl::StatusOr<Verification> VerifyDirectory(const std::string& directory) {
  Verification found;
  found.set_directory(directory);
  RocksDbJournal::Options options;
  options.directory = directory;
  if (absl::Status status = VerifyJournal(std::move(options), 0, found); !status.ok())
    return status;
  return WithVerdict(std::move(found));
}

absl::StatusOr<Verification> VerifyFleet(const std::string& fleet, const Options& options) {
  absl::StatusOr<std::unique_ptr<Journal>> journal = OpenToRead(fleet, options);
  if (!journal.ok()) return journal.status();
  Journal& fleet_journal = **journal;
  Verification found;
  found.set_directory(fleet);
  const absl::Status entries = fleet_journal.Verify();
  if (absl::IsDataLoss(entries)) {
    found.set_error(Text(entries));
  } else if (!entries.ok()) {
    return entries;
  }
  Store store(*std::move(journal), Store::Options());
  if (absl::Status status = VerifyModels(store, found); !status.ok()) return status;
  if (absl::Status status = fleet_journal.Refresh(); !status.ok()) return status;
  DropDeleted(fleet_journal, found);
  return WithVerdict(std::move(found));
}

Verification VerifyBackup(const std::string& directory, const Backup& backup) {
  Verification found;
  found.set_directory(directory);
  found.set_backup(backup.number);
  const Backups backups(directory);
  absl::Status status = backups.Verify(backup.number);
  if (status.ok()) {
    status = backups.Read(backup.number, [&](const std::string& files, rocksdb::Env* env) {
      RocksDbJournal::Options options;
      options.directory = files;
      options.env = env;
      return VerifyJournal(std::move(options), backup.sequence, found);
    });
  }
  if (!status.ok()) found.set_error(Text(status));
  return WithVerdict(std::move(found));
}

}  // namespace perceptrond
