// The open streams that learn or watch a model, in memory or not: the newest stream of a producer
// ends the older one, and the deletion of a model ends all of its streams. Those that other servers of a fleet have
// received can be asked for what these have evaluated, before the model gets another writer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads. Callbacks are called without its lock.
class OpenStreams {
  // A model's uid, and a number that ascends with each stream.
  using Key = std::pair<std::string, uint64_t>;

 public:
  // Called with the reason why the stream must end: once, or twice if two reasons coincide. May
  // still run while the ticket is destroyed: it must own what it uses.
  using OnEnd = std::function<void(const absl::Status& why)>;
  // Asks for the rest of a stream, which then ends by itself. Owns what it uses, as OnEnd.
  using OnAsk = std::function<void()>;

  // A stream is open as long as its ticket exists. Must not outlive the OpenStreams.
  class Ticket {
   public:
    ~Ticket() { streams_.Remove(key_); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

   private:
    friend class OpenStreams;
    Ticket(OpenStreams& streams, Key key) : streams_(streams), key_(std::move(key)) {}

    OpenStreams& streams_;
    const Key key_;
  };

  // Opens a stream of the model with that uid. Before it returns, an older stream of the same
  // producer is ended: ABORTED (PRODUCER_SUPERSEDED). Streams with an empty producer end no other.
  // A null `on_ask`: nothing is known elsewhere.
  std::unique_ptr<Ticket> Open(const std::string& model_uid, const std::string& producer,
                               OnEnd on_end, OnAsk on_ask = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  // Asks for the rest of these models' streams, and waits until those that were asked have ended, for at most
  // `timeout`. One that could be asked and is opened meanwhile is ended for the reason `why`.
  void AwaitRest(const std::vector<std::string>& model_uids, const absl::Status& why,
                 absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the model has an open stream.
  bool HasAny(const std::string& model_uid) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends every open stream of the model.
  void EndAll(const std::string& model_uid, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Stream {
    std::string producer;
    OnEnd on_end;
    OnAsk on_ask;
    // Not null while it is waited for: how many streams are.
    size_t* awaited = nullptr;
  };
  // A model and a producer.
  using Name = std::pair<std::string, std::string>;

  // Makes this the producer's stream. The callback of the one before, if there is one.
  OnEnd Supersede(const std::string& producer, const Key& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Stream> streams_ ABSL_GUARDED_BY(mutex_);
  // Models whose streams are asked for their rest, and why others end.
  absl::flat_hash_map<std::string, absl::Status> asked_ ABSL_GUARDED_BY(mutex_);
  // The newest stream of each producer.
  absl::flat_hash_map<Name, uint64_t> newest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
