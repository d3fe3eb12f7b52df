// Makes a journal the copy of another, of any kind: every model with its settings, state, counters,
// producers' positions and kept snapshots; and the aliases. Each is restored as a server restores
// it, and so checked; what is written is its state at its revision, and the records before it are
// not. Then the copy is read back and compared to the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "core/journal/journal.h"

namespace perceptrond {

// Errors of every method: the journals'; DATA_LOSS for a model of `from` that is damaged. The
// message names the model.
//
// Thread contract: used by one thread at a time. Memory: some times that of the largest model.
class JournalCopy {
 public:
  // Called after each model: how many are done of those there are.
  using Progress = std::function<void(uint64_t done, uint64_t models)>;

  struct Statistics {
    uint64_t models = 0;
    // Those of them that `to` had already.
    uint64_t copied_before = 0;
    // Of their states, counters and positions.
    uint64_t bytes = 0;
  };

  explicit JournalCopy(Progress progress) : progress_(std::move(progress)) {}

  // Copies all models to a journal that was opened for an import, and deletes others there. A model
  // that `to` has to the bit stays: an interrupted copy goes on. Others may write to `from`
  // meanwhile: then each model is copied as it was at one moment, and those that are created or
  // deleted as they are at the end.
  absl::Status Run(Journal& from, Journal& to);
  // Compares the models of `to`, which may have been closed and opened again, with what was read.
  // DATA_LOSS if one differs, is missing, or is not of the copy.
  absl::Status Verify(Journal& to) const;

  const Statistics& statistics() const { return statistics_; }

 private:
  // 128 bits of a hash of everything that is copied of a model.
  struct Digest {
    uint64_t low = 0;
    uint64_t high = 0;
    bool operator==(const Digest&) const = default;
  };
  struct Copied {
    // The model's in `from`.
    uint64_t source_id = 0;
    Digest digest;
  };
  // A model as one journal has it.
  struct WholeModel {
    storage::ModelHeader header;
    CommittedState committed;
    storage::Snapshot snapshot;
    Digest digest;
    uint64_t bytes = 0;
  };

  static absl::StatusOr<WholeModel> Read(Journal& journal, const storage::ModelHeader& header);
  static void AddToDigest(const google::protobuf::MessageLite& message, WholeModel& model);
  static void ComputeDigest(WholeModel& model);
  static absl::Status Write(Journal& to, WholeModel& model);
  // Copies the kept snapshots of a model that `to` has with this header, which then lists them.
  static absl::Status CopyKept(Journal& from, Journal& to, const storage::ModelHeader& source,
                               const storage::ModelHeader& copied);
  static absl::Status Delete(Journal& to, const std::string& name);
  // Adds the kept snapshots to the model's digest.
  static absl::Status AddKept(Journal& journal, WholeModel& model);
  // Has `to` have the aliases that `from` has, and no others. Returns whether it did already.
  absl::StatusOr<bool> CopyAliases(Journal& from, Journal& to);
  // Copies one model, unless it was deleted meanwhile.
  absl::Status Copy(Journal& from, Journal& to, const storage::ModelHeader& header);
  // Copies the models that are not copied. Returns how many there were.
  absl::StatusOr<uint64_t> CopyNew(Journal& from, Journal& to);
  // Deletes the models of `to` that `from` does not have, or not any more. Returns how many there
  // were.
  absl::StatusOr<uint64_t> DeleteOthers(Journal& from, Journal& to);

  const Progress progress_;
  Statistics statistics_;
  std::map<std::string, Copied> copied_;
};

}  // namespace perceptrond
