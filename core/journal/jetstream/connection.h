// A connection to a NATS cluster. libnats reconnects by itself, to any server of the cluster; what
// it cannot do, this does: connect with other credentials and certificates once their files change,
// and leave a server that is parted from the others.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/sync/mutex.h"

// The library's own names, so that its header is included by this folder's sources alone.
struct __jsCtx;
struct __natsConnection;
struct __natsMsg;
struct __natsSubscription;

namespace perceptrond::jetstream {

struct ConnectionOptions {
  // As nats://host:port, without credentials: a process list would show them.
  std::vector<std::string> servers;
  // A user's credentials as NATS's tools write them, a JWT and its key; or one line USER:PASSWORD.
  // Empty: none.
  std::string credentials_file;
  // PEM files. Servers that ask for TLS get it; with `tls` nothing else is accepted. Empty: the
  // system's authorities, and no certificate of our own.
  bool tls = false;
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  // Shown by the cluster's monitoring.
  std::string client_name = "perceptrond";
  // All answers come to subjects that begin with it and a dot: nothing else need be allowed.
  std::string inbox_prefix = "_INBOX";
  absl::Duration timeout = absl::Seconds(2);
  // Called for what the cluster denies and for changed files that cannot be used, on any thread,
  // one at a time: the same again only after a while. It has no secrets. May be null.
  std::function<void(absl::string_view problem)> on_problem;
  // Called when changed files are in use. May be null.
  std::function<void()> on_renewed;
  // Called when a server without a majority of the cluster was left for another one. May be null.
  std::function<void()> on_left;
};

// A connection as libnats has it.
struct Link {
  Link() = default;
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  __natsConnection* connection = nullptr;
  // For what neither waits long nor subscribes.
  __jsCtx* context = nullptr;
};

// Makes the context for calls of JetStream's API on this connection, each of which waits for its
// answer for this time. Returns a natsStatus.
int MakeContext(__natsConnection* connection, absl::Duration wait, __jsCtx** context);

// Thread contract: safe for any number of threads.
class Connection {
 public:
  // UNAVAILABLE if no server can be reached; UNAUTHENTICATED; FAILED_PRECONDITION if the files of
  // credentials or TLS cannot be used, or the server's certificate is not accepted.
  static absl::StatusOr<std::shared_ptr<Connection>> Open(const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The one in use. Users of an older one should finish what they began there, and change to this
  // one.
  std::shared_ptr<Link> link() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A subject for answers that nothing else has.
  std::string NewInbox() const;
  // Waits until the cluster has received what was sent before. UNAVAILABLE.
  absl::Status Flush() const;
  // What the cluster has denied last since this time: a subject that this user may not publish or
  // subscribe to. Empty if nothing was. Calls that were denied are not answered.
  std::string DeniedSince(absl::Time time) const;
  // The error with that, which may be its reason.
  absl::Status Explain(const absl::Status& status, absl::Time since) const;

  // Bytes that a message may have, its headers included.
  size_t max_payload() const { return max_payload_; }
  // UNAVAILABLE while no server is connected: requests would wait for one.
  absl::Status Check() const;
  // What JetStream said last of the server in use: whether it is with a majority of the cluster.
  // One that is not for some time, as when it is parted from the others, is left for another one.
  void OnMajority(bool is_with_it) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Problems;

  Connection(const ConnectionOptions& options, std::shared_ptr<Problems> problems)
      : options_(options), problems_(std::move(problems)) {}
  absl::StatusOr<std::shared_ptr<Link>> Connect() const;
  std::string Fingerprint() const;
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsAlone() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Connects anew if a file has changed, the cluster has closed the connection in use, or its
  // server is without a majority; if that fails, the connection stays.
  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  const ConnectionOptions options_;
  const std::shared_ptr<Problems> problems_;
  size_t max_payload_ = 0;
  // Of the files that the link was made with, and as they were seen last. Used by the thread alone.
  std::string used_files_;
  std::string seen_files_;
  mutable Mutex mutex_;
  std::shared_ptr<Link> link_ ABSL_GUARDED_BY(mutex_);
  // When the server in use was first found without a majority since it was last with one.
  std::optional<std::chrono::steady_clock::time_point> alone_since_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The last member: it uses all the others.
  std::thread thread_;
};

struct MessageDeleter {
  void operator()(__natsMsg* message) const;
};
using MessagePtr = std::unique_ptr<__natsMsg, MessageDeleter>;

// The status of a call of the library that failed: natsStatus `status`, and JetStream's error code,
// 0 if there is none. UNAVAILABLE but for NOT_FOUND and UNAUTHENTICATED. `what` begins the message.
absl::Status ToAbsl(int status, int js_error, absl::string_view what);

}  // namespace perceptrond::jetstream
