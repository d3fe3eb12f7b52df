#include "core/journal/table_journal.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/stored_message.h"
#include "core/journal/table_keys.h"

namespace perceptrond {
namespace {

// The version of the rows' layout. It is raised for one that an older server would misread, and for a new order of
// arithmetic in an update.
constexpr absl::string_view kFormat = "2";
constexpr uint64_t kMostPartitions = 1 << 16;
// A server that has written the state of a new model for longer is taken for dead; one that is not is refused its commit.
constexpr absl::Duration kMostWriteTime = absl::Hours(1);

absl::Status NotForImport() {
  return absl::FailedPreconditionError("the journal was not opened for an import");
}

}  // namespace

absl::Status table_rows::Put(std::string key, const google::protobuf::MessageLite& message,
                             TableChange& change) {
  change.puts.push_back({std::move(key), ""});
  return SerializeStored(message, change.puts.back().value);
}

absl::StatusOr<bool> table_rows::Read(TableReader& reader, const std::string& key,
                                      google::protobuf::MessageLite& message,
                                      absl::string_view what) {
  const absl::StatusOr<std::optional<std::string>> value = reader.Get(key);
  if (!value.ok()) return value.status();
  if (!value->has_value()) return false;
  if (absl::Status status = ParseStored(**value, message, what); !status.ok()) return status;
  return true;
}

TableChange::Condition table_rows::IsAlive(uint64_t model_id) {
  return {table_keys::Of(model_id, table_keys::Kind::kAlive), ""};
}

TableJournal::TableJournal(std::unique_ptr<Table> table, const Options& options)
    : table_(std::move(table)), options_(options) {}

TableJournal::~TableJournal() {
  {
    MutexLock lock(&names_mutex_);
    stopping_ = true;
  }
  table_->Close();
  if (names_thread_.joinable()) names_thread_.join();
  table_->Listen(nullptr);
}

absl::StatusOr<std::unique_ptr<TableJournal>> TableJournal::Open(std::unique_ptr<Table> table,
                                                                 const Options& options) {
  std::unique_ptr<TableJournal> journal(new TableJournal(std::move(table), options));
  if (absl::Status status = journal->Begin(); !status.ok()) return status;
  return journal;
}

absl::StatusOr<storage::PartitionHead> TableJournal::ReadHead(TableReader& reader,
                                                              uint32_t number) {
  storage::PartitionHead head;
  const absl::StatusOr<bool> found =
      table_rows::Read(reader, table_keys::Head(number), head, "the end of a partition");
  if (!found.ok()) return found.status();
  return head;
}

int64_t TableJournal::NextEpoch(const storage::PartitionHead& head) {
  return std::max(head.epoch() + 1, absl::ToUnixMicros(absl::Now()));
}

absl::StatusOr<std::string> TableJournal::ReadMeta(absl::string_view what) {
  const std::string key = table_keys::Meta(what);
  const absl::StatusOr<std::optional<std::string>> value = table_->Get(key);
  if (!value.ok()) return value.status();
  if (!value->has_value()) return absl::DataLossError(absl::StrCat("journal: no row ", key));
  return **value;
}

absl::Status TableJournal::CheckWritable() const {
  if (!options_.read_only) return absl::OkStatus();
  return absl::FailedPreconditionError("the journal was opened to be read only");
}

absl::StatusOr<bool> TableJournal::Write(const TableChange& change, bool sync) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  return table_->Commit(change, sync);
}

std::string TableJournal::NewId() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

absl::Status TableJournal::Begin() {
  const auto there = table_->Get(table_keys::Meta("format"));
  if (!there.ok()) return there.status();
  // Nothing if another has begun it.
  TableChange first;
  first.conditions.push_back({table_keys::Meta("format"), std::nullopt});
  first.puts = {{table_keys::Meta("format"), std::string(kFormat)},
                {table_keys::Meta("partitions"), table_keys::Number(options_.partitions)},
                {table_keys::Meta("id"), options_.id.empty() ? NewId() : options_.id}};
  if (options_.read_only) {
    if (!there->has_value()) return absl::NotFoundError("there is no journal");
  } else if (!there->has_value()) {
    const absl::StatusOr<bool> begun = table_->Commit(first, /*sync=*/true);
    // It is there, or not: the next read tells.
    if (!begun.ok() && !absl::IsUnknown(begun.status())) return begun.status();
  }
  const absl::StatusOr<std::string> format = ReadMeta("format");
  if (!format.ok()) return format.status();
  if (*format != kFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the journal has format ", absl::CHexEscape(*format), ", and this server reads format ",
        kFormat, ": use a server of the version that wrote it"));
  }
  absl::StatusOr<std::string> partitions = ReadMeta("partitions");
  absl::StatusOr<std::string> id = ReadMeta("id");
  if (!partitions.ok()) return partitions.status();
  if (!id.ok()) return id.status();
  const uint64_t count = table_keys::ReadNumber(*partitions);
  if (count == 0 || count > kMostPartitions)
    return absl::DataLossError("journal: the number of partitions is out of range");
  partition_count_ = static_cast<uint32_t>(count);
  id_ = *std::move(id);
  const absl::StatusOr<std::optional<std::string>> import = table_->Get(table_keys::Meta("import"));
  if (!import.ok()) return import.status();
  if (import->has_value() && !options_.import.has_value()) {
    return absl::FailedPreconditionError(
        "the journal is a copy that is not whole: run the command that makes it again");
  }
  for (uint32_t i = 0; i <= partition_count_; ++i)
    partitions_.push_back(std::make_unique<Partition>());
  {
    MutexLock lock(&names_mutex_);
    if (absl::Status status = ReadAllNames(); !status.ok()) return status;
  }
  if (options_.held_bytes == 0) {
    for (uint32_t number = 0; number < partition_count_; ++number) {
      const absl::StatusOr<storage::PartitionHead> head = ReadHead(*table_, number);
      if (!head.ok()) return head.status();
      opening_epoch_ = std::max(opening_epoch_, NextEpoch(*head));
    }
    // A failure leaves rows that only take space.
    if (!options_.read_only) DropUnfinished(absl::InfiniteFuture()).IgnoreError();
    return absl::OkStatus();
  }
  names_thread_ = std::thread([this] { FollowNames(); });
  return absl::OkStatus();
}

