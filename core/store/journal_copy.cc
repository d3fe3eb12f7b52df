#include "core/store/journal_copy.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/features/names.h"
#include "core/journal/snapshot_parts.h"
#include "core/model/model.h"
#include "core/model/snapshot.h"

namespace perceptrond {
namespace {

// What is hashed at once, besides what cannot be cut.
constexpr size_t kPartBytes = 8 << 20;
// Models that are created and deleted all the time.
constexpr int kMostRounds = 100;
constexpr uint64_t kSeed = 0x9e3779b97f4a7c15;

absl::Status WithName(const storage::ModelHeader& header, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(header.model().name(), ": ", status.message()));
}

// The same bytes for equal messages.
std::string Bytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

bool LearnedNothing(const CommittedState& state) {
  return state.positions.empty() && state.counters.ByteSizeLong() == 0;
}

absl::Status ForEachModel(Journal& journal,
                          const std::function<absl::Status(const storage::ModelHeader&)>& visit) {
  constexpr size_t kHeadersAtOnce = 256;
  std::string after;
  while (true) {
    const absl::StatusOr<std::vector<storage::ModelHeader>> page =
        journal.List(after, kHeadersAtOnce);
    if (!page.ok()) return page.status();
    if (page->empty()) return absl::OkStatus();
    for (const storage::ModelHeader& header : *page) {
      if (absl::Status status = visit(header); !status.ok()) return WithName(header, status);
    }
    after = page->back().model().name();
  }
}

}  // namespace

void JournalCopy::AddToDigest(const google::protobuf::MessageLite& message, WholeModel& model) {
  const std::string bytes = Bytes(message);
  model.digest.low = HashBytes(bytes.data(), bytes.size(), model.digest.low);
  model.digest.high = HashBytes(bytes.data(), bytes.size(), model.digest.high ^ kSeed);
  model.bytes += bytes.size();
}

void JournalCopy::ComputeDigest(WholeModel& model) {
  const auto add = [&](const google::protobuf::MessageLite& message) {
    AddToDigest(message, model);
    return absl::OkStatus();
  };
  storage::ModelHeader header = model.header;
  header.clear_id();
  // Not each journal keeps predictions.
  if (header.model().has_stored_predictions())
    header.mutable_model()->mutable_stored_predictions()->clear_durable();
  // Each journal has parts of its own sizes, and writers of its own.
  for (storage::KeptSnapshot& kept : *header.mutable_kept_snapshots()) {
    kept.clear_part_bytes();
    kept.clear_epoch();
  }
  (void)add(header);
  (void)add(model.committed.counters);
  for (const storage::ProducerPosition& position : model.committed.positions) (void)add(position);
  model.digest.low =
      HashBytes(model.committed.epochs.data(), model.committed.epochs.size() * sizeof(EpochBegin),
                model.digest.low);
  (void)ForEachPart(model.snapshot, kPartBytes, add);
}

absl::StatusOr<JournalCopy::WholeModel> JournalCopy::Read(Journal& journal,
                                                          const storage::ModelHeader& header) {
  const absl::StatusOr<std::unique_ptr<StoredModel>> stored = journal.Load(header.id());
  if (!stored.ok()) return stored.status();
  WholeModel whole;
  whole.header = header;
  whole.committed = (*stored)->committed();
  ModelLimits limits;
  limits.max_producers = std::numeric_limits<size_t>::max();
  // No row is evaluated: components are not asked.
  const auto no_component = [](absl::string_view /*name*/, ComponentAccess /*access*/) {
    return absl::StatusOr<std::shared_ptr<Model>>(absl::NotFoundError("not in memory"));
  };
  const absl::StatusOr<std::shared_ptr<Model>> model =
      RestoreModel(header, **stored, limits, no_component);
  if (!model.ok()) return model.status();
  whole.snapshot = MakeSnapshot(**model);
  std::sort(whole.committed.positions.begin(), whole.committed.positions.end(),
            [](const auto& a, const auto& b) { return a.id() < b.id(); });
  ComputeDigest(whole);
  if (absl::Status status = AddKept(journal, whole); !status.ok()) return status;
  return whole;
}

