#include "server/maintenance/verify.h"

#include <memory>
#include <utility>

#include "core/journal/rocksdb_journal.h"
#include "core/store/store.h"

namespace perceptrond {
namespace {

using ::perceptron::storage::v1::ModelVerification;
using ::perceptron::storage::v1::Verification;

constexpr size_t kNamesAtOnce = 256;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

ModelVerification VerifyModel(Store& store, const std::string& name) {
  ModelVerification found;
  found.set_name(name);
  const absl::StatusOr<ModelSummary> summary = store.Get(name);
  if (!summary.ok()) {
    found.set_error(Text(summary.status()));
    return found;
  }
  found.set_revision(static_cast<int64_t>(summary->revision));
  found.set_examples(static_cast<int64_t>(summary->report.examples()));
  return found;
}

void VerifyModels(Store& store, Verification& found) {
  std::string after;
  do {
    absl::StatusOr<Store::Found> page = store.List(after, kNamesAtOnce);
    if (!page.ok()) return found.set_error(Text(page.status()));
    std::vector<std::string> names = page->unreachable;
    for (const ModelSummary& summary : page->models) names.push_back(summary.settings.name());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) *found.add_models() = VerifyModel(store, name);
    after = page->next;
  } while (!after.empty());
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
  if (!journal.ok()) {
    found.set_error(Text(journal.status()));
    return absl::OkStatus();
  }
  uint64_t lost = (*journal)->Stats().lost_writes;
  if ((*journal)->sequence() < sequence) lost = sequence - (*journal)->sequence();
  found.set_lost_writes(static_cast<int64_t>(lost));
  if (const absl::Status tables = (*journal)->VerifyTables(); !tables.ok())
    found.set_error(Text(tables));
  Store store(*std::move(journal), Store::Options());
  VerifyModels(store, found);
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
