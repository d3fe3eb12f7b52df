// The messages of a stream that were received and are not handled yet. While a worker handles one,
// the thread that receives parses another: so one stream keeps two processors busy.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/rpc/message.h"

namespace perceptrond {

// In order of arrival. Not thread-safe: the stream's mutex guards all but Parse.
template <typename Request>
class Inbox {
 public:
  struct Message {
    grpc::ByteBuffer bytes;
    size_t length = 0;
    // Whether the bytes became a request, or could not.
    bool parsed = false;
    std::unique_ptr<Request> request;
    absl::Status status;
  };
  // A message that is parsed ahead.
  struct Ahead {
    uint64_t number = 0;
    Message message;
  };

  size_t size() const { return messages_.size(); }
  bool empty() const { return messages_.empty(); }
  // Of all of them on the wire.
  size_t bytes() const { return bytes_; }
  // Of the first one.
  size_t next_length() const { return messages_.front().length; }
  // Once full, it counts as full until it is half empty: each read that is started wakes a polling
  // thread.
  bool Full() {
    const size_t share = was_full_ ? 2 : 1;
    was_full_ = size() >= kMaxMessages / share || bytes_ >= kMaxBytes / share;
    return was_full_;
  }

  // Takes the contents of `bytes`.
  void Add(grpc::ByteBuffer& bytes) {
    Message& message = messages_.emplace_back();
    message.length = bytes.Length();
    message.bytes.Swap(&bytes);
    bytes_ += message.length;
  }
  // Whether there is a message to be handled now, and not one that is being parsed.
  bool HasNext() const { return !messages_.empty() && parsing_ != first_; }
  // Removes it, and gives it a request to be filled if it is not parsed.
  Message Next() {
    Message next = std::move(messages_.front());
    messages_.pop_front();
    ++first_;
    bytes_ -= next.length;
    if (!next.parsed) next.request = NewRequest();
    return next;
  }
  // Keeps a request that was handled, for its memory.
  void Keep(std::unique_ptr<Request> request) {
    if (spare_.size() < kMostAhead) spare_.push_back(std::move(request));
  }

  // Chooses a small message to be parsed ahead, if one waits and none is being parsed: never the
  // next, which a worker may need sooner than it is done.
  std::optional<Ahead> BeginParsing() {
    if (parsing_ != kNone) return std::nullopt;
    for (size_t i = 1; i < std::min(messages_.size(), 1 + kMostAhead); ++i) {
      Message& message = messages_[i];
      if (message.parsed || message.length > kMaxParsedBytes) continue;
      parsing_ = first_ + i;
      Ahead ahead{parsing_, std::move(message)};
      message.length = ahead.message.length;
      ahead.message.request = NewRequest();
      return ahead;
    }
    return std::nullopt;
  }
  // Puts it back, unless the inbox was cleared.
  void EndParsing(Ahead ahead) {
    parsing_ = kNone;
    if (ahead.number >= first_) messages_[ahead.number - first_] = std::move(ahead.message);
  }
  // Fills the request, if that is not done.
  static void Parse(size_t max_bytes, Message& message) {
    if (std::exchange(message.parsed, true)) return;
    message.status = ParseMessage(message.bytes, max_bytes, *message.request);
  }

  void Clear() {
    first_ += messages_.size();
    messages_.clear();
    bytes_ = 0;
  }

 private:
  // How much is received while a message is handled; more waits with gRPC.
  static constexpr size_t kMaxMessages = 64;
  static constexpr size_t kMaxBytes = 4 << 20;
  // How many after the next are parsed.
  static constexpr size_t kMostAhead = 3;
  // Takes some 20 us, during which the polling thread answers nobody.
  static constexpr size_t kMaxParsedBytes = 128 << 10;
  static constexpr uint64_t kNone = UINT64_MAX;

  std::unique_ptr<Request> NewRequest() {
    if (spare_.empty()) return std::make_unique<Request>();
    std::unique_ptr<Request> request = std::move(spare_.back());
    spare_.pop_back();
    return request;
  }

  std::deque<Message> messages_;
  // The number of the first: messages are numbered as they arrive.
  uint64_t first_ = 0;
  // Of the message that is being parsed.
  uint64_t parsing_ = kNone;
  size_t bytes_ = 0;
  bool was_full_ = false;
  std::vector<std::unique_ptr<Request>> spare_;
};

}  // namespace perceptrond
