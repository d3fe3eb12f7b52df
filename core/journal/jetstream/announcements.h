// Messages between the servers of a fleet on a plain subject of NATS, which keeps none of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/journal/jetstream/connection.h"
#include "core/sync/mutex.h"

namespace perceptrond::jetstream {

// Thread contract: safe for any number of threads.
class Announcements {
 public:
  using Listener = std::function<void(absl::string_view message)>;

  // UNAVAILABLE, also if the subject may not be subscribed to.
  static absl::StatusOr<std::unique_ptr<Announcements>> Open(std::shared_ptr<Connection> connection,
                                                             const std::string& subject);
  ~Announcements();
  Announcements(const Announcements&) = delete;
  Announcements& operator=(const Announcements&) = delete;

  // UNAVAILABLE if no server of NATS can be reached.
  absl::Status Send(absl::string_view message) const;
  // As Journal::Listen. What this server sends comes back to it, too.
  void Listen(Listener listener) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Announcements(std::shared_ptr<Connection> connection, std::string subject);
  // On the connection in use, unless it is already.
  absl::Status Subscribe();
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<Connection> connection_;
  const std::string subject_;
  // Used by the thread alone, once it runs.
  std::shared_ptr<Link> link_;
  __natsSubscription* subscription_ = nullptr;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Listener listener_ ABSL_GUARDED_BY(mutex_);
  // The last member: it uses all the others.
  std::thread thread_;
};

}  // namespace perceptrond::jetstream
