// How messages of a stream are deleted, and which subjects there are.
#include <nats/nats.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/jetstream/api_answer.h"
#include "core/journal/jetstream/stream.h"

namespace perceptrond::jetstream {
namespace {

// Deletions that are under way at once, and how long one may take.
constexpr size_t kMostDeletions = 256;
constexpr absl::Duration kDeleteTimeout = absl::Seconds(5);

// Why a message was not deleted; empty if it was.
std::string WhyNotDeleted(natsMsg* answer) {
  if (natsMsg_IsNoResponders(answer)) return "JetStream does not answer";
  const absl::string_view data(natsMsg_GetData(answer),
                               static_cast<size_t>(natsMsg_GetDataLength(answer)));
  const std::optional<uint64_t> error = NumberIn(data, "err_code");
  if (!error.has_value()) return "";
  return absl::StrCat(DescriptionIn(data), ", JetStream error ", *error);
}

}  // namespace

absl::Status Stream::ForEachHeader(const std::string& subject, Content content,
                                   const std::function<bool(const StreamMessage&)>& visit) const {
  const absl::StatusOr<std::unique_ptr<StreamReader>> reader = Subscribe(subject, 0, content);
  if (!reader.ok()) return reader.status();
  absl::StatusOr<bool> more = (*reader)->HasMessages();
  while (more.ok() && *more) {
    const absl::StatusOr<std::optional<StreamMessage>> message = (*reader)->Next(kDeleteTimeout);
    if (!message.ok()) return message.status();
    if (!message->has_value() || !visit(**message)) break;
    more = (*message)->pending > 0;
  }
  return more.status();
}

absl::StatusOr<std::vector<uint64_t>> Stream::SequencesOf(const std::string& subject,
                                                          uint64_t end) const {
  std::vector<uint64_t> sequences;
  const auto add = [&](const StreamMessage& message) {
    if (message.sequence < end) sequences.push_back(message.sequence);
    return message.sequence < end;
  };
  if (absl::Status status = ForEachHeader(subject, Content::kHeaders, add); !status.ok())
    return status;
  return sequences;
}

// Not by the stream's information: libnats takes a minute to read 100,000 subjects of that.
absl::StatusOr<std::vector<std::string>> Stream::Subjects() const {
  std::vector<std::string> subjects;
  const auto add = [&](const StreamMessage& message) {
    subjects.push_back(message.subject);
    return true;
  };
  const absl::Status status = ForEachHeader(options_.subject + ".>", Content::kLastHeaders, add);
  if (!status.ok()) return status;
  return subjects;
}

// One by one: nats-server before 2.9.18 may repeat a purge of one subject as one of all subjects
// when it starts again (its issue 4196), and before 2.9.15 consumers pass over messages of other
// subjects (3838).
absl::Status Stream::Delete(const std::string& subject, uint64_t end) const {
  const absl::StatusOr<std::vector<uint64_t>> sequences = SequencesOf(subject, end);
  if (!sequences.ok()) return sequences.status();
  if (sequences->empty()) return absl::OkStatus();
  const std::shared_ptr<Link> link = connection_->link();
  const absl::Time begin = absl::Now();
  const std::string inbox = connection_->NewInbox();
  natsSubscription* answers = nullptr;
  natsStatus status = natsConnection_SubscribeSync(&answers, link->connection, inbox.c_str());
  const std::string subject_of_api = absl::StrCat("$JS.API.STREAM.MSG.DELETE.", options_.name);
  // The first error. What fails is deleted with the next snapshot, or swept.
  std::string why_not;
  for (size_t sent = 0, answered = 0; status == NATS_OK && answered < sequences->size();) {
    if (sent < sequences->size() && sent - answered < kMostDeletions) {
      const std::string request =
          absl::StrCat("{\"seq\":", (*sequences)[sent++], ",\"no_erase\":true}");
      status =
          natsConnection_PublishRequest(link->connection, subject_of_api.c_str(), inbox.c_str(),
                                        request.data(), static_cast<int>(request.size()));
      continue;
    }
    natsMsg* received = nullptr;
    status =
        natsSubscription_NextMsg(&received, answers, absl::ToInt64Milliseconds(kDeleteTimeout));
    if (status == NATS_OK && why_not.empty()) why_not = WhyNotDeleted(received);
    natsMsg_Destroy(received);
    ++answered;
  }
  if (answers != nullptr) natsSubscription_Destroy(answers);
  if (status != NATS_OK) return Failed(status, 0, "deleting in " + options_.name, begin);
  if (why_not.empty()) return absl::OkStatus();
  // Another deletion may have come first, which has no error of its own.
  const absl::StatusOr<std::vector<uint64_t>> left = SequencesOf(subject, end);
  if (left.ok() && left->empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("NATS: messages of ", subject, " cannot be deleted: ", why_not));
}

}  // namespace perceptrond::jetstream