absl::Status TableJournal::DropUnfinished(absl::Time begun_before) {
  std::vector<TableRow> rows;
  absl::Status status =
      table_->Scan(table_keys::AllOf("b"), [&](absl::string_view key, absl::string_view value) {
        const bool is_known = value.size() == sizeof(uint64_t);
        const absl::Time begun =
            is_known ? absl::FromUnixNanos(static_cast<int64_t>(table_keys::ReadNumber(value)))
                     : absl::InfinitePast();
        if (begun < begun_before) rows.push_back({std::string(key), std::string(value)});
        return true;
      });
  for (const TableRow& row : rows) {
    if (!status.ok()) return status;
    TableChange change;
    change.conditions.push_back({row.key, row.value});
    change.deletions.push_back(table_keys::Only(row.key));
    change.deletions.push_back(
        table_keys::AllOf(table_keys::Model(table_keys::ReadNumber(row.key.substr(1)))));
    // One that was finished meanwhile stays.
    status = Write(change, /*sync=*/false).status();
  }
  return status;
}

absl::Status TableJournal::Sweep() {
  return options_.held_bytes == 0 ? absl::OkStatus() : DropUnfinished(absl::Now() - kMostWriteTime);
}

absl::Status TableJournal::ExcludeOthers() {
  // The only opener.
  if (options_.held_bytes == 0) return absl::OkStatus();
  Mutex mutex;
  bool heard = false;
  table_->Listen([&](absl::string_view) {
    MutexLock lock(&mutex);
    heard = true;
  });
  {
    MutexLock lock(&mutex);
    mutex.AwaitWithTimeout(absl::Condition(&heard), options_.exclusion_time);
  }
  table_->Listen(nullptr);
  if (heard) return absl::FailedPreconditionError("servers use the journal: stop them first");
  const absl::Status meanwhile = absl::FailedPreconditionError(
      "a server has used the journal meanwhile: stop it, and try again");
  const absl::StatusOr<storage::PartitionHead> names_end = ReadHead(*table_, names());
  if (!names_end.ok()) return names_end.status();
  if (excluded_names_.has_value() && *excluded_names_ != names_end->hash()) return meanwhile;
  excluded_names_ = names_end->hash();
  for (uint32_t number = 0; number < partition_count_; ++number) {
    Partition& partition = *partitions_[number];
    {
      MutexLock lock(&partition.mutex);
      if (partition.own_epoch > 0) {
        partition.head.reset();
        if (absl::Status status = KnowHead(number, partition); !status.ok()) return status;
        if (!IsWriter(partition)) return meanwhile;
        continue;
      }
    }
    for (bool taken = false; !taken;) {
      const absl::StatusOr<uint64_t> last = LastSequence(number);
      if (!last.ok()) return last.status();
      const absl::StatusOr<CommitOutcome> outcome = Seize(number, "", *last);
      if (absl::IsUnknown(outcome.status()))
        return absl::UnavailableError(outcome.status().message());
      if (!outcome.ok()) return outcome.status();
      // A writer that was not heard has written just now.
      taken = !outcome->stale;
    }
  }
  return absl::OkStatus();
}

absl::Status TableJournal::BeginImport() {
  if (!options_.import.has_value()) return NotForImport();
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  const std::string key = table_keys::Meta("import");
  const absl::StatusOr<std::optional<std::string>> begun = table_->Get(key);
  if (!begun.ok()) return begun.status();
  if (*begun == options_.import->id) return ExcludeOthers();
  if (begun->has_value())
    return absl::FailedPreconditionError("the journal is an unfinished copy of another one");
  if (absl::Status status = ExcludeOthers(); !status.ok()) return status;
  const absl::StatusOr<uint64_t> models = Count();
  if (!models.ok()) return models.status();
  if (*models > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the journal has ", *models, " models: name an empty one"));
  }
  TableChange change;
  change.puts = {{key, options_.import->id}, {table_keys::Meta("id"), options_.import->id}};
  id_ = options_.import->id;
  if (absl::Status status = Write(change, /*sync=*/true).status(); !status.ok()) return status;
  // From now on no server can open it, and one that did so meanwhile is heard.
  return ExcludeOthers();
}

absl::Status TableJournal::FinishImport() {
  if (!options_.import.has_value()) return NotForImport();
  TableChange change;
  change.deletions.push_back(table_keys::Only(table_keys::Meta("import")));
  absl::Status status = Write(change, /*sync=*/true).status();
  // A table that never waits for the disk waits now.
  return status.ok() ? table_->Sync() : status;
}

absl::StatusOr<Backup> TableJournal::BackUp(const Backups& /*backups*/, uint32_t /*keep*/) {
  return absl::FailedPreconditionError("only a data directory can be backed up");
}

}  // namespace perceptrond
