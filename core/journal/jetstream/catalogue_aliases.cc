// The aliases in the fleet's catalogue of models, and other names of models, which aliases follow.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/journal/jetstream/catalogue.h"
#include "core/journal/journal.h"

namespace perceptrond::jetstream {

absl::Status Catalogue::Rename(const storage::ModelHeader& header,
                               const storage::ModelHeader& before) {
  const std::string& name = header.model().name();
  const std::string& name_before = before.model().name();
  const absl::Status status =
      Change([&](const Models& models,
                 uint64_t /*next*/) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
        const auto other = models.find(name);
        if (other != models.end()) {
          if (IsSame(other->second, header)) return nullptr;
          return absl::AlreadyExistsError(absl::StrCat(name, " exists"));
        }
        const auto found = models.find(name_before);
        if (found == models.end() || found->second.id() != header.id())
          return NoSuchModel(name_before);
        if (!IsSame(found->second, before)) return ChangedByAnother(name_before);
        auto entry = std::make_unique<storage::CatalogueEntry>();
        *entry->mutable_model() = header;
        entry->set_deleted_id(header.id());
        entry->set_deleted_name(name_before);
        return entry;
      });
  if (!status.ok()) return status;
  // They follow by that entry already, which can go once each has one of its own.
  for (const Alias& alias : aliases_.AllOf(name)) WriteMoved(alias.name()).IgnoreError();
  return absl::OkStatus();
}

void Catalogue::ApplyToAliases(const storage::CatalogueEntry& entry) {
  if (entry.has_alias()) {
    aliases_.Put(entry.alias());
    moved_.erase(entry.alias().name());
  }
  if (!entry.deleted_alias().empty()) {
    aliases_.Remove(entry.deleted_alias());
    moved_.erase(entry.deleted_alias());
  }
  // The model has another name.
  if (!entry.has_model() || entry.deleted_id() == 0) return;
  for (Alias alias : aliases_.AllOf(entry.deleted_name())) {
    alias.set_model(entry.model().model().name());
    aliases_.Put(alias);
    moved_[alias.name()] = entry.deleted_id();
  }
}

bool Catalogue::MovesAlias(const storage::CatalogueEntry& entry) const {
  const uint64_t id = entry.has_model() ? entry.model().id() : entry.deleted_id();
  MutexLock lock(&mutex_);
  return std::any_of(moved_.begin(), moved_.end(),
                     [id](const auto& moved) { return moved.second == id; });
}

absl::Status Catalogue::WriteMoved(const std::string& name) {
  return Change([&](const Models& /*models*/, uint64_t /*next*/) ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                    mutex_) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
    const std::optional<Alias> alias = aliases_.Find(name);
    if (!alias.has_value() || !moved_.contains(name)) return nullptr;
    auto entry = std::make_unique<storage::CatalogueEntry>();
    *entry->mutable_alias() = *alias;
    return entry;
  });
}

absl::Status Catalogue::PutAlias(const Alias& alias, absl::string_view etag) {
  return Change([&](const Models& models,
                    uint64_t /*next*/) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
    const std::optional<Alias> there = aliases_.Find(alias.name());
    if (there.has_value() && there->SerializeAsString() == alias.SerializeAsString())
      return nullptr;
    if (absl::Status status = aliases_.CheckEtag(alias.name(), etag); !status.ok()) return status;
    // Another server may have deleted it since the caller looked.
    if (!models.contains(alias.model())) return NoSuchModel(alias.model());
    auto entry = std::make_unique<storage::CatalogueEntry>();
    *entry->mutable_alias() = alias;
    return entry;
  });
}

absl::Status Catalogue::DeleteAlias(absl::string_view name, absl::string_view etag) {
  bool tried = false;
  return Change([&](const Models& /*models*/,
                    uint64_t /*next*/) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
    if (tried && !aliases_.Find(name).has_value()) return nullptr;
    if (absl::Status status = aliases_.CheckEtag(name, etag); !status.ok()) return status;
    tried = true;
    auto entry = std::make_unique<storage::CatalogueEntry>();
    entry->set_deleted_alias(std::string(name));
    return entry;
  });
}

}  // namespace perceptrond::jetstream
