#include "core/journal/journal.h"

#include <google/protobuf/util/message_differencer.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

// Reads each part of a model when it is asked for.
class ModelInParts final : public StoredModel {
 public:
  ModelInParts(Journal& journal, uint64_t model_id, CommittedState committed)
      : journal_(journal), model_id_(model_id), committed_(std::move(committed)) {}

  const CommittedState& committed() const override { return committed_; }
  absl::StatusOr<std::optional<storage::Snapshot>> TakeSnapshot() override {
    return journal_.LoadSnapshot(model_id_);
  }
  absl::Status Replay(uint64_t after_revision, const ReplayCallback& replay) override {
    return journal_.Replay(model_id_, after_revision, replay);
  }

 private:
  Journal& journal_;
  const uint64_t model_id_;
  const CommittedState committed_;
};

}  // namespace

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

absl::StatusOr<std::unique_ptr<StoredModel>> Journal::Load(uint64_t model_id) {
  absl::StatusOr<CommittedState> committed = LoadCommittedState(model_id);
  if (!committed.ok()) return committed.status();
  return std::make_unique<ModelInParts>(*this, model_id, *std::move(committed));
}

absl::StatusOr<CommitOutcome> PartitionLog::TakeOver(uint32_t /*partition*/,
                                                     const std::string& /*address*/,
                                                     uint64_t /*expected*/) {
  return absl::FailedPreconditionError("only one server writes to this journal");
}

absl::Status Import::BeginImport() {
  return absl::FailedPreconditionError("the journal was not opened for an import");
}

absl::Status Import::FinishImport() {
  return absl::FailedPreconditionError("the journal was not opened for an import");
}

absl::StatusOr<Backup> Journal::BackUp(const Backups& /*backups*/, uint32_t /*keep*/) {
  return absl::FailedPreconditionError("models in memory cannot be backed up");
}

}  // namespace perceptrond