absl::Status JournalCopy::AddKept(Journal& journal, WholeModel& model) {
  for (const storage::KeptSnapshot& kept : model.header.kept_snapshots()) {
    const absl::StatusOr<storage::Snapshot> snapshot = journal.LoadKept(model.header.id(), kept);
    if (!snapshot.ok()) return snapshot.status();
    const auto add = [&](const storage::Snapshot& part) {
      AddToDigest(part, model);
      return absl::OkStatus();
    };
    (void)ForEachPart(*snapshot, kPartBytes, add);
  }
  return absl::OkStatus();
}

absl::Status JournalCopy::CopyKept(Journal& from, Journal& to, const storage::ModelHeader& source,
                                   const storage::ModelHeader& copied) {
  storage::ModelHeader header = copied;
  for (storage::KeptSnapshot& kept : *header.mutable_kept_snapshots()) {
    const absl::StatusOr<storage::Snapshot> snapshot = from.LoadKept(source.id(), kept);
    if (!snapshot.ok()) return snapshot.status();
    if (absl::Status status = to.SaveKept(header.id(), *snapshot, kept); !status.ok())
      return status;
  }
  return header.kept_snapshots().empty() ? absl::OkStatus() : to.Replace(header, copied);
}

// Its aliases are copied again.
absl::Status JournalCopy::Delete(Journal& to, const std::string& name) {
  for (const Alias& alias : to.aliases().AllOf(name)) {
    if (absl::Status status = to.DeleteAlias(alias.name(), alias.etag()); !status.ok())
      return status;
  }
  return to.Delete(name);
}

absl::StatusOr<bool> JournalCopy::CopyAliases(Journal& from, Journal& to) {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  bool same = true;
  for (const Alias& alias : to.aliases().List("", kAll)) {
    if (from.aliases().Find(alias.name()).has_value()) continue;
    same = false;
    if (absl::Status status = to.DeleteAlias(alias.name(), alias.etag()); !status.ok())
      return status;
  }
  for (const Alias& alias : from.aliases().List("", kAll)) {
    if (!copied_.contains(alias.model())) {
      // One that names no model, as older servers may have left, is of no use; another model came just now.
      same &= absl::IsNotFound(from.Find(alias.model()).status());
      continue;
    }
    const std::optional<Alias> there = to.aliases().Find(alias.name());
    if (there.has_value() && Bytes(*there) == Bytes(alias)) continue;
    same = false;
    absl::Status status = to.PutAlias(alias, there.has_value() ? there->etag() : "");
    if (!status.ok()) return status;
  }
  return same;
}

