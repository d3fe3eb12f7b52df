#include "core/journal/jetstream/announcements.h"

#include <nats/nats.h>

#include <utility>

#include "core/sync/thread_name.h"

namespace perceptrond::jetstream {
namespace {

// How often the thread looks whether it must end.
constexpr int64_t kPollMs = 200;

}  // namespace

absl::StatusOr<std::unique_ptr<Announcements>> Announcements::Open(
    std::shared_ptr<Connection> connection, const std::string& subject) {
  natsSubscription* subscription = nullptr;
  const natsStatus status =
      natsConnection_SubscribeSync(&subscription, connection->get(), subject.c_str());
  if (status != NATS_OK) return ToAbsl(status, 0, subject);
  return std::unique_ptr<Announcements>(
      new Announcements(std::move(connection), subject, subscription));
}

Announcements::Announcements(std::shared_ptr<Connection> connection, std::string subject,
                             natsSubscription* subscription)
    : connection_(std::move(connection)),
      subject_(std::move(subject)),
      subscription_(subscription),
      thread_([this] { Run(); }) {}

Announcements::~Announcements() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
  natsSubscription_Destroy(subscription_);
}

absl::Status Announcements::Send(absl::string_view message) const {
  const natsStatus status = natsConnection_Publish(
      connection_->get(), subject_.c_str(), message.data(), static_cast<int>(message.size()));
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
    // A failure is that of the connection, which comes back by itself.
    const natsStatus status = natsSubscription_NextMsg(&received, subscription_, kPollMs);
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
