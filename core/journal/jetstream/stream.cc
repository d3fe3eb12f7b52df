#include "core/journal/jetstream/stream.h"

#include <nats/nats.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/journal/jetstream/api_answer.h"

namespace perceptrond::jetstream {
namespace {

constexpr char kExpectedHeader[] = "Nats-Expected-Last-Sequence";
constexpr char kTraceHeader[] = "traceparent";
// What the headers of a message may take.
constexpr size_t kHeaderBytes = 1024;
// Creating a stream takes an election.
constexpr absl::Duration kCreateTime = absl::Seconds(5);

natsStatus Make(const NewMessage& from, const std::string& reply, std::optional<uint64_t> expected,
                MessagePtr& message) {
  natsMsg* made = nullptr;
  natsStatus status = natsMsg_Create(&made, from.subject.c_str(), reply.c_str(), from.data.data(),
                                     static_cast<int>(from.data.size()));
  message.reset(made);
  if (status == NATS_OK && expected.has_value())
    status = natsMsgHeader_Set(made, kExpectedHeader, absl::StrCat(*expected).c_str());
  if (status == NATS_OK && !from.part.empty())
    status = natsMsgHeader_Set(made, kPartHeader, from.part.c_str());
  if (status == NATS_OK && !from.traceparent.empty())
    status = natsMsgHeader_Set(made, kTraceHeader, from.traceparent.c_str());
  return status;
}

// The settings of a stream that was found which no journal can use; empty if there are none. A limit of its bytes is the
// operator's to set: beyond it appends fail.
std::string WrongSettings(const jsStreamConfig& found, const jsStreamConfig& wanted,
                          bool any_replicas) {
  std::vector<std::string> wrong;
  const auto check = [&wrong](bool right, const std::string& what) {
    if (!right) wrong.push_back(what);
  };
  check(any_replicas || found.Replicas == wanted.Replicas,
        absl::StrCat("num_replicas is ", found.Replicas, ", not ", wanted.Replicas));
  check(found.SubjectsLen == 1 && std::string(found.Subjects[0]) == wanted.Subjects[0],
        absl::StrCat("subjects are not ", wanted.Subjects[0], " alone"));
  check(found.Storage == wanted.Storage, "storage");
  check(found.Discard == wanted.Discard, "discard is not new");
  check(found.Retention == js_LimitsPolicy, "retention is not limits");
  check(found.MaxAge == 0, "max_age");
  check(found.MaxMsgs <= 0, "max_msgs");
  check(found.MaxMsgsPerSubject <= 0, "max_msgs_per_subject");
  check(found.MaxMsgSize <= 0, "max_msg_size");
  check(!found.NoAck, "no_ack");
  check(!found.Sealed, "sealed");
  check(!found.DenyDelete, "deny_delete");
  check(!found.AllowRollup, "allow_rollup_hdrs");
  check(found.Mirror == nullptr && found.SourcesLen == 0, "mirror or sources");
  return absl::StrJoin(wrong, ", ");
}

}  // namespace

// The answers to the messages of one append.
class Stream::Answers {
 public:
  explicit Answers(size_t messages) : kinds_(messages, Kind::kNone), missing_(messages) {}

  // The message was not sent, nor is one after it.
  void NotSent(size_t number, std::string why) {
    missing_ = number;
    kinds_.resize(number);
    refused_ = std::move(why);
  }
  bool complete() const { return missing_ == 0; }
  void Add(size_t number, absl::string_view answer) {
    if (number >= kinds_.size() || kinds_[number] != Kind::kNone) return;
    --missing_;
    if (const std::optional<uint64_t> error = NumberIn(answer, "err_code"); error.has_value()) {
      kinds_[number] = *error == JSStreamWrongLastSequenceErr ? Kind::kStale : Kind::kRefused;
      if (kinds_[number] == Kind::kRefused && refused_.empty())
        refused_ = absl::StrCat(DescriptionIn(answer), ", JetStream error ", *error);
    } else if (const std::optional<uint64_t> sequence = NumberIn(answer, "seq");
               sequence.has_value()) {
      kinds_[number] = Kind::kWritten;
      first_ = std::min(first_, *sequence);
    }
  }
  // No server received one of the messages; the answer does not say which.
  void AddNoResponder() {
    --missing_;
    ++no_responders_;
  }
  absl::StatusOr<AppendOutcome> Evaluate(size_t messages, const std::string& stream) const {
    AppendOutcome outcome;
    while (outcome.written < kinds_.size() && kinds_[outcome.written] == Kind::kWritten)
      ++outcome.written;
    outcome.first = first_;
    outcome.sequence = first_ + outcome.written - 1;
    if (outcome.written == messages) return outcome;
    const auto none = static_cast<size_t>(std::count(
        kinds_.begin() + static_cast<std::ptrdiff_t>(outcome.written), kinds_.end(), Kind::kNone));
    if (none > no_responders_) {
      return absl::UnknownError(absl::StrCat("NATS: stream ", stream,
                                             " did not answer in time: whether it has ",
                                             none - no_responders_, " messages is not known"));
    }
    outcome.stale = outcome.written < kinds_.size() && kinds_[outcome.written] == Kind::kStale;
    if (!outcome.stale) {
      outcome.refused = absl::UnavailableError(absl::StrCat(
          "NATS: stream ", stream,
          " cannot be appended to: ", refused_.empty() ? "it has no leader" : refused_));
      if (outcome.written == 0) return outcome.refused;
    }
    return outcome;
  }

