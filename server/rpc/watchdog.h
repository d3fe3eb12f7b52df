// Keeps a handle of each connection that was handed to gRPC: notices when it ends, and closes it when
// the watch condemns it, or once a refused one's call has been answered.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"
#include "server/rpc/connection_watch.h"
#include "server/rpc/connections.h"

namespace perceptrond {

// One thread, which never runs gRPC's code: a thread that does reads a flooded connection for as
// long as bytes arrive, and only this one ends that.
//
// A handle is a second descriptor of the connection, since gRPC owns the first and closes it at any
// time: by its own descriptor this can close a connection without ever meeting another one that got
// the number meanwhile. gRPC shuts a connection down before it closes its descriptor, which is seen
// at the handle.
//
// Thread contract: one thread starts and stops it; any thread may call Add.
class Watchdog {
 public:
  struct Options {
    WatchLimits limits;
    // Resident memory above which those connections are closed that hold the most unfinished bytes, and
    // what each call in flight adds to it; 0: no bound.
    uint64_t max_resident_bytes = 0;
    uint64_t stream_bytes = 0;
  };

  // `connections` must outlive this.
  Watchdog(Connections& connections, Options options)
      : connections_(connections), options_(options) {}
  // Stops.
  ~Watchdog();

  void Start();
  // Connections go on, but are no longer watched.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Watches a connection from before it is handed to gRPC until it ends, when it is removed from the
  // connections. False, and nothing is changed, if there is no descriptor for the handle. Between
  // Start and Stop.
  bool Add(int descriptor, std::shared_ptr<Connection> connection) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Open {
    std::shared_ptr<Connection> connection;
    absl::Time since;
    ConnectionWatch watch;
    // Of a refused one: whether all calls that it began were answered at the last look.
    bool answered = false;
    // Bytes that the kernel has received, and those of them that gRPC has read.
    uint64_t received = 0;
    uint64_t read = 0;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles the ends of connections until `until`; false if the thread must end.
  bool AwaitEnds(absl::Time until) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnded(int handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks all connections; whether one has received anything since the last time.
  bool CheckAll(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a refused connection once its client has had an answer, or too long to ask.
  static void EndRefused(int handle, Open& open, absl::Time now);
  void CloseForMemory(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns how much resident memory is above the bound.
  uint64_t ExcessBytes() const;
  void Close(int handle, CloseReason reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Connections& connections_;
  const Options options_;
  int epoll_ = -1;
  // Readable when the thread must end.
  int stop_ = -1;
  Mutex mutex_;
  // By handle.
  absl::flat_hash_map<int, Open> open_ ABSL_GUARDED_BY(mutex_);
  // When connections were last closed for memory.
  absl::Time memory_close_time_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::thread thread_;
};

}  // namespace perceptrond
