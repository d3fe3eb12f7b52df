#include "core/journal/jetstream/catalogue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/journal/jetstream/parts.h"
#include "core/journal/journal.h"
#include "core/sync/thread_name.h"

namespace perceptrond::jetstream {
namespace {

constexpr uint32_t kFormat = 1;
constexpr absl::Duration kTimeout = absl::Seconds(5);
// How often the follower looks whether it must end.
constexpr absl::Duration kPoll = absl::Milliseconds(200);
// A change that others come before again and again.
constexpr int kCatalogueAttempts = 100;

}  // namespace

absl::Status Catalogue::NoSuchModel(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no model ", name));
}

absl::StatusOr<std::unique_ptr<Catalogue>> Catalogue::Open(Stream& stream,
                                                           const storage::FleetSettings& settings,
                                                           bool may_import) {
  std::unique_ptr<Catalogue> catalogue(new Catalogue(stream, may_import));
  if (absl::Status status = catalogue->Begin(settings); !status.ok()) return status;
  catalogue->follower_ = std::thread([raw = catalogue.get()] {
    NameThisThread("catalogue");
    raw->Follow();
  });
  if (absl::StatusOr<uint64_t> all = catalogue->CatchUp(); !all.ok()) return all.status();
  return catalogue;
}

Catalogue::~Catalogue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (follower_.joinable()) follower_.join();
}

absl::Status Catalogue::Begin(const storage::FleetSettings& settings) {
  storage::CatalogueEntry first;
  *first.mutable_fleet() = settings;
  first.mutable_fleet()->set_format(kFormat);
  const std::string subject = stream_.options().subject + ".fleet";
  const NewMessage message{subject, first.SerializeAsString(), ""};
  // Of several servers that begin at once one does.
  if (!stream_.options().must_exist) {
    const absl::StatusOr<AppendOutcome> begun = stream_.Append({&message, 1}, 0, kTimeout);
    if (!begun.ok() && !absl::IsUnknown(begun.status())) return begun.status();
  }
  absl::StatusOr<storage::FleetSettings> found = ReadSettings(stream_);
  if (absl::IsNotFound(found.status()))
    return absl::UnavailableError("NATS: the fleet's settings cannot be read yet");
  if (!found.ok()) return found.status();
  settings_ = *std::move(found);
  if (settings_.partitions() == settings.partitions()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the fleet was created with ", settings_.partitions(), " partitions and not ",
                   settings.partitions(), ", which cannot be changed"));
}

absl::StatusOr<storage::FleetSettings> Catalogue::ReadSettings(const Stream& stream) {
  absl::StatusOr<std::optional<StreamMessage>> found =
      stream.Last(stream.options().subject + ".fleet");
  if (!found.ok()) return found.status();
  storage::CatalogueEntry entry;
  if (!found->has_value())
    return absl::NotFoundError(
        absl::StrCat("NATS: ", stream.options().name, " has no fleet: name another with --fleet"));
  if (!entry.ParseFromString((*found)->data))
    return absl::DataLossError("the fleet's settings do not parse");
  if (entry.fleet().format() <= kFormat) return entry.fleet();
  return absl::FailedPreconditionError(absl::StrCat("the fleet has format ", entry.fleet().format(),
                                                    "; this server reads up to ", kFormat,
                                                    ": use a newer server"));
}

std::string Catalogue::SubjectOf(const storage::CatalogueEntry& entry) const {
  const std::string& own = stream_.options().subject;
  if (entry.has_import()) return own + ".import";
  // Beside the models', so that the same permissions cover them. A dot would begin another token.
  const std::string& alias = entry.has_alias() ? entry.alias().name() : entry.deleted_alias();
  if (!alias.empty())
    return absl::StrCat(own, ".m.", absl::StrReplaceAll(alias, {{"/", "~"}, {".", "~~"}}));
  return absl::StrCat(own, ".m.", entry.has_model() ? entry.model().id() : entry.deleted_id());
}

void Catalogue::Follow() {
  std::unique_ptr<StreamReader> reader;
  PartJoiner joiner;
  // The last whole entry: a reader that is opened again needs all parts of the next one.
  uint64_t after = 0;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (stopping_) return;
      if (std::exchange(is_silent_, false)) reader.reset();
    }
    if (reader == nullptr) {
      absl::StatusOr<std::unique_ptr<StreamReader>> opened =
          stream_.Read(stream_.options().subject + ".>", after);
      if (!opened.ok()) {
        MutexLock lock(&mutex_);
        mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kPoll);
        continue;
      }
      reader = *std::move(opened);
      joiner = PartJoiner();
    }
    absl::StatusOr<std::optional<StreamMessage>> message = reader->Next(kPoll);
    if (!message.ok()) {
      reader.reset();
    } else if (message->has_value()) {
      const uint64_t sequence = (*message)->sequence;
      const std::optional<StreamMessage> whole = joiner.Add(**std::move(message));
      const absl::Status status = whole.has_value() ? Apply(*whole) : absl::OkStatus();
      if (whole.has_value()) after = sequence;
      MutexLock lock(&mutex_);
      // Parts of an entry may be read again.
      applied_ = std::max(applied_, sequence);
      broken_.Update(status);
    }
  }
}