 private:
  enum class Kind : uint8_t { kNone, kWritten, kStale, kRefused };

  // Of the messages that were sent.
  std::vector<Kind> kinds_;
  size_t missing_;
  size_t no_responders_ = 0;
  uint64_t first_ = std::numeric_limits<uint64_t>::max();
  std::string refused_;
};

Stream::Stream(std::shared_ptr<Connection> connection, StreamOptions options)
    : connection_(std::move(connection)), options_(std::move(options)) {}

Stream::~Stream() {
  MutexLock lock(&append_mutex_);
  if (answers_ != nullptr) natsSubscription_Destroy(answers_);
}

absl::StatusOr<std::unique_ptr<Stream>> Stream::Open(std::shared_ptr<Connection> connection,
                                                     const StreamOptions& options) {
  std::unique_ptr<Stream> stream(new Stream(std::move(connection), options));
  if (absl::Status status = stream->CreateOrCheck(); !status.ok()) return status;
  return stream;
}

absl::Status Stream::Failed(int status, int js_error, absl::string_view what,
                            absl::Time since) const {
  const absl::Status failed = ToAbsl(status, js_error, what);
  if (js_error == JSClusterNotAvailErr) connection_->OnMajority(false);
  // What the cluster denies it does not answer.
  return status == NATS_TIMEOUT ? connection_->Explain(failed, since) : failed;
}

absl::Status Stream::SubscribeToAnswers() {
  if (answers_ != nullptr) natsSubscription_Destroy(answers_);
  answers_ = nullptr;
  link_ = connection_->link();
  inbox_ = connection_->NewInbox();
  const natsStatus status =
      natsConnection_SubscribeSync(&answers_, link_->connection, (inbox_ + ".>").c_str());
  return status == NATS_OK ? absl::OkStatus() : ToAbsl(status, 0, "subscribing to answers");
}

absl::Status Stream::CreateOrCheck() {
  const std::string subjects = options_.subject + ".>";
  const char* const one = subjects.c_str();
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = options_.name.c_str();
  config.Subjects = const_cast<const char**>(&one);
  config.SubjectsLen = 1;
  config.Discard = js_DiscardNew;
  config.Replicas = options_.replicas;
  config.Storage = options_.in_memory ? js_MemoryStorage : js_FileStorage;
  jsStreamInfo* info = nullptr;
  jsErrCode error = static_cast<jsErrCode>(0);
  const std::shared_ptr<Link> link = connection_->link();
  const absl::Time begin = absl::Now();
  const auto find = [&] {
    return js_GetStreamInfo(&info, link->context, options_.name.c_str(), nullptr, &error);
  };
  // Who may create no stream can use those there are.
  natsStatus status = find();
  const bool is_missing = status == NATS_NOT_FOUND || error == JSStreamNotFoundErr;
  if (is_missing && !options_.must_exist) {
    error = static_cast<jsErrCode>(0);
    jsOptions slow;
    jsOptions_Init(&slow);
    slow.Wait = absl::ToInt64Milliseconds(kCreateTime);
    status = js_AddStream(&info, link->context, &config, &slow, &error);
    if (error == JSStreamNameExistErr) status = find();
    // Another server creates it at this moment: not every NATS server knows of it yet.
    if (status == NATS_NOT_FOUND || error == JSStreamNotFoundErr) {
      return absl::UnavailableError(
          absl::StrCat("NATS: stream ", options_.name, " is being created by another server"));
    }
  }
  if (status != NATS_OK) {
    const absl::Status why = Failed(status, error, "stream " + options_.name, begin);
    const bool too_small = error == JSClusterNoPeersErr || error == JSInsufficientResourcesErr ||
                           error == JSStorageResourcesExceededErr ||
                           error == JSStreamReplicasNotSupportedErr;
    if (!too_small) return why;
    return absl::ResourceExhaustedError(absl::StrCat(why.message(), ": it needs ",
                                                     options_.replicas,
                                                     " servers with JetStream and space for it"));
  }
  const std::string wrong = WrongSettings(*info->Config, config, options_.must_exist);
  jsStreamInfo_Destroy(info);
  if (wrong.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "NATS: stream ", options_.name, " has settings that a journal cannot use: ", wrong,
      "; change them with NATS's tools, or delete the stream if it is empty"));
}

