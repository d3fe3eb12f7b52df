#include "core/journal/journal.h"

#include <google/protobuf/util/message_differencer.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace perceptrond {
bool IsSame(const storage::ModelHeader& a, const storage::ModelHeader& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

absl::Status ChangedByAnother(absl::string_view name) {
  return absl::AbortedError(absl::StrCat(name, " was changed by another server: try again"));
}

absl::Status NamedBy(absl::string_view alias, absl::string_view name) {
  return absl::FailedPreconditionError(
      absl::StrCat("the alias ", alias, " names ", name, ": move or delete it first"));
}

absl::Status WrittenByAnother() {
  return absl::UnavailableError("another server writes this model now");
}

absl::Status AskGuard(
    const ModelGuard& guard,
    const std::function<absl::StatusOr<storage::ModelHeader>(absl::string_view name)>& find,
    std::function<absl::StatusOr<uint64_t>()> count) {
  if (guard == nullptr) return absl::OkStatus();
  storage::ModelHeader header;
  absl::Status failed;
  ModelsNow now;
  now.find = [&](absl::string_view name) -> const storage::ModelHeader* {
    absl::StatusOr<storage::ModelHeader> found = find(name);
    if (!found.ok()) {
      if (!absl::IsNotFound(found.status())) failed = found.status();
      return nullptr;
    }
    header = *std::move(found);
    return &header;
  };
  now.count = std::move(count);
  absl::Status status = guard(now);
  return failed.ok() ? status : failed;
}

}  // namespace perceptrond
