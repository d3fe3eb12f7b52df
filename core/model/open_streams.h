// Which streams that learn or watch are open, whether or not their models are in memory: the newest
// stream of a producer ends the older one, and the deletion of a model ends all of its streams.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/sync/mutex.h"

namespace perceptrond {

// Thread contract: safe for any number of threads. Listeners are called without its lock.
class OpenStreams {
  // A model's uid, and a number that grows with each stream opened.
  using Key = std::pair<std::string, uint64_t>;

 public:
  // Told why the stream must end, once or, if two reasons meet, twice. A call may be under way
  // while the ticket goes: it must own what it uses.
  using Listener = std::function<void(const absl::Status& why)>;

  // The stream is open as long as this is there. Must not outlive the OpenStreams.
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

  // Opens a stream of the model with that uid; before it returns, an older stream of the same
  // producer is told that it ends: ABORTED, PRODUCER_SUPERSEDED. An empty producer is nobody's.
  std::unique_ptr<Ticket> Open(const std::string& model_uid, const std::string& producer,
                               Listener listener) ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells every open stream of the model why it ends.
  void EndAll(const std::string& model_uid, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Stream {
    std::string producer;
    Listener listener;
  };
  // Model and producer.
  using Speaker = std::pair<std::string, std::string>;

  // The listener of the stream that spoke for the producer, if there is one.
  Listener Supersede(const std::string& producer, const Key& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const Key& key) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Key, Stream> streams_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Speaker, uint64_t> speakers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
