// The producers of a model: who sends its examples, and how far each of them is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/convergence/pass.h"
#include "core/sync/mutex.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

// The position of a producer at one moment.
struct ProducerPosition {
  // The number of the next example.
  int64_t next_offset = 0;
  // Passes that have ended.
  int64_t passes = 0;
  std::optional<PassSummary> last_pass;
};

// One sender of examples. Named producers belong to a model's ledger and are journaled. A stream
// without a name has a producer of its own.
//
// Thread contract: `turn` and `id` are safe for any number of threads. The position changes under
// both the turn and the ledger's lock, so that either is enough to read it; all else is the
// ledger's.
class Producer {
 public:
  // An empty id: without a name, never journaled.
  explicit Producer(std::string id) : id(std::move(id)) {}

  const std::string id;
  // Held while a message of this producer is learned, so that a stream and its successor take
  // turns.
  Mutex turn;

  const ProducerPosition& position() const ABSL_SHARED_LOCKS_REQUIRED(turn) { return position_; }

 private:
  friend class ProducerTable;

  // The principal that the id belongs to; empty: nobody's yet.
  std::string owner_;
  ProducerPosition position_;
  PassProgress pass_;
  // Moved since the last TakeMoved.
  bool moved_ = false;
};

// The named producers of a model, and the only way to change a producer's position.
//
// Thread contract: not thread-safe; the ledger guards it.
class ProducerTable {
 public:
  explicit ProducerTable(size_t max_producers) : max_producers_(max_producers) {}

  // The producer of that name, created on first use. It counts against max_producers from its first
  // example or pass on, and before that only while it is held: a refused request uses up no
  // place. It belongs to the principal of the first caller, for as long as it counts.
  // PERMISSION_DENIED (PERMISSION_DENIED) for another one; RESOURCE_EXHAUSTED (PRODUCER_LIMIT).
  absl::StatusOr<std::shared_ptr<Producer>> Find(absl::string_view id);
  // Recovery, and following another server: puts a producer at its committed position.
  void Restore(const ::perceptron::storage::v1::ProducerPosition& stored);

  // For a change, which the next TakeMoved reports. The caller holds the producer and its turn.
  struct Mutable {
    ProducerPosition& position;
    PassProgress& pass;
  };
  Mutable Move(Producer& producer);

  // The named producers that moved since the last call, as they are stored.
  std::vector<::perceptron::storage::v1::ProducerPosition> TakeMoved();
  // All named producers that have a position.
  std::vector<::perceptron::storage::v1::ProducerPosition> CopyAll() const;

  // Approximate. O(1).
  size_t memory_bytes() const { return bytes_ + new_.size() * sizeof(Producer); }

 private:
  static ::perceptron::storage::v1::ProducerPosition Store(const Producer& producer);
  static absl::StatusOr<std::shared_ptr<Producer>> GiveToCaller(std::shared_ptr<Producer> producer);
  void Add(std::shared_ptr<Producer> producer);

  const size_t max_producers_;
  absl::flat_hash_map<std::string, std::shared_ptr<Producer>> producers_;
  size_t bytes_ = 0;
  // Producers without an example or pass yet.
  absl::flat_hash_map<std::string, std::weak_ptr<Producer>> new_;
  std::vector<std::shared_ptr<Producer>> moved_;
};

}  // namespace perceptrond
