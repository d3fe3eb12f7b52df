#include "core/journal/alias_map.h"

#include "absl/strings/str_cat.h"

namespace perceptrond {

std::optional<Alias> AliasMap::Find(absl::string_view name) const {
  ReaderMutexLock lock(&mutex_);
  const auto found = aliases_.find(name);
  return found == aliases_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> AliasMap::ModelOf(absl::string_view name) const {
  ReaderMutexLock lock(&mutex_);
  const auto found = aliases_.find(name);
  return found == aliases_.end() ? std::nullopt : std::optional(found->second.model());
}

std::vector<Alias> AliasMap::AllOf(absl::string_view model) const {
  std::vector<Alias> found;
  ReaderMutexLock lock(&mutex_);
  for (const auto& [name, alias] : aliases_) {
    if (alias.model() == model) found.push_back(alias);
  }
  return found;
}

absl::Status AliasMap::CheckEtag(absl::string_view name, absl::string_view etag) const {
  const std::optional<Alias> found = Find(name);
  if (found.has_value() ? found->etag() == etag : etag.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(name, " has changed"));
}

std::vector<Alias> AliasMap::List(absl::string_view after, size_t limit) const {
  std::vector<Alias> page;
  ReaderMutexLock lock(&mutex_);
  for (auto it = aliases_.upper_bound(after); it != aliases_.end() && page.size() < limit; ++it)
    page.push_back(it->second);
  return page;
}

void AliasMap::Put(const Alias& alias) {
  MutexLock lock(&mutex_);
  aliases_[alias.name()] = alias;
  size_.store(aliases_.size(), std::memory_order_release);
}

void AliasMap::Remove(absl::string_view name) {
  MutexLock lock(&mutex_);
  const auto found = aliases_.find(name);
  if (found != aliases_.end()) aliases_.erase(found);
  size_.store(aliases_.size(), std::memory_order_release);
}

}  // namespace perceptrond