absl::StatusOr<AppendOutcome> Stream::Append(std::span<const NewMessage> messages,
                                             std::optional<uint64_t> expected,
                                             absl::Duration timeout) {
  // Else its outcome would not be known.
  if (absl::Status status = connection_->Check(); !status.ok()) return status;
  MutexLock lock(&append_mutex_);
  if (answers_ == nullptr || link_ != connection_->link()) {
    if (absl::Status status = SubscribeToAnswers(); !status.ok()) return status;
  }
  const absl::Time begin = absl::Now();
  // Whatever becomes of the wall clock meanwhile: an answer that was lost is not waited for longer.
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(timeout);
  const std::string inbox = absl::StrCat(inbox_, ".", ++appends_, ".");
  Answers answers(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto before = expected.has_value() ? std::optional(*expected + i) : std::nullopt;
    MessagePtr message;
    natsStatus status = Make(messages[i], absl::StrCat(inbox, i), before, message);
    if (status == NATS_OK) status = natsConnection_PublishMsg(link_->connection, message.get());
    if (status == NATS_OK) continue;
    answers.NotSent(i, std::string(ToAbsl(status, 0, "sending").message()));
    break;
  }
  while (!answers.complete()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    natsMsg* received = nullptr;
    const natsStatus status =
        natsSubscription_NextMsg(&received, answers_, std::max<int64_t>(left.count(), 1));
    const MessagePtr message(received);
    if (status == NATS_NO_RESPONDERS) {
      answers.AddNoResponder();
    } else if (status != NATS_OK) {
      break;
    } else if (absl::string_view to = natsMsg_GetSubject(received);
               absl::ConsumePrefix(&to, inbox)) {
      size_t number = 0;
      if (absl::SimpleAtoi(to, &number))
        answers.Add(number, {natsMsg_GetData(received),
                             static_cast<size_t>(natsMsg_GetDataLength(received))});
    }
  }
  // A late answer of this append must not be taken for one of the next.
  if (!answers.complete()) SubscribeToAnswers().IgnoreError();
  absl::StatusOr<AppendOutcome> outcome = answers.Evaluate(messages.size(), options_.name);
  if (!outcome.ok()) return connection_->Explain(outcome.status(), begin);
  return outcome;
}

absl::StatusOr<Stream::State> Stream::ReadState() const {
  if (absl::Status status = connection_->Check(); !status.ok()) return status;
  jsStreamInfo* info = nullptr;
  jsErrCode error = static_cast<jsErrCode>(0);
  const std::shared_ptr<Link> link = connection_->link();
  const absl::Time begin = absl::Now();
  const natsStatus status =
      js_GetStreamInfo(&info, link->context, options_.name.c_str(), nullptr, &error);
  if (status != NATS_OK) return Failed(status, error, "stream " + options_.name, begin);
  State state = {info->State.LastSeq, info->State.Consumers};
  const jsClusterInfo* const cluster = info->Cluster;
  state.has_leader = cluster == nullptr || (cluster->Leader != nullptr && *cluster->Leader != 0);
  jsStreamInfo_Destroy(info);
  return state;
}

absl::StatusOr<uint64_t> Stream::LastSequence() const {
  const absl::StatusOr<State> state = ReadState();
  if (!state.ok()) return state.status();
  // A server that is left alone answers nevertheless.
  connection_->OnMajority(state->has_leader);
  if (state->has_leader) return state->last;
  return absl::UnavailableError(absl::StrCat("NATS: stream ", options_.name, " has no leader"));
}

absl::StatusOr<int64_t> Stream::Readers() const {
  const absl::StatusOr<State> state = ReadState();
  return state.ok() ? absl::StatusOr<int64_t>(state->readers) : state.status();
}

size_t Stream::max_data() const { return connection_->max_payload() - kHeaderBytes; }

}  // namespace perceptrond::jetstream
