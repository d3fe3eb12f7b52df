// ManagementClient: manages aliases, copies, names and snapshots of models.
//
//   ManagementClient client(MakeChannel("127.0.0.1:7600"));
//   absl::StatusOr<v1::Alias> alias = client.SetAlias("prod", "spam-3");
//   Client::Connect("127.0.0.1:7600")->Predict("aliases/prod", columns);
//
// Models are "spam" or "models/spam", aliases "prod" or "aliases/prod". Methods return the server's errors, with their details
// as payloads (error.h); none is retried.
//
// Threads: all methods may be called concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "perceptron/v1/alias_service.pb.h"
#include "perceptron/v1/history_service.pb.h"

namespace perceptrond::client {

// Returns "aliases/prod" for "prod" and "aliases/prod". Does not check that the name is valid.
std::string AliasName(std::string_view name);

class ManagementClient {
 public:
  // `timeout`: the longest time of each call, > 0.
  explicit ManagementClient(std::shared_ptr<grpc::Channel> channel,
                            absl::Duration timeout = absl::Seconds(30));
  ~ManagementClient();

  // NOT_FOUND.
  absl::StatusOr<v1::Alias> GetAlias(std::string_view name) const;
  // All that the caller may read, by name.
  absl::StatusOr<std::vector<v1::Alias>> ListAliases() const;
  // Creates an alias, or moves it. With a non-empty etag only if it still matches, else ABORTED
  // (ETAG_MISMATCH). NOT_FOUND (MODEL_NOT_FOUND).
  absl::StatusOr<v1::Alias> SetAlias(std::string_view name, std::string_view model,
                                     std::string_view etag = "") const;
  // The same for its end. NOT_FOUND.
  absl::Status DeleteAlias(std::string_view name, std::string_view etag = "") const;
  // Moves the alias if the challenger errs less. See perceptron/v1/alias_service.proto.
  absl::StatusOr<v1::ChallengeAliasResponse> ChallengeAlias(
      const v1::ChallengeAliasRequest& request) const;

  // NOT_FOUND, ALREADY_EXISTS. See perceptron/v1/history_service.proto, as for the methods below.
  absl::StatusOr<v1::Model> CopyModel(std::string_view name, std::string_view new_name) const;
  absl::StatusOr<v1::Model> RenameModel(std::string_view name, std::string_view new_name,
                                        std::string_view etag = "") const;
  // Receives a model as a file, and passes each piece to `write`, which may end the call with an error.
  // The file is whole if OK is returned. `context` may be null; else TryCancel() on it, from any
  // thread, ends the call (CANCELLED).
  absl::Status ExportModel(std::string_view name,
                           const std::function<absl::Status(std::string_view piece)>& write,
                           grpc::ClientContext* context = nullptr) const;
  // Creates a model from a file. `read` reads the next bytes, at most `most`; none at the end. Its
  // error ends the call, and no model is created. INVALID_ARGUMENT (BAD_MODEL_FILE); ALREADY_EXISTS.
  // `context` as in ExportModel; a call that is cancelled after the end of the file may have created
  // the model.
  absl::StatusOr<v1::Model> ImportModel(
      std::string_view new_name,
      const std::function<absl::StatusOr<std::string>(size_t most)>& read,
      grpc::ClientContext* context = nullptr) const;
  // ALREADY_EXISTS (SNAPSHOT_EXISTS), RESOURCE_EXHAUSTED (SNAPSHOT_LIMIT).
  absl::StatusOr<v1::Snapshot> CreateSnapshot(std::string_view model, std::string_view id) const;
  // Oldest first.
  absl::StatusOr<std::vector<v1::Snapshot>> ListSnapshots(std::string_view model) const;
  // NOT_FOUND (SNAPSHOT_NOT_FOUND).
  absl::Status DeleteSnapshot(std::string_view model, std::string_view id) const;
  // `to`: a snapshot's id, or a revision. NOT_FOUND (SNAPSHOT_NOT_FOUND, REVISION_NOT_KEPT),
  // FAILED_PRECONDITION (MODEL_FROZEN), ABORTED (REVISION_MISMATCH).
  absl::StatusOr<v1::Model> RollBackModel(
      std::string_view model, std::variant<std::string_view, int64_t> to,
      std::optional<int64_t> expected_revision = std::nullopt) const;

 private:
  struct Stubs;

  const std::unique_ptr<const Stubs> stubs_;
  const absl::Duration timeout_;
};

}  // namespace perceptrond::client
