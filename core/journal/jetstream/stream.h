// One stream of JetStream: messages in one order, kept by a majority of its servers. A message may
// be appended on condition that none came since a sequence number. The servers check that when they
// apply the message, so that of several equal appends one wins, whichever server was asked.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/journal/jetstream/connection.h"
#include "core/sync/mutex.h"

namespace perceptrond::jetstream {

// The header of NewMessage::part.
inline constexpr char kPartHeader[] = "Perceptrond-Part";

struct StreamOptions {
  std::string name;
  // Every subject of the stream begins with it and a dot.
  std::string subject;
  // Servers that keep it: 1, 3 or 5.
  int replicas = 3;
  // Never created, and kept by as many servers as there are.
  bool must_exist = false;
  // In the servers' memory instead of their files, for tests.
  bool in_memory = false;
};

struct NewMessage {
  std::string subject;
  std::string data;
  // Empty: none. Which part of a larger one it is (parts.h).
  std::string part;
  // The W3C trace context of the call that it is written for; empty: none.
  std::string traceparent = {};
};

struct StreamMessage {
  uint64_t sequence = 0;
  absl::Time time;
  std::string subject;
  std::string data;
  std::string part;
  // Messages of the subject after this one, when it was sent.
  uint64_t pending = 0;
};

// The outcome of an append.
struct AppendOutcome {
  // The messages that were appended: the first `written` ones.
  size_t written = 0;
  // The sequence numbers of the first and the last of them.
  uint64_t first = 0;
  uint64_t sequence = 0;
  // Why the others were not: another message came before them; or else `refused`.
  bool stale = false;
  absl::Status refused;
};

// Reads messages in order, those to come as well.
//
// Thread contract: used by one thread at a time.
class StreamReader {
 public:
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  // Waits for the next one; absent if there is none by then. Messages that were deleted are passed
  // over. UNAVAILABLE, also while there is no connection, and once it was replaced: another reader
  // goes on there.
  absl::StatusOr<std::optional<StreamMessage>> Next(absl::Duration timeout);
  // Messages that have arrived and Next has not returned.
  uint64_t queued() const;
  // Whether there was any message to read yet.
  absl::StatusOr<bool> HasMessages() const;

 private:
  friend class Stream;
  StreamReader(std::shared_ptr<Connection> connection, std::shared_ptr<Link> link, __jsCtx* context,
               __natsSubscription* subscription)
      : connection_(std::move(connection)),
        link_(std::move(link)),
        context_(context),
        subscription_(subscription) {}

  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<Link> link_;
  __jsCtx* const context_;
  __natsSubscription* const subscription_;
};

// Thread contract: safe for any number of threads. Appends are made one at a time.
class Stream {
 public:
  // Creates the stream, or checks the one there is. NOT_FOUND if it must exist; FAILED_PRECONDITION
  // if it has other settings; RESOURCE_EXHAUSTED if the cluster has too few servers or too little
  // space; UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<Stream>> Open(std::shared_ptr<Connection> connection,
                                                      const StreamOptions& options);
  ~Stream();

  // Appends the messages in order and waits until a majority of the servers has them, or until
  // `timeout`. `expected`: only if it is the sequence number of the stream's last message; 0: of an
  // empty stream; each further message then expects the one before it. Once one is stale the
  // outcome counts none after it, but the stream may have some: as many messages of another writer
  // as came first make the next expectation true again. Readers tell them by what they carry
  // (LogEntry.epoch). Without `expected` the messages may lie apart. UNKNOWN: whether some were
  // appended is not known, and they still may be, unless another one comes first. Other errors:
  // none was.
  absl::StatusOr<AppendOutcome> Append(std::span<const NewMessage> messages,
                                       std::optional<uint64_t> expected, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(append_mutex_);
  // 0: it has never had a message. UNAVAILABLE also without a leader, as when a majority of its
  // servers is lost.
  absl::StatusOr<uint64_t> LastSequence() const;
  // Those who read it at this moment, or did a few seconds ago.
  absl::StatusOr<int64_t> Readers() const;
  // The last message of a subject; absent if there is none.
  absl::StatusOr<std::optional<StreamMessage>> Last(const std::string& subject) const;
  // The subjects that messages have; one whose last message came just now may be there twice. O(subjects).
  absl::StatusOr<std::vector<std::string>> Subjects() const;
  // Reads the messages of a subject, which may end in ".>", after a sequence number. UNAVAILABLE:
  // NATS does not answer, or placed each of several readers on a server that is lost.
  absl::StatusOr<std::unique_ptr<StreamReader>> Read(const std::string& subject,
                                                     uint64_t after) const;
  // Deletes the messages of a subject, which may end in ".>": up to a sequence number, or all. UNAVAILABLE: some are left.
  absl::Status DeleteUpTo(const std::string& subject, uint64_t sequence) const {
    return sequence == 0 ? absl::OkStatus() : Delete(subject, sequence + 1);
  }
  absl::Status DeleteAll(const std::string& subject) const {
    return Delete(subject, std::numeric_limits<uint64_t>::max());
  }

  const StreamOptions& options() const { return options_; }
  // Bytes of data that a message may have.
  size_t max_data() const;

 private:
  class Answers;
  struct State {
    uint64_t last = 0;
    int64_t readers = 0;
    bool has_leader = false;
  };

  Stream(std::shared_ptr<Connection> connection, StreamOptions options);
  // Makes a new inbox: what is still sent to an earlier one is of no interest.
  absl::Status SubscribeToAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(append_mutex_);
  absl::Status CreateOrCheck();
  absl::StatusOr<State> ReadState() const;
  // The state of an API call that failed.
  absl::Status Failed(int status, int js_error, absl::string_view what, absl::Time since) const;
  // Whole messages, their headers, or those of the last one of each subject.
  enum class Content : uint8_t { kWhole, kHeaders, kLastHeaders };
  // As Read.
  absl::StatusOr<std::unique_ptr<StreamReader>> Subscribe(const std::string& subject,
                                                          uint64_t after, Content content) const;
  // Calls `visit` for each message that there is, in order, until that returns false.
  absl::Status ForEachHeader(const std::string& subject, Content content,
                             const std::function<bool(const StreamMessage&)>& visit) const;
  // Those of a subject's messages below `end`.
  absl::StatusOr<std::vector<uint64_t>> SequencesOf(const std::string& subject, uint64_t end) const;
  absl::Status Delete(const std::string& subject, uint64_t end) const;

  const std::shared_ptr<Connection> connection_;
  const StreamOptions options_;
  Mutex append_mutex_;
  // What appends are sent on.
  std::shared_ptr<Link> link_ ABSL_GUARDED_BY(append_mutex_);
  // Where the answers to appends come: their subject is the inbox, the append's number and the
  // message's. Null: not subscribed, or the subscription failed.
  std::string inbox_ ABSL_GUARDED_BY(append_mutex_);
  __natsSubscription* answers_ ABSL_GUARDED_BY(append_mutex_) = nullptr;
  uint64_t appends_ ABSL_GUARDED_BY(append_mutex_) = 0;
};

}  // namespace perceptrond::jetstream
