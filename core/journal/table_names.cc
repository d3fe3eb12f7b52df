// A journal in a table: the names of models, and aliases.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/stored_message.h"
#include "core/journal/table_journal.h"
#include "core/journal/table_keys.h"

namespace perceptrond {
namespace {

using table_keys::AllOf;
using table_keys::Only;

// How soon a change by another opener is noticed that nothing announced.
constexpr absl::Duration kFollowInterval = absl::Milliseconds(250);
// How often a change of names is tried again: of openers that change names at once, one does each time.
constexpr int kMostNamesTries = 100;

// Whether names are answered from memory: the database does not answer, or not as it should, as after its schema was dropped.
bool IsAway(const absl::Status& status) {
  return !status.ok() && !absl::IsNotFound(status) && !absl::IsDataLoss(status);
}

absl::Status NoSuchModel(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no model ", name));
}

bool Keeps(const storage::ModelHeader& header, const storage::KeptSnapshot& kept) {
  const auto& all = header.kept_snapshots();
  return std::any_of(all.begin(), all.end(), [&](const storage::KeptSnapshot& one) {
    return one.number() == kept.number() && one.epoch() == kept.epoch();
  });
}

}  // namespace

absl::Status TableJournal::ChangeNames(const MakeNamesChange& make) {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  Partition& partition = *partitions_[names()];
  MutexLock names_lock(&names_mutex_);
  MutexLock lock(&partition.mutex);
  for (int i = 0; i < kMostNamesTries; ++i) {
    // Others may have changed names.
    if (options_.held_bytes > 0) partition.head.reset();
    if (absl::Status status = KnowHead(names(), partition); !status.ok()) return status;
    if (absl::Status status = CatchUp(*partition.head); !status.ok()) return status;
    NamesChange names_change;
    if (absl::Status status = make(names_change); !status.ok()) return status;
    storage::PartitionHead next = *partition.head;
    next.set_sequence(next.sequence() + 1);
    TableChange& change = names_change.change;
    absl::Status status = HoldEntry(names(), names_change.entry, next, change);
    if (status.ok()) status = DropEntries(names(), next, change);
    if (!status.ok()) return status;
    const absl::StatusOr<bool> done =
        CommitAt(names(), partition, change, std::move(next), /*sync=*/true);
    if (!done.ok()) return done.status();
    if (!*done) continue;
    names_seen_ = partition.head->sequence();
    names_hash_ = partition.head->hash();
    ApplyOwn(names_change.entry);
    return absl::OkStatus();
  }
  return absl::UnavailableError("journal: others change names all the time");
}

absl::Status TableJournal::CatchUp(const storage::PartitionHead& head) {
  if (options_.held_bytes == 0 || (head.sequence() == names_seen_ && head.hash() == names_hash_)) {
    names_seen_ = head.sequence();
    return absl::OkStatus();
  }
  // After a fail-over that lost commits.
  if (head.sequence() <= names_seen_) return ReadAllNames();
  absl::Status failed;
  const std::string begin = table_keys::Entry(names(), names_seen_ + 1);
  const KeyRange range{begin, table_keys::Entry(names(), head.sequence() + 1)};
  absl::Status status =
      table_->Scan(range, [&](absl::string_view key,
                              absl::string_view value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(names_mutex_) {
        const uint64_t next = table_keys::ReadNumber(key.substr(begin.size() - 8));
        if (next != names_seen_ + 1) return false;
        storage::NamesEntry entry;
        std::optional<std::string> hash = names_hash_;
        failed = table_rows::ParseEntry(value, entry, hash);
        if (!failed.ok()) return false;
        names_seen_ = next;
        names_hash_ = *std::move(hash);
        ApplyNames(entry);
        return true;
      });
  if (status.ok() && !absl::IsOutOfRange(failed)) status = failed;
  if (!status.ok()) return status;
  // Others have dropped some, or they are of another log.
  const bool is_read = names_seen_ == head.sequence() && names_hash_ == head.hash();
  return is_read ? absl::OkStatus() : ReadAllNames();
}

absl::Status TableJournal::ReadAllNames() {
  const bool is_shared = options_.held_bytes > 0;
  std::vector<KeyRange> ranges = {AllOf(table_keys::Alias("")), Only(table_keys::Head(names()))};
  if (is_shared) ranges.push_back(AllOf(table_keys::Header("")));
  const absl::StatusOr<std::unique_ptr<TableReader>> reader = table_->Freeze(ranges);
  if (!reader.ok()) return reader.status();
  const absl::StatusOr<storage::PartitionHead> head = ReadHead(**reader, names());
  if (!head.ok()) return head.status();
  absl::Status failed;
  std::set<std::string> aliases;
  absl::Status status = (*reader)->Scan(ranges[0], [&](absl::string_view, absl::string_view value) {
    Alias alias;
    failed = ParseStored(value, alias, "an alias");
    if (!failed.ok()) return false;
    aliases_.Put(alias);
    aliases.insert(alias.name());
    return true;
  });
  std::map<std::string, storage::ModelHeader, std::less<>> headers;
  if (status.ok() && failed.ok() && is_shared) {
    status = (*reader)->Scan(ranges[2], [&](absl::string_view, absl::string_view value) {
      storage::ModelHeader header;
      failed = ParseStored(value, header, "a model's header");
      std::string name = header.model().name();
      headers.insert_or_assign(std::move(name), std::move(header));
      return failed.ok();
    });
  }
  if (status.ok()) status = failed;
  if (!status.ok()) return status;
  for (const Alias& alias : aliases_.List("", SIZE_MAX))
    if (!aliases.contains(alias.name())) aliases_.Remove(alias.name());
  names_seen_ = head->sequence();
  names_hash_ = head->hash();
  std::map<std::string, storage::ModelHeader, std::less<>> before = headers;
  {
    MutexLock lock(&headers_mutex_);
    headers_.swap(before);
  }
  if (watcher_ == nullptr) return absl::OkStatus();
  for (const auto& [name, header] : before) {
    const auto now = headers.find(name);
    // Another log may have given its id to another model.
    if (now == headers.end() || now->second.id() != header.id() ||
        now->second.model().uid() != header.model().uid())
      watcher_(header, true);
  }
  for (const auto& [name, header] : headers) watcher_(header, false);
  return absl::OkStatus();
}

void TableJournal::ApplyOwn(const storage::NamesEntry& entry) {
  for (const Alias& alias : entry.aliases()) aliases_.Put(alias);
  for (const std::string& alias : entry.deleted_aliases()) aliases_.Remove(alias);
  if (options_.held_bytes > 0) {
    MutexLock lock(&headers_mutex_);
    if (entry.has_removed()) headers_.erase(entry.removed().model().name());
    if (entry.has_model()) headers_.insert_or_assign(entry.model().model().name(), entry.model());
    return;
  }
  MutexLock lock(&headers_mutex_);
  if (!count_.has_value()) return;
  if (entry.created()) ++*count_;
  if (entry.has_removed() && !entry.has_model()) --*count_;
}

void TableJournal::ApplyNames(const storage::NamesEntry& entry) {
  ApplyOwn(entry);
  if (watcher_ == nullptr) return;
  if (entry.has_removed()) {
    watcher_(entry.removed(), true);
  } else if (entry.has_model()) {
    watcher_(entry.model(), false);
  }
}

absl::Status TableJournal::Refresh() {
  return options_.held_bytes == 0 ? absl::OkStatus() : ReadNames();
}

absl::Status TableJournal::ReadNames() {
  MutexLock lock(&names_mutex_);
  const absl::StatusOr<storage::PartitionHead> head = ReadHead(*table_, names());
  return head.ok() ? CatchUp(*head) : head.status();
}

void TableJournal::WatchModels(ModelWatcher watcher) {
  // What was changed before it does not hear, if that can be read now.
  if (watcher != nullptr) Refresh().IgnoreError();
  MutexLock lock(&names_mutex_);
  watcher_ = std::move(watcher);
}

void TableJournal::FollowNames() {
  uint64_t seen = 0;
  while (true) {
    {
      MutexLock lock(&names_mutex_);
      if (stopping_) return;
    }
    seen = table_->AwaitCommit(seen, kFollowInterval);
    // It is tried again.
    is_away_ = IsAway(ReadNames());
  }
}

absl::StatusOr<storage::ModelHeader> TableJournal::Find(absl::string_view name) {
  absl::StatusOr<storage::ModelHeader> header =
      is_away_ ? absl::UnavailableError("journal: the names of models cannot be read")
               : ReadHeader(name);
  if (!IsAway(header.status())) return header;
  MutexLock lock(&headers_mutex_);
  const auto found = headers_.find(name);
  return found == headers_.end() ? header : found->second;
}

absl::StatusOr<storage::ModelHeader> TableJournal::ReadHeader(absl::string_view name) {
  storage::ModelHeader header;
  const absl::StatusOr<bool> found =
      table_rows::Read(*table_, table_keys::Header(name), header, "a model's header");
  if (!found.ok()) return found.status();
  if (!*found) return NoSuchModel(name);
  return header;
}

absl::StatusOr<bool> TableJournal::Exists(absl::string_view name) {
  const absl::StatusOr<storage::ModelHeader> found = ReadHeader(name);
  if (found.ok()) return true;
  if (absl::IsNotFound(found.status())) return false;
  return found.status();
}

absl::StatusOr<std::vector<storage::ModelHeader>> TableJournal::List(absl::string_view after,
                                                                     size_t limit) {
  std::vector<storage::ModelHeader> page;
  if (limit == 0) return page;
  absl::Status failed;
  KeyRange range = AllOf(table_keys::Header(""));
  if (!after.empty()) range.begin = Only(table_keys::Header(after)).end;
  absl::Status status =
      is_away_ ? absl::UnavailableError("journal: the names of models cannot be read")
               : table_->Scan(range, [&](absl::string_view, absl::string_view value) {
                   failed = ParseStored(value, page.emplace_back(), "a model's header");
                   return failed.ok() && page.size() < limit;
                 });
  if (status.ok()) status = failed;
  if (IsAway(status) && options_.held_bytes > 0) {
    page.clear();
    MutexLock lock(&headers_mutex_);
    for (auto it = headers_.upper_bound(after); it != headers_.end() && page.size() < limit; ++it)
      page.push_back(it->second);
    return page;
  }
  if (!status.ok()) return status;
  return page;
}

absl::StatusOr<uint64_t> TableJournal::Count() {
  // As the names were read last: those who look at figures do not wait for the table.
  if (const std::optional<uint64_t> known = KnownCount(); known.has_value()) return *known;
  MutexLock lock(&names_mutex_);
  return CountLocked();
}

std::optional<uint64_t> TableJournal::KnownCount() {
  MutexLock lock(&headers_mutex_);
  return options_.held_bytes > 0 ? headers_.size() : count_;
}

absl::StatusOr<uint64_t> TableJournal::CountLocked() {
  if (const std::optional<uint64_t> known = KnownCount(); known.has_value()) return *known;
  uint64_t count = 0;
  absl::Status status = table_->Scan(AllOf(table_keys::Header("")), [&](auto, auto) {
    ++count;
    return true;
  });
  if (!status.ok()) return status;
  MutexLock lock(&headers_mutex_);
  count_ = count;
  return count;
}

// With names_mutex_ held, as by all that ChangeNames calls.
absl::Status TableJournal::Ask(const ModelGuard& guard) {
  return AskGuard(
      guard, [&](absl::string_view name) { return ReadHeader(name); },
      [&] {
        names_mutex_.AssertHeld();
        return CountLocked();
      });
}

absl::StatusOr<uint64_t> TableJournal::NextId(TableChange& change) {
  const std::string key = table_keys::Meta("last_id");
  const absl::StatusOr<std::optional<std::string>> last = table_->Get(key);
  if (!last.ok()) return last.status();
  const uint64_t id = last->has_value() ? table_keys::ReadNumber(**last) + 1 : 1;
  change.puts.push_back({key, table_keys::Number(id)});
  return id;
}

absl::Status TableJournal::CreateModel(storage::ModelHeader& header, const ModelGuard& guard) {
  const std::string& name = header.model().name();
  return ChangeNames([&](NamesChange& names) -> absl::Status {
    const absl::StatusOr<bool> exists = Exists(name);
    if (!exists.ok()) return exists.status();
    if (*exists) return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
    if (absl::Status status = Ask(guard); !status.ok()) return status;
    const absl::StatusOr<uint64_t> id = NextId(names.change);
    if (!id.ok()) return id.status();
    header.set_id(*id);
    names.change.puts.push_back({table_rows::IsAlive(*id).key, ""});
    *names.entry.mutable_model() = header;
    names.entry.set_created(true);
    return table_rows::Put(table_keys::Header(name), header, names.change);
  });
}

absl::Status TableJournal::Replace(const storage::ModelHeader& header,
                                   const storage::ModelHeader& before) {
  const std::string& name = header.model().name();
  return ChangeNames([&](NamesChange& names) -> absl::Status {
    const absl::StatusOr<storage::ModelHeader> found = ReadHeader(name);
    if (!found.ok()) return found.status();
    if (found->id() != header.id()) return NoSuchModel(name);
    if (!IsSame(*found, before)) return ChangedByAnother(name);
    *names.entry.mutable_model() = header;
    for (const storage::KeptSnapshot& kept : before.kept_snapshots()) {
      if (!Keeps(header, kept))
        names.change.deletions.push_back(table_rows::KeptPieces(header.id(), kept));
    }
    return table_rows::Put(table_keys::Header(name), header, names.change);
  });
}

absl::Status TableJournal::Rename(const storage::ModelHeader& header,
                                  const storage::ModelHeader& before) {
  const std::string& name_before = before.model().name();
  const std::string& name = header.model().name();
  return ChangeNames([&](NamesChange& names) -> absl::Status {
    const absl::StatusOr<storage::ModelHeader> found = ReadHeader(name_before);
    if (!found.ok()) return found.status();
    if (found->id() != header.id()) return NoSuchModel(name_before);
    if (!IsSame(*found, before)) return ChangedByAnother(name_before);
    const absl::StatusOr<bool> exists = Exists(name);
    if (!exists.ok()) return exists.status();
    if (*exists) return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
    TableChange& change = names.change;
    change.deletions.push_back(Only(table_keys::Header(name_before)));
    absl::Status status = table_rows::Put(table_keys::Header(name), header, change);
    for (Alias alias : aliases_.AllOf(name_before)) {
      alias.set_model(name);
      if (status.ok()) status = table_rows::Put(table_keys::Alias(alias.name()), alias, change);
      *names.entry.add_aliases() = std::move(alias);
    }
    *names.entry.mutable_model() = header;
    *names.entry.mutable_removed() = *found;
    return status;
  });
}

absl::Status TableJournal::DeleteModel(absl::string_view name, const ModelGuard& guard) {
  return ChangeNames([&](NamesChange& names) -> absl::Status {
    const absl::StatusOr<storage::ModelHeader> header = ReadHeader(name);
    if (!header.ok()) return header.status();
    if (const std::vector<Alias> aliases = aliases_.AllOf(name); !aliases.empty())
      return NamedBy(aliases.front().name(), name);
    if (absl::Status status = Ask(guard); !status.ok()) return status;
    names.change.deletions.push_back(Only(table_keys::Header(name)));
    // By itself, and first: it waits for whatever is being written of the model, which the next deletion then sees.
    names.change.deletions.push_back(Only(table_rows::IsAlive(header->id()).key));
    names.change.deletions.push_back(AllOf(table_keys::Model(header->id())));
    *names.entry.mutable_removed() = *header;
    return absl::OkStatus();
  });
}

absl::Status TableJournal::PutAlias(const Alias& alias, absl::string_view etag) {
  return ChangeNames([&](NamesChange& names) -> absl::Status {
    if (absl::Status status = aliases_.CheckEtag(alias.name(), etag); !status.ok()) return status;
    const absl::StatusOr<bool> exists = Exists(alias.model());
    if (!exists.ok()) return exists.status();
    if (!*exists) return NoSuchModel(alias.model());
    *names.entry.add_aliases() = alias;
    return table_rows::Put(table_keys::Alias(alias.name()), alias, names.change);
  });
}

absl::Status TableJournal::DeleteAlias(absl::string_view name, absl::string_view etag) {
  return ChangeNames([&](NamesChange& names) -> absl::Status {
    if (absl::Status status = aliases_.CheckEtag(name, etag); !status.ok()) return status;
    names.entry.add_deleted_aliases(std::string(name));
    names.change.deletions.push_back(Only(table_keys::Alias(name)));
    return absl::OkStatus();
  });
}

}  // namespace perceptrond
