// Deletes what deletions that failed have left: of models, and of the snapshots that users keep. A server may end between
// the catalogue's entry and the rest, and the last commit of a model may come after its deletion. Also what a copy or an
// import has left whose server ended before the catalogue had the model.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/journal/jetstream/jetstream_journal.h"

namespace perceptrond {
namespace {

using jetstream::Stream;

constexpr size_t kHeadersAtOnce = 256;

// Of a model's messages.
struct Owner {
  uint64_t model_id = 0;
  // NUMBER or NUMBER-EPOCH of a kept snapshot; empty: none.
  std::string kept;
};

// Of m.ID and s.ID in a partition, of ID.PIECES and kept-ID.NAME among the snapshots; absent for take-overs.
std::optional<Owner> OwnerOf(const std::string& stream, absl::string_view subject) {
  if (!absl::ConsumePrefix(&subject, stream + ".")) return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> tokens =
      absl::StrSplit(subject, absl::MaxSplits('.', 1));
  Owner owner;
  absl::string_view id = tokens.first;
  if (id == "m" || id == "s") {
    id = tokens.second;
  } else if (absl::ConsumePrefix(&id, "kept-")) {
    owner.kept = std::string(tokens.second);
  }
  return absl::SimpleAtoi(id, &owner.model_id) ? std::optional(owner) : std::nullopt;
}

}  // namespace

namespace jetstream {

absl::StatusOr<bool> Catalogue::WasDeleted(uint64_t id) const {
  storage::CatalogueEntry entry;
  entry.set_deleted_id(id);
  const absl::StatusOr<std::optional<StreamMessage>> last = stream_.Last(SubjectOf(entry));
  if (!last.ok()) return last.status();
  // A header may be in parts, a deletion is not.
  if (!last->has_value() || !(*last)->part.empty() || !entry.ParseFromString((*last)->data))
    return false;
  return entry.deleted_id() == id && !entry.has_model();
}

absl::StatusOr<bool> Catalogue::GiveUpId(uint64_t id) {
  const absl::StatusOr<bool> deleted = WasDeleted(id);
  if (!deleted.ok() || *deleted) return deleted;
  bool given_up = false;
  const absl::Status status =
      Change([&](const Models& models, uint64_t next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                 mutex_) -> absl::StatusOr<std::unique_ptr<storage::CatalogueEntry>> {
        given_up = id < next && std::none_of(models.begin(), models.end(), [&](const auto& model) {
                     return model.second.id() == id;
                   });
        if (!given_up || given_up_.contains(id)) return nullptr;
        auto entry = std::make_unique<storage::CatalogueEntry>();
        entry->set_deleted_id(id);
        return entry;
      });
  if (!status.ok()) return status;
  return given_up;
}

}  // namespace jetstream

absl::StatusOr<bool> JetStreamJournal::GiveUp(uint64_t model_id) {
  {
    MutexLock lock(&creating_mutex_);
    if (creating_.contains(model_id)) return false;
  }
  // Asked after its messages were seen: another server that began to create the model wrote the partition before this one.
  // Its creation can fail alone, or has the catalogue's entry yet to come, which is refused from now on.
  if (!PartitionFor(model_id).ConfirmWriter()) return false;
  return catalogue_->GiveUpId(model_id);
}

absl::StatusOr<bool> JetStreamJournal::IsLeft(const std::string& stream, absl::string_view subject,
                                              const KeptNames& kept) {
  const std::optional<Owner> owner = OwnerOf(stream, subject);
  if (!owner.has_value() || !PartitionFor(owner->model_id).is_writer()) return false;
  const auto found = kept.find(owner->model_id);
  if (found == kept.end()) return GiveUp(owner->model_id);
  uint64_t number = 0;
  if (!absl::SimpleAtoi(owner->kept.substr(0, owner->kept.find('-')), &number)) return false;
  // One that is being saved has a number that was not given yet.
  const auto& [last_number, names] = found->second;
  return number <= last_number && !names.contains(owner->kept);
}

absl::Status JetStreamJournal::Sweep() {
  if (absl::Status status = CheckWritable(); !status.ok()) return status;
  std::vector<const Stream*> streams;
  for (const std::unique_ptr<jetstream::Partition>& partition : partitions_) {
    if (partition->is_writer()) streams.push_back(&partition->stream());
  }
  if (streams.empty()) return absl::OkStatus();
  streams.push_back(snapshots_.get());
  if (absl::Status status = Refresh(); !status.ok()) return status;
  KeptNames kept;
  std::string after;
  for (auto page = catalogue_->List(after, kHeadersAtOnce); !page.empty();
       page = catalogue_->List(after, kHeadersAtOnce)) {
    for (const storage::ModelHeader& header : page) {
      auto& [last_number, names] = kept[header.id()];
      last_number = header.last_kept_number();
      for (const storage::KeptSnapshot& one : header.kept_snapshots()) names.insert(NameOf(one));
    }
    after = page.back().model().name();
  }
  for (const Stream* const stream : streams) {
    const absl::StatusOr<std::vector<std::string>> subjects = stream->Subjects();
    if (!subjects.ok()) return subjects.status();
    for (const std::string& subject : *subjects) {
      const absl::StatusOr<bool> left = IsLeft(stream->options().subject, subject, kept);
      if (!left.ok()) return left.status();
      if (!*left) continue;
      if (absl::Status status = stream->DeleteAll(subject); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
