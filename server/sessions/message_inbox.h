// Messages of a stream that were read and are not being handled yet.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>

namespace perceptrond {

// Not thread-safe.
class MessageInbox {
 public:
  // How much is received while a message is handled; more waits with gRPC.
  static constexpr size_t kMaxMessages = 64;
  static constexpr size_t kMaxBytes = 4 << 20;

  bool empty() const { return messages_.empty(); }
  size_t size() const { return messages_.size(); }
  // Of all messages.
  size_t bytes() const { return bytes_; }
  // Of the first message; there must be one.
  size_t first_bytes() const { return messages_.front().Length(); }

  // Takes a message out of `message`.
  void Add(grpc::ByteBuffer& message) {
    bytes_ += message.Length();
    messages_.emplace_back().Swap(&message);
  }
  // Moves the first message, which must exist, to `message`.
  void TakeFirst(grpc::ByteBuffer& message) {
    message.Swap(&messages_.front());
    messages_.pop_front();
    bytes_ -= message.Length();
  }
  void Clear() {
    messages_.clear();
    bytes_ = 0;
  }

  // Once full, it counts as full until it is half empty: each read that is started wakes a polling
  // thread.
  bool CheckFull() {
    const size_t share = was_full_ ? 2 : 1;
    was_full_ = messages_.size() >= kMaxMessages / share || bytes_ >= kMaxBytes / share;
    return was_full_;
  }

 private:
  std::deque<grpc::ByteBuffer> messages_;
  size_t bytes_ = 0;
  bool was_full_ = false;
};

}  // namespace perceptrond
