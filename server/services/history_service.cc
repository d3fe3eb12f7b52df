#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/settings/settings.h"
#include "core/store/model_history.h"
#include "perceptron/v1/history_service.pb.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/services/services.h"
#include "server/sessions/convert.h"
#include "server/sessions/model_transfer.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

absl::Status CheckSnapshotId(const std::string& id) {
  if (IsModelId(id)) return absl::OkStatus();
  return InvalidField("INVALID_FIELD", "snapshot_id",
                      "is not 1 to 128 letters, digits, '_', '-' and '.', of which the first is a "
                      "letter or a digit");
}

absl::Status CheckBothNames(const std::string& name, const std::string& new_name) {
  if (absl::Status status = CheckNoAlias(name, "name"); !status.ok()) return status;
  return CheckNoAlias(new_name, "new_name");
}

absl::Status AnswerWithModel(Store& store, const std::string& name, v1::Model& response) {
  // Loaded anew, where a copy of what it was would answer.
  if (const auto model = store.Acquire(name); !model.ok()) return model.status();
  const absl::StatusOr<ModelSummary> summary = store.Get(name);
  if (!summary.ok()) return summary.status();
  response = ToProto(*summary);
  return absl::OkStatus();
}

void ToSnapshot(const std::string& model, const storage::KeptSnapshot& kept,
                v1::Snapshot& snapshot) {
  snapshot.set_name(absl::StrCat(model, "/snapshots/", kept.id()));
  snapshot.set_revision(static_cast<int64_t>(kept.revision()));
  *snapshot.mutable_create_time() = kept.time();
  int64_t bytes = 0;
  for (const uint64_t part : kept.part_bytes()) bytes += static_cast<int64_t>(part);
  snapshot.set_size_bytes(bytes);
}

absl::Status CopyModel(Store& store, const v1::CopyModelRequest& request, v1::Model& response) {
  if (absl::Status status = CheckBothNames(request.name(), request.new_name()); !status.ok())
    return status;
  if (absl::Status status = CheckId(request.request_id(), "request_id"); !status.ok())
    return status;
  const absl::StatusOr<v1::Model> copy =
      ModelHistory(store).Copy(request.name(), request.new_name(), request.request_id());
  return copy.ok() ? AnswerWithModel(store, request.new_name(), response) : copy.status();
}

absl::Status RenameModel(Store& store, const v1::RenameModelRequest& request, v1::Model& response) {
  if (absl::Status status = CheckBothNames(request.name(), request.new_name()); !status.ok())
    return status;
  absl::Status status =
      ModelHistory(store).Rename(request.name(), request.new_name(), request.etag());
  return status.ok() ? AnswerWithModel(store, request.new_name(), response) : status;
}

absl::Status CreateSnapshot(Store& store, const v1::CreateSnapshotRequest& request,
                            v1::Snapshot& response) {
  if (absl::Status status = CheckNoAlias(request.model(), "model"); !status.ok()) return status;
  if (absl::Status status = CheckSnapshotId(request.snapshot_id()); !status.ok()) return status;
  const absl::StatusOr<storage::KeptSnapshot> kept =
      ModelHistory(store).Keep(request.model(), request.snapshot_id());
  if (!kept.ok()) return kept.status();
  ToSnapshot(request.model(), *kept, response);
  return absl::OkStatus();
}

absl::Status ListSnapshots(Store& store, const v1::ListSnapshotsRequest& request,
                           v1::ListSnapshotsResponse& response) {
  if (absl::Status status = CheckNoAlias(request.model(), "model"); !status.ok()) return status;
  const absl::StatusOr<std::vector<storage::KeptSnapshot>> all =
      ModelHistory(store).List(request.model());
  if (!all.ok()) return all.status();
  for (const storage::KeptSnapshot& kept : *all)
    ToSnapshot(request.model(), kept, *response.add_snapshots());
  return absl::OkStatus();
}

absl::Status DeleteSnapshot(Store& store, const v1::DeleteSnapshotRequest& request,
                            google::protobuf::Empty& /*response*/) {
  if (absl::Status status = CheckNoAlias(request.model(), "model"); !status.ok()) return status;
  if (absl::Status status = CheckSnapshotId(request.snapshot_id()); !status.ok()) return status;
  return ModelHistory(store).Delete(request.model(), request.snapshot_id());
}

absl::Status RollBackModel(Store& store, const v1::RollBackModelRequest& request,
                           v1::Model& response) {
  if (absl::Status status = CheckNoAlias(request.model(), "model"); !status.ok()) return status;
  ModelHistory::RollbackTarget target{request.snapshot_id()};
  if (request.has_revision()) {
    if (request.revision() < 0) return InvalidField("INVALID_FIELD", "revision", "is below 0");
    if (!target.id.empty())
      return InvalidField("INVALID_FIELD", "snapshot_id", "is there, and so is revision");
    target.revision = static_cast<uint64_t>(request.revision());
  } else if (absl::Status status = CheckSnapshotId(target.id); !status.ok()) {
    return status;
  }
  std::optional<uint64_t> expected;
  if (request.has_expected_revision()) {
    if (request.expected_revision() < 0)
      return InvalidField("INVALID_FIELD", "expected_revision", "is below 0");
    expected = static_cast<uint64_t>(request.expected_revision());
  }
  absl::Status status = ModelHistory(store).RollBack(request.model(), target, expected);
  return status.ok() ? AnswerWithModel(store, request.model(), response) : status;
}

}  // namespace

void AddHistoryService(Router& router, const Backend& backend) {
  const UnaryMethods unary(backend);
  router.AddService(
      "perceptron.v1.HistoryService",
      {{"CopyModel", unary(CopyModel, IsLarge<v1::CopyModelRequest>)},
       {"RenameModel", unary(RenameModel, IsLarge<v1::RenameModelRequest>)},
       {"ExportModel", [backend](Call& call) { StartExport(call, backend); }},
       {"ImportModel", [backend](Call& call) { StartImport(call, backend); }},
       {"CreateSnapshot", unary(CreateSnapshot, IsLarge<v1::CreateSnapshotRequest>)},
       {"ListSnapshots", unary(ListSnapshots, IsManagement<v1::ListSnapshotsRequest>)},
       {"DeleteSnapshot", unary(DeleteSnapshot, IsManagement<v1::DeleteSnapshotRequest>)},
       {"RollBackModel", unary(RollBackModel, IsLarge<v1::RollBackModelRequest>)}});
}

}  // namespace perceptrond