absl::Status Catalogue::Apply(const StreamMessage& message) {
  storage::CatalogueEntry entry;
  if (!entry.ParseFromString(message.data)) {
    return absl::DataLossError(
        absl::StrCat("message ", message.sequence, " of the fleet's catalogue does not parse"));
  }
  storage::ModelHeader changed;
  {
    MutexLock lock(&mutex_);
    if (entry.has_import()) import_ = entry.import();
    ApplyToAliases(entry);
    if (entry.has_model()) changed = models_[entry.model().model().name()] = entry.model();
    if (entry.deleted_id() > 0 && entry.deleted_name().empty())
      given_up_.insert(entry.deleted_id());
    const auto found = models_.find(entry.deleted_name());
    if (found != models_.end() && found->second.id() == entry.deleted_id()) {
      changed = std::move(found->second);
      models_.erase(found);
    }
  }
  MutexLock lock(&watcher_mutex_);
  if (watcher_ != nullptr && changed.id() > 0) watcher_(changed, entry.deleted_id() > 0);
  return absl::OkStatus();
}

void Catalogue::Watch(Watcher watcher) {
  MutexLock lock(&watcher_mutex_);
  watcher_ = std::move(watcher);
}

absl::StatusOr<uint64_t> Catalogue::CatchUp() {
  const absl::StatusOr<uint64_t> last = stream_.LastSequence();
  if (!last.ok()) return last.status();
  const auto caught_up = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return applied_ >= *last || !broken_.ok();
  };
  MutexLock lock(&mutex_);
  if (!mutex_.AwaitWithTimeout(absl::Condition(&caught_up), kTimeout)) {
    is_silent_ = true;
    return absl::UnavailableError(
        "NATS: the newest catalogue cannot be read now; it is tried again with another consumer");
  }
  if (!broken_.ok()) return broken_;
  if (import_.has_value() && !import_->finished() && !may_import_) {
    return absl::FailedPreconditionError(
        absl::StrCat("NATS: ", stream_.options().name,
                     ": the fleet is a copy that is not whole: run the command that makes it "
                     "again, or delete the fleet's streams"));
  }
  return applied_;
}

std::optional<storage::Import> Catalogue::import() const {
  MutexLock lock(&mutex_);
  return import_;
}

absl::Status Catalogue::SetImport(const storage::Import& import) {
  return Change([&](const Models& /*models*/,
                    uint64_t /*next*/) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
    auto entry = std::make_unique<storage::CatalogueEntry>();
    *entry->mutable_import() = import;
    return entry;
  });
}

std::string Catalogue::Id() const {
  MutexLock lock(&mutex_);
  return import_.has_value() && !import_->id().empty() ? import_->id() : settings_.history_id();
}

std::string Catalogue::HistoryId() const {
  MutexLock lock(&mutex_);
  return import_.has_value() && !import_->history_id().empty() ? import_->history_id()
                                                               : settings_.history_id();
}

absl::Status Catalogue::Change(const MakeEntry& make) {
  for (int attempt = 0; attempt < kCatalogueAttempts; ++attempt) {
    const absl::StatusOr<uint64_t> last = CatchUp();
    if (!last.ok()) return last.status();
    std::unique_ptr<storage::CatalogueEntry> entry;
    bool is_new = false;
    {
      MutexLock lock(&mutex_);
      // More may have come: then the append is stale.
      absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> made = make(models_, applied_ + 1);
      if (!made.ok()) return made.status();
      if (*made == nullptr) return absl::OkStatus();
      entry = *std::move(made);
      is_new = entry->has_model() && entry->deleted_id() == 0 &&
               !models_.contains(entry->model().model().name());
    }
    const std::string subject = SubjectOf(*entry);
    std::vector<NewMessage> messages;
    AddInParts(subject, entry->SerializeAsString(), stream_.max_data(), messages);
    const absl::StatusOr<AppendOutcome> outcome = stream_.Append(messages, *last, kTimeout);
    // The next attempt finds that it was written, or is written before it, which makes it stale.
    if (absl::IsUnknown(outcome.status())) continue;
    if (!outcome.ok()) return outcome.status();
    if (outcome->stale || outcome->written < messages.size()) continue;
    // Older headers of the model say nothing more.
    if (!is_new && !MovesAlias(*entry))
      stream_.DeleteUpTo(subject, outcome->first - 1).IgnoreError();
    return CatchUp().status();
  }
  return absl::UnavailableError("NATS: the catalogue is changed by others all the time");
}

