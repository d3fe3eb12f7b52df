// Deletes what deletions that failed have left: of models, and of the snapshots that users keep. A server may end between
// the catalogue's entry and the rest, and the last commit of a model may come after its deletion.
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

absl::StatusOr<bool> JetStreamJournal::IsLeft(const std::string& stream, absl::string_view subject,
                                              const KeptNames& kept) {
  const std::optional<Owner> owner = OwnerOf(stream, subject);
  if (!owner.has_value() || !PartitionFor(owner->model_id).is_writer()) return false;
  const auto found = kept.find(owner->model_id);
  // A model that is being created has messages before the catalogue knows it.
  if (found == kept.end()) return catalogue_->WasDeleted(owner->model_id);
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
