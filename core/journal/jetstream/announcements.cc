#include "core/journal/jetstream/announcements.h"

#include <nats/nats.h>

#include <utility>

#include "absl/time/clock.h"
#include "core/sync/thread_name.h"

namespace perceptrond::jetstream {
namespace {

// How often the thread looks whether it must end.
constexpr int64_t kPollMs = 200;

}  // namespace

absl::StatusOr<std::unique_ptr<Announcements>> Announcements::Open(
    std::shared_ptr<Connection> connection, const std::string& subject) {
  const absl::Time begin = absl::Now();
  std::unique_ptr<Announcements> announcements(new Announcements(std::move(connection), subject));
  absl::Status status = announcements->Subscribe();
  if (status.ok()) status = announcements->connection_->Flush();
  if (!status.ok()) return status;
  if (const std::string denied = announcements->connection_->DeniedSince(begin); !denied.empty())
    return absl::UnavailableError(denied);
  announcements->thread_ = std::thread([raw = announcements.get()] { raw->Run(); });
  return announcements;
}

Announcements::Announcements(std::shared_ptr<Connection> connection, std::string subject)
    : connection_(std::move(connection)), subject_(std::move(subject)) {}

Announcements::~Announcements() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
  if (subscription_ != nullptr) natsSubscription_Destroy(subscription_);
}

absl::Status Announcements::Subscribe() {
  std::shared_ptr<Link> link = connection_->link();
  if (subscription_ != nullptr && link == link_) return absl::OkStatus();
  if (subscription_ != nullptr) natsSubscription_Destroy(subscription_);
  subscription_ = nullptr;
  link_ = std::move(link);
  const natsStatus status =
      natsConnection_SubscribeSync(&subscription_, link_->connection, subject_.c_str());
  return status == NATS_OK ? absl::OkStatus() : ToAbsl(status, 0, subject_);
}

absl::Status Announcements::Send(absl::string_view message) const {
  const natsStatus status =
      natsConnection_Publish(connection_->link()->connection, subject_.c_str(), message.data(),
                             static_cast<int>(message.size()));
  return status == NATS_OK ? absl::OkStatus() : ToAbsl(status, 0, subject_);
}

void Announcements::Listen(Listener listener) {
  MutexLock lock(&mutex_);
  listener_ = std::move(listener);
}

void Announcements::Run() {
  NameThisThread("announcements");
  while (true) {
    natsMsg* received = nullptr;
    // A failure is that of the connection, which comes back by itself, or is replaced.
    const natsStatus status = Subscribe().ok()
                                  ? natsSubscription_NextMsg(&received, subscription_, kPollMs)
                                  : NATS_CONNECTION_CLOSED;
    const MessagePtr message(received);
    MutexLock lock(&mutex_);
    if (stopping_) return;
    if (status == NATS_OK && listener_ != nullptr)
      listener_({natsMsg_GetData(received), static_cast<size_t>(natsMsg_GetDataLength(received))});
    if (status != NATS_OK && status != NATS_TIMEOUT)
      mutex_.AwaitWithTimeout(absl::Condition(&stopping_), absl::Milliseconds(kPollMs));
  }
}

}  // namespace perceptrond::jetstream
