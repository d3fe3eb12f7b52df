// The aliases in the fleet's catalogue of models, and other names of models, which aliases follow.
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
  for (Alias alias : aliases_.AllOf(name_before)) {
    alias.set_model(name);
    // Unless somebody moves it at this moment.
    const absl::Status moved = PutAlias(alias, alias.etag());
    if (!moved.ok() && !absl::IsAborted(moved)) return moved;
  }
  return absl::OkStatus();
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
