// How messages of a stream are read.
#include <nats/nats.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "core/journal/jetstream/stream.h"

namespace perceptrond::jetstream {
namespace {

constexpr absl::Duration kHeartbeat = absl::Seconds(2);
// How long a consumer is waited for, one after the other: for minutes after one of its servers died, NATS places some
// of them there, which never answer. The next one may be placed on another server.
constexpr absl::Duration kSubscribeTimes[] = {
    absl::Milliseconds(500), absl::Milliseconds(500), absl::Milliseconds(500),
    absl::Milliseconds(500), absl::Milliseconds(500), absl::Milliseconds(500),
    absl::Milliseconds(500), absl::Milliseconds(500), absl::Seconds(2)};

absl::Time TimeOf(int64_t nanos) { return absl::UnixEpoch() + absl::Nanoseconds(nanos); }

StreamMessage Convert(natsMsg* message, uint64_t sequence, int64_t nanos) {
  StreamMessage result;
  result.sequence = sequence;
  result.time = TimeOf(nanos);
  result.subject = natsMsg_GetSubject(message);
  result.data.assign(natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message)));
  const char* part = nullptr;
  if (natsMsgHeader_Get(message, kPartHeader, &part) == NATS_OK && part != nullptr)
    result.part = part;
  return result;
}

// `after` is absent for the last message of each subject.
natsStatus MakeConsumer(jsCtx* context, const std::string& stream, const std::string& subject,
                        std::optional<uint64_t> after, bool headers_only,
                        natsSubscription*& subscription, jsErrCode& error) {
  jsSubOptions options;
  jsSubOptions_Init(&options);
  options.Stream = stream.c_str();
  options.Ordered = true;
  options.Config.DeliverPolicy = js_DeliverLastPerSubject;
  if (after.has_value()) {
    options.Config.DeliverPolicy = js_DeliverByStartSequence;
    options.Config.OptStartSeq = *after + 1;
  }
  options.Config.HeadersOnly = headers_only;
  // The library makes another consumer when it misses two: one on a NATS server that died sends none.
  options.Config.Heartbeat = absl::ToInt64Nanoseconds(kHeartbeat);
  return js_SubscribeSync(&subscription, context, subject.c_str(), nullptr, &options, &error);
}

}  // namespace

StreamReader::~StreamReader() {
  // The consumer goes with it.
  natsSubscription_Unsubscribe(subscription_);
  natsSubscription_Destroy(subscription_);
  jsCtx_Destroy(context_);
}

absl::StatusOr<std::optional<StreamMessage>> StreamReader::Next(absl::Duration timeout) {
  natsMsg* received = nullptr;
  const natsStatus status = natsSubscription_NextMsg(
      &received, subscription_, std::max<int64_t>(absl::ToInt64Milliseconds(timeout), 1));
  const MessagePtr message(received);
  if (status == NATS_TIMEOUT) {
    if (connection_->link() != link_)
      return absl::UnavailableError("NATS: the connection was replaced");
    // The library waits for its return in silence.
    if (natsConnection_Status(link_->connection) == NATS_CONN_STATUS_CONNECTED) return std::nullopt;
    return absl::UnavailableError("NATS: no server is connected");
  }
  jsMsgMetaData* metadata = nullptr;
  if (status != NATS_OK) return ToAbsl(status, 0, "reading a stream");
  if (const natsStatus read = natsMsg_GetMetaData(&metadata, received); read != NATS_OK)
    return ToAbsl(read, 0, "reading a message");
  StreamMessage result = Convert(received, metadata->Sequence.Stream, metadata->Timestamp);
  result.pending = metadata->NumPending;
  jsMsgMetaData_Destroy(metadata);
  return result;
}

uint64_t StreamReader::queued() const {
  uint64_t queued = 0;
  return natsSubscription_QueuedMsgs(subscription_, &queued) == NATS_OK ? queued : 0;
}

absl::StatusOr<bool> StreamReader::HasMessages() const {
  jsConsumerInfo* info = nullptr;
  jsErrCode error = static_cast<jsErrCode>(0);
  const natsStatus status = natsSubscription_GetConsumerInfo(&info, subscription_, nullptr, &error);
  if (status != NATS_OK) return ToAbsl(status, error, "reading a stream");
  const bool any = info->NumPending > 0 || info->Delivered.Consumer > 0;
  jsConsumerInfo_Destroy(info);
  return any;
}

absl::StatusOr<std::optional<StreamMessage>> Stream::Last(const std::string& subject) const {
  if (absl::Status status = connection_->Check(); !status.ok()) return status;
  natsMsg* found = nullptr;
  jsErrCode error = static_cast<jsErrCode>(0);
  const absl::Time begin = absl::Now();
  const natsStatus status = js_GetLastMsg(&found, connection_->link()->context,
                                          options_.name.c_str(), subject.c_str(), nullptr, &error);
  const MessagePtr message(found);
  if (status == NATS_NOT_FOUND || error == JSNoMessageFoundErr) return std::nullopt;
  if (status != NATS_OK) return Failed(status, error, "reading " + options_.name, begin);
  return Convert(found, natsMsg_GetSequence(found), natsMsg_GetTime(found));
}

absl::StatusOr<std::unique_ptr<StreamReader>> Stream::Read(const std::string& subject,
                                                           uint64_t after) const {
  return Subscribe(subject, after, Content::kWhole);
}

absl::StatusOr<std::unique_ptr<StreamReader>> Stream::Subscribe(const std::string& subject,
                                                                uint64_t after,
                                                                Content content) const {
  const absl::Time begin = absl::Now();
  std::optional<uint64_t> from;
  if (content != Content::kLastHeaders) from = after;
  absl::Status why;
  for (const absl::Duration wait : kSubscribeTimes) {
    if (absl::Status status = connection_->Check(); !status.ok()) return status;
    const std::shared_ptr<Link> link = connection_->link();
    jsCtx* context = nullptr;
    if (const int status = MakeContext(link->connection, wait, &context); status != NATS_OK)
      return ToAbsl(status, 0, "JetStream");
    natsSubscription* subscription = nullptr;
    jsErrCode error = static_cast<jsErrCode>(0);
    const natsStatus status = MakeConsumer(context, options_.name, subject, from,
                                           content != Content::kWhole, subscription, error);
    if (status == NATS_OK) {
      // The server sends no more than is read: flow control.
      natsSubscription_SetPendingLimits(subscription, -1, -1);
      return std::unique_ptr<StreamReader>(
          new StreamReader(connection_, link, context, subscription));
    }
    jsCtx_Destroy(context);
    why = Failed(status, error, "reading " + options_.name, begin);
    if (status != NATS_TIMEOUT) break;
  }
  return why;
}

}  // namespace perceptrond::jetstream
