#include "client/management.h"

#include <utility>

#include "absl/time/clock.h"
#include "client/error.h"
#include "perceptron/v1/alias_service.grpc.pb.h"
#include "perceptron/v1/history_service.grpc.pb.h"

namespace perceptrond::client {
namespace {

constexpr std::string_view kAliases = "aliases/";
// Fits, with a name, into the smallest --max-message-bytes of a server.
constexpr size_t kUploadBytes = 60 << 10;

// One call of a stub's method, which must answer within `timeout`.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Ask(Stub& stub,
                             grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                          Response*),
                             const Request& request, absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  Response response;
  absl::Status status = ToAbslStatus((stub.*method)(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

}  // namespace

std::string AliasName(std::string_view name) {
  return name.substr(0, kAliases.size()) == kAliases ? std::string(name)
                                                     : std::string(kAliases) + std::string(name);
}

struct ManagementClient::Stubs {
  std::unique_ptr<v1::AliasService::Stub> aliases;
  std::unique_ptr<v1::HistoryService::Stub> history;
};

ManagementClient::ManagementClient(std::shared_ptr<grpc::Channel> channel, absl::Duration timeout)
    : stubs_(new Stubs{v1::AliasService::NewStub(channel), v1::HistoryService::NewStub(channel)}),
      timeout_(timeout) {}

ManagementClient::~ManagementClient() = default;

absl::StatusOr<v1::Alias> ManagementClient::GetAlias(std::string_view name) const {
  v1::GetAliasRequest request;
  request.set_name(AliasName(name));
  return Ask(*stubs_->aliases, &v1::AliasService::Stub::GetAlias, request, timeout_);
}

absl::StatusOr<std::vector<v1::Alias>> ManagementClient::ListAliases() const {
  std::vector<v1::Alias> all;
  v1::ListAliasesRequest request;
  do {
    const absl::StatusOr<v1::ListAliasesResponse> page =
        Ask(*stubs_->aliases, &v1::AliasService::Stub::ListAliases, request, timeout_);
    if (!page.ok()) return page.status();
    all.insert(all.end(), page->aliases().begin(), page->aliases().end());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<v1::Alias> ManagementClient::SetAlias(std::string_view name, std::string_view model,
                                                     std::string_view etag) const {
  v1::UpdateAliasRequest request;
  request.mutable_alias()->set_name(AliasName(name));
  request.mutable_alias()->set_model(ModelName(model));
  request.mutable_alias()->set_etag(std::string(etag));
  request.mutable_update_mask()->add_paths("model");
  request.set_allow_missing(true);
  return Ask(*stubs_->aliases, &v1::AliasService::Stub::UpdateAlias, request, timeout_);
}

absl::Status ManagementClient::DeleteAlias(std::string_view name, std::string_view etag) const {
  v1::DeleteAliasRequest request;
  request.set_name(AliasName(name));
  request.set_etag(std::string(etag));
  return Ask(*stubs_->aliases, &v1::AliasService::Stub::DeleteAlias, request, timeout_).status();
}

absl::StatusOr<v1::ChallengeAliasResponse> ManagementClient::ChallengeAlias(
    const v1::ChallengeAliasRequest& request) const {
  v1::ChallengeAliasRequest named = request;
  named.set_name(AliasName(request.name()));
  named.set_challenger(ModelName(request.challenger()));
  return Ask(*stubs_->aliases, &v1::AliasService::Stub::ChallengeAlias, named, timeout_);
}

absl::StatusOr<v1::Model> ManagementClient::CopyModel(std::string_view name,
                                                      std::string_view new_name) const {
  v1::CopyModelRequest request;
  request.set_name(ModelName(name));
  request.set_new_name(ModelName(new_name));
  request.set_request_id(RandomId());
  return Ask(*stubs_->history, &v1::HistoryService::Stub::CopyModel, request, timeout_);
}

absl::StatusOr<v1::Model> ManagementClient::RenameModel(std::string_view name,
                                                        std::string_view new_name,
                                                        std::string_view etag) const {
  v1::RenameModelRequest request;
  request.set_name(ModelName(name));
  request.set_new_name(ModelName(new_name));
  request.set_etag(std::string(etag));
  return Ask(*stubs_->history, &v1::HistoryService::Stub::RenameModel, request, timeout_);
}

absl::Status ManagementClient::ExportModel(
    std::string_view name, const std::function<absl::Status(std::string_view)>& write,
    grpc::ClientContext* context) const {
  grpc::ClientContext own;
  if (context == nullptr) context = &own;
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
  v1::ExportModelRequest request;
  request.set_name(ModelName(name));
  const auto reader = stubs_->history->ExportModel(context, request);
  v1::ExportModelResponse response;
  absl::Status written;
  while (written.ok() && reader->Read(&response)) written = write(response.piece());
  if (!written.ok()) context->TryCancel();
  absl::Status status = ToAbslStatus(reader->Finish());
  return written.ok() ? status : written;
}

absl::StatusOr<v1::Model> ManagementClient::ImportModel(
    std::string_view new_name, const std::function<absl::StatusOr<std::string>(size_t most)>& read,
    grpc::ClientContext* context) const {
  grpc::ClientContext own;
  if (context == nullptr) context = &own;
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
  v1::Model model;
  const auto writer = stubs_->history->ImportModel(context, &model);
  v1::ImportModelRequest request;
  request.set_new_name(ModelName(new_name));
  request.set_request_id(RandomId());
  absl::Status unread;
  while (true) {
    absl::StatusOr<std::string> piece = read(kUploadBytes);
    if (!piece.ok()) {
      unread = piece.status();
      context->TryCancel();
      break;
    }
    const bool at_end = piece->empty();
    request.set_piece(*std::move(piece));
    // The first message names the model, also of an empty file. The server may end the call early.
    if ((!at_end || !request.new_name().empty()) && !writer->Write(request)) break;
    request.Clear();
    if (at_end) break;
  }
  writer->WritesDone();
  absl::Status status = ToAbslStatus(writer->Finish());
  if (!unread.ok()) return unread;
  if (!status.ok()) return status;
  return model;
}

absl::StatusOr<v1::Snapshot> ManagementClient::CreateSnapshot(std::string_view model,
                                                              std::string_view id) const {
  v1::CreateSnapshotRequest request;
  request.set_model(ModelName(model));
  request.set_snapshot_id(std::string(id));
  return Ask(*stubs_->history, &v1::HistoryService::Stub::CreateSnapshot, request, timeout_);
}

absl::StatusOr<std::vector<v1::Snapshot>> ManagementClient::ListSnapshots(
    std::string_view model) const {
  v1::ListSnapshotsRequest request;
  request.set_model(ModelName(model));
  const absl::StatusOr<v1::ListSnapshotsResponse> all =
      Ask(*stubs_->history, &v1::HistoryService::Stub::ListSnapshots, request, timeout_);
  if (!all.ok()) return all.status();
  return std::vector<v1::Snapshot>(all->snapshots().begin(), all->snapshots().end());
}

absl::Status ManagementClient::DeleteSnapshot(std::string_view model, std::string_view id) const {
  v1::DeleteSnapshotRequest request;
  request.set_model(ModelName(model));
  request.set_snapshot_id(std::string(id));
  return Ask(*stubs_->history, &v1::HistoryService::Stub::DeleteSnapshot, request, timeout_)
      .status();
}

absl::StatusOr<v1::Model> ManagementClient::RollBackModel(
    std::string_view model, std::variant<std::string_view, int64_t> to,
    std::optional<int64_t> expected_revision) const {
  v1::RollBackModelRequest request;
  request.set_model(ModelName(model));
  if (const int64_t* revision = std::get_if<int64_t>(&to)) {
    request.set_revision(*revision);
  } else {
    request.set_snapshot_id(std::string(std::get<std::string_view>(to)));
  }
  if (expected_revision.has_value()) request.set_expected_revision(*expected_revision);
  return Ask(*stubs_->history, &v1::HistoryService::Stub::RollBackModel, request, timeout_);
}

}  // namespace perceptrond::client