absl::Status Catalogue::Ask(const ModelGuard& guard, const Models& models) {
  if (guard == nullptr) return absl::OkStatus();
  ModelsNow now;
  now.find = [&](absl::string_view name) {
    const auto found = models.find(name);
    return found == models.end() ? nullptr : &found->second;
  };
  now.count = [&]() -> absl::StatusOr<uint64_t> { return models.size(); };
  return guard(now);
}

absl::Status Catalogue::Create(storage::ModelHeader& header, const ModelGuard& guard) {
  const std::string& name = header.model().name();
  const uint64_t reserved = header.id();
  return Change([&](const Models& models, uint64_t next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                    mutex_) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
    const auto found = models.find(name);
    if (found != models.end()) {
      // Not by its id alone: a refused attempt may have had that of what came first.
      if (!IsSame(found->second, header))
        return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
      return nullptr;
    }
    if (given_up_.contains(reserved))
      return absl::UnavailableError(
          "another server writes the partition that the model was to be in: try again");
    if (absl::Status status = Ask(guard, models); !status.ok()) return status;
    header.set_id(reserved > 0 ? reserved : next);
    auto entry = std::make_unique<storage::CatalogueEntry>();
    *entry->mutable_model() = header;
    return entry;
  });
}

absl::StatusOr<uint64_t> Catalogue::ReserveId(const std::function<bool(uint64_t id)>& fits) {
  storage::CatalogueEntry entry;
  entry.set_reserves_id(true);
  const NewMessage message{SubjectOf(entry), entry.SerializeAsString(), ""};
  for (int attempt = 0; attempt < kCatalogueAttempts; ++attempt) {
    const absl::StatusOr<uint64_t> last = CatchUp();
    if (!last.ok()) return last;
    std::vector<NewMessage> messages{message};
    while (!fits(*last + messages.size())) {
      if (messages.size() == settings_.partitions())
        return absl::UnavailableError("this server writes no partition now; ask another one");
      messages.push_back(message);
    }
    const absl::StatusOr<AppendOutcome> outcome = stream_.Append(messages, *last, kTimeout);
    if (absl::IsUnknown(outcome.status())) continue;
    if (!outcome.ok()) return outcome.status();
    if (outcome->stale || outcome->written < messages.size()) continue;
    // Earlier ones say nothing more.
    stream_.DeleteUpTo(message.subject, outcome->sequence - 1).IgnoreError();
    return outcome->sequence;
  }
  return absl::UnavailableError("NATS: the catalogue is changed by others all the time");
}

absl::Status Catalogue::Replace(const storage::ModelHeader& header,
                                const storage::ModelHeader& before) {
  return Change([&](const Models& models,
                    uint64_t /*next*/) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
    const auto found = models.find(header.model().name());
    if (found == models.end() || found->second.id() != header.id())
      return NoSuchModel(header.model().name());
    // By an attempt whose outcome was not known.
    if (IsSame(found->second, header)) return nullptr;
    if (!IsSame(found->second, before)) return ChangedByAnother(header.model().name());
    auto entry = std::make_unique<storage::CatalogueEntry>();
    *entry->mutable_model() = header;
    return entry;
  });
}

absl::StatusOr<storage::ModelHeader> Catalogue::Delete(absl::string_view name,
                                                       const ModelGuard& guard) {
  storage::ModelHeader deleted;
  const absl::Status status =
      Change([&](const Models& models,
                 uint64_t /*next*/) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
        const auto found = models.find(name);
        const bool ours = deleted.id() > 0;
        if (found == models.end() || (ours && found->second.id() != deleted.id())) {
          if (ours) return nullptr;
          return NoSuchModel(name);
        }
        // Another server may have set one since the caller looked.
        if (const std::vector<Alias> aliases = aliases_.AllOf(name); !aliases.empty())
          return NamedBy(aliases.front().name(), name);
        if (absl::Status asked = Ask(guard, models); !asked.ok()) return asked;
        deleted = found->second;
        auto entry = std::make_unique<storage::CatalogueEntry>();
        entry->set_deleted_id(deleted.id());
        entry->set_deleted_name(std::string(name));
        return entry;
      });
  if (!status.ok()) return status;
  return deleted;
}

absl::StatusOr<storage::ModelHeader> Catalogue::Find(absl::string_view name) {
  for (const bool caught_up : {false, true}) {
    if (caught_up) {
      if (absl::StatusOr<uint64_t> last = CatchUp(); !last.ok()) return last.status();
    }
    MutexLock lock(&mutex_);
    const auto found = models_.find(name);
    if (found != models_.end()) return found->second;
  }
  return NoSuchModel(name);
}

std::vector<storage::ModelHeader> Catalogue::List(absl::string_view after, size_t limit) const {
  MutexLock lock(&mutex_);
  std::vector<storage::ModelHeader> page;
  for (auto it = models_.upper_bound(after); it != models_.end() && page.size() < limit; ++it)
    page.push_back(it->second);
  return page;
}

uint64_t Catalogue::Count() const {
  MutexLock lock(&mutex_);
  return models_.size();
}

}  // namespace perceptrond::jetstream