absl::Status JournalCopy::Write(Journal& to, WholeModel& model) {
  storage::ModelHeader header = model.header;
  header.clear_id();
  if (header.model().has_stored_predictions() && !to.keeps_predictions())
    header.mutable_model()->mutable_stored_predictions()->clear_durable();
  if (absl::Status status = to.Create(header); !status.ok()) return status;
  model.header.set_id(header.id());
  if (LearnedNothing(model.committed)) return absl::OkStatus();
  const int64_t nanos = absl::GetCurrentTimeNanos();
  model.snapshot.mutable_time()->set_seconds(nanos / 1'000'000'000);
  model.snapshot.mutable_time()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  if (absl::Status status = to.SaveSnapshot(header.id(), model.snapshot); !status.ok())
    return status;
  JournalEntry entry;
  entry.model_id = header.id();
  entry.counters = std::move(model.committed.counters);
  entry.positions = std::move(model.committed.positions);
  entry.epochs = std::move(model.committed.epochs);
  const absl::StatusOr<CommitOutcome> written = to.Commit({&entry, 1}, {.sync = false});
  if (!written.ok()) return written.status();
  if (written->written == 1) return absl::OkStatus();
  return absl::FailedPreconditionError("another server writes to the copy: stop it first");
}

absl::Status JournalCopy::Copy(Journal& from, Journal& to, const storage::ModelHeader& header) {
  const std::string& name = header.model().name();
  absl::StatusOr<WholeModel> model = Read(from, header);
  if (!model.ok()) {
    // A model that is being deleted may have parts missing.
    if (absl::Status status = from.Refresh(); !status.ok()) return status;
    const absl::StatusOr<storage::ModelHeader> now = from.Find(name);
    const bool deleted = now.ok() ? now->id() != header.id() : absl::IsNotFound(now.status());
    return deleted ? absl::OkStatus() : model.status();
  }
  const absl::StatusOr<storage::ModelHeader> there = to.Find(name);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  bool same = false;
  if (there.ok()) {
    const absl::StatusOr<WholeModel> before = Read(to, *there);
    same = before.ok() && before->digest == model->digest;
    if (absl::Status status = same ? absl::OkStatus() : Delete(to, name); !status.ok())
      return status;
  }
  copied_[name] = {header.id(), model->digest};
  statistics_.bytes += model->bytes;
  statistics_.copied_before += same ? 1 : 0;
  if (same) return absl::OkStatus();
  if (absl::Status status = Write(to, *model); !status.ok()) return status;
  return CopyKept(from, to, header, model->header);
}

absl::StatusOr<uint64_t> JournalCopy::CopyNew(Journal& from, Journal& to) {
  const absl::StatusOr<uint64_t> models = from.Count();
  if (!models.ok()) return models.status();
  uint64_t copied = 0;
  const absl::Status status = ForEachModel(from, [&](const storage::ModelHeader& header) {
    const auto found = copied_.find(header.model().name());
    if (found != copied_.end() && found->second.source_id == header.id()) return absl::OkStatus();
    ++copied;
    absl::Status done = Copy(from, to, header);
    if (done.ok() && progress_ != nullptr) progress_(copied_.size(), *models);
    return done;
  });
  if (!status.ok()) return status;
  return copied;
}

absl::StatusOr<uint64_t> JournalCopy::DeleteOthers(Journal& from, Journal& to) {
  std::map<std::string, uint64_t> there;
  absl::Status status = ForEachModel(from, [&](const storage::ModelHeader& header) {
    there[header.model().name()] = header.id();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  std::erase_if(copied_, [&](const auto& one) {
    const auto found = there.find(one.first);
    return found == there.end() || found->second != one.second.source_id;
  });
  std::vector<std::string> others;
  status = ForEachModel(to, [&](const storage::ModelHeader& header) {
    if (!copied_.contains(header.model().name())) others.push_back(header.model().name());
    return absl::OkStatus();
  });
  for (const std::string& name : others) {
    if (status.ok()) status = Delete(to, name);
  }
  if (!status.ok()) return status;
  return others.size();
}

absl::Status JournalCopy::Run(Journal& from, Journal& to) {
  if (absl::Status status = to.BeginImport(); !status.ok()) return status;
  // Until no model came, and none went.
  for (int round = 0; round < kMostRounds; ++round) {
    if (absl::Status status = from.Refresh(); !status.ok()) return status;
    const absl::StatusOr<uint64_t> copied = CopyNew(from, to);
    if (!copied.ok()) return copied.status();
    const absl::StatusOr<uint64_t> deleted = DeleteOthers(from, to);
    if (!deleted.ok()) return deleted.status();
    const absl::StatusOr<bool> same_aliases = CopyAliases(from, to);
    if (!same_aliases.ok()) return same_aliases.status();
    statistics_.models = copied_.size();
    if (*copied == 0 && *deleted == 0 && *same_aliases) return to.Sync();
  }
  return absl::UnavailableError("models are created and deleted all the time: try again");
}

absl::Status JournalCopy::Verify(Journal& to) const {
  uint64_t models = 0;
  const absl::Status status =
      ForEachModel(to, [&](const storage::ModelHeader& header) -> absl::Status {
        const auto found = copied_.find(header.model().name());
        if (found == copied_.end()) return absl::DataLossError("the copy has it, the source not");
        const absl::StatusOr<WholeModel> model = Read(to, header);
        if (!model.ok()) return model.status();
        if (model->digest != found->second.digest)
          return absl::DataLossError("the copy differs from what was read");
        ++models;
        if (progress_ != nullptr) progress_(models, copied_.size());
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  if (models == copied_.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the copy has ", models, " models, and ", copied_.size(), " were copied"));
}

}  // namespace perceptrond
