// Copies, renames, exports, imports and rolls back the models of a store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/past_state.h"
#include "core/store/model_file.h"
#include "core/store/store.h"

namespace perceptrond {

// Names are full names of models, "models/{model}". Errors of every method, besides those it names: NOT_FOUND
// (MODEL_NOT_FOUND), UNAVAILABLE (JOURNAL_UNAVAILABLE, NOT_THE_WRITER), DATA_LOSS (JOURNAL_CORRUPT),
// RESOURCE_EXHAUSTED (OUT_OF_MEMORY, MODEL_TOO_LARGE).
//
// Thread contract: safe for any number of threads.
class ModelHistory {
 public:
  static constexpr int kMostKept = 16;

  // The store must outlive it.
  explicit ModelHistory(Store& store) : store_(store) {}

  // Copies a model as it is at one moment. Durable on return. See ModelCatalogue::CreateCopy.
  absl::StatusOr<::perceptron::v1::Model> Copy(absl::string_view name, absl::string_view new_name,
                                               const std::string& request_id);
  // Gives a model another name. Durable on return. Streams of the model end; what was learned and not
  // acknowledged may be lost. See ModelCatalogue::Rename.
  absl::Status Rename(absl::string_view name, absl::string_view new_name, absl::string_view etag);

  // The model as it is at one moment, in a file. RESOURCE_EXHAUSTED (ANSWER_TOO_LARGE).
  absl::StatusOr<ModelFilePieces> Export(absl::string_view name);
  // What reads such a file for Import.
  ModelFileReader ReadFile(ModelFileReader::Hold hold = nullptr) const;
  // Whether a model with these settings could be created, of a file that is not read to its end:
  // ALREADY_EXISTS (MODEL_EXISTS); RESOURCE_EXHAUSTED (MODEL_TOO_LARGE, MODEL_LIMIT); PERMISSION_DENIED,
  // UNAUTHENTICATED (components that the current caller may not read). Changes nothing.
  // Of a damaged file it may be another error than Import's.
  absl::Status CheckImport(const storage::ModelHeader& settings, absl::string_view new_name,
                           const std::string& request_id);
  // Creates a model from a file that was read. Durable on return. INVALID_ARGUMENT (BAD_MODEL_FILE,
  // INVALID_FIELD); otherwise as Copy.
  absl::StatusOr<::perceptron::v1::Model> Import(ModelFileReader file, absl::string_view new_name,
                                                 const std::string& request_id);

  // Keeps the model's current state. Durable on return. ALREADY_EXISTS (SNAPSHOT_EXISTS);
  // RESOURCE_EXHAUSTED (SNAPSHOT_LIMIT).
  absl::StatusOr<storage::KeptSnapshot> Keep(absl::string_view name, const std::string& id);
  // Oldest first.
  absl::StatusOr<std::vector<storage::KeptSnapshot>> List(absl::string_view name);
  // NOT_FOUND (SNAPSHOT_NOT_FOUND).
  absl::Status Delete(absl::string_view name, absl::string_view id);
  // A kept snapshot, or with `revision` the state that the update after it found; of the newest, the current
  // state. If those updates are not held, of a kept snapshot's revision, that snapshot.
  struct RollbackTarget {
    std::string id;
    std::optional<uint64_t> revision = std::nullopt;
  };
  // Gives the model an earlier state, as a new revision. Durable on return. Streams that learn end;
  // what was learned and not acknowledged may be lost. NOT_FOUND (SNAPSHOT_NOT_FOUND,
  // REVISION_NOT_KEPT); ABORTED (REVISION_MISMATCH); FAILED_PRECONDITION (MODEL_FROZEN). O(state, and
  // records since the kept snapshot).
  absl::Status RollBack(absl::string_view name, const RollbackTarget& target,
                        std::optional<uint64_t> expected_revision);

 private:
  // A model as it is at one moment.
  struct WholeModel {
    storage::ModelHeader header;
    storage::Snapshot state;
    CommittedState committed;
  };
  absl::StatusOr<WholeModel> Read(absl::string_view name);
  absl::StatusOr<::perceptron::v1::Model> CreateCopy(const storage::ModelHeader& source,
                                                     const storage::Snapshot& state,
                                                     const CommittedState& committed,
                                                     absl::string_view new_name,
                                                     const std::string& request_id);
  // Acquires a model that this server writes.
  absl::StatusOr<std::shared_ptr<Model>> AcquireToWrite(absl::string_view name);
  // Commits what the model has learned, and closes it: on return nothing of it is written any more, and
  // the journal has its last state. It goes on predicting if `predicts`.
  absl::Status CommitAndClose(const std::shared_ptr<Model>& model, const absl::Status& why,
                              bool predicts);
  absl::StatusOr<PastState> Find(storage::ModelHeader& header, const std::shared_ptr<Model>& model,
                                 const RollbackTarget& target);
  absl::StatusOr<PastState> Load(const storage::ModelHeader& header,
                                 const storage::KeptSnapshot& kept);
  absl::StatusOr<PastState> FindRevision(storage::ModelHeader& header,
                                         const std::shared_ptr<Model>& model, uint64_t revision);
  absl::Status CommitRollback(const std::shared_ptr<Model>& model, PastState past,
                              std::optional<uint64_t> expected_revision);

  Store& store_;
};

}  // namespace perceptrond
