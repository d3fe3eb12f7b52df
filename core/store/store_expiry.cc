// The models of a store that are deleted when nobody uses them.
#include <utility>

#include "core/fleet/fleet.h"
#include "core/store/model_expiry.h"
#include "core/store/store.h"

namespace perceptrond {

std::unique_ptr<ModelExpiry> Store::MakeExpiry() {
  ModelExpiry::Hooks hooks;
  hooks.list = [this](absl::string_view after, size_t limit) {
    return catalogue_.List(after, limit);
  };
  hooks.writes = [this](uint64_t model_id) {
    return fleet_ == nullptr || fleet_->WritesNow(model_id);
  };
  hooks.has_streams = [this](const std::string& uid) { return streams_.HasAny(uid); };
  hooks.save_use = [this](const storage::ModelHeader& header, absl::Time last_use) {
    return catalogue_.SaveUse(header.model().name(), header.id(), last_use);
  };
  hooks.remove = [this](const storage::ModelHeader& header, const std::atomic<bool>& used) {
    return DeleteExpired(header, used);
  };
  return std::make_unique<ModelExpiry>(std::move(hooks), options_.expiry_clocks);
}

absl::Status Store::DeleteExpired(const storage::ModelHeader& header,
                                  const std::atomic<bool>& used) {
  const std::string& name = header.model().name();
  const auto is_in_use = [&] {
    return used.load(std::memory_order_relaxed) || streams_.HasAny(header.model().uid());
  };
  const auto remove = [&](const ModelGuard& guard) {
    return is_in_use() ? absl::AbortedError("the model is in use again")
                       : DeleteLoaded(name, guard, is_in_use);
  };
  absl::Status deleted = DeleteBy(name, header.model().etag(), /*validate_only=*/false, remove);
  if (deleted.ok() && options_.on_expired != nullptr) options_.on_expired(name);
  return deleted;
}

}  // namespace perceptrond
