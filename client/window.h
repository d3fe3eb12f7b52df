// Window: the unanswered messages of a learn stream, and which of them to send again on a new
// connection. LearnStreamCore uses it.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "client/batch_builder.h"
#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond::client {

// A message of a learn stream. A plain value.
struct Outgoing {
  // Its indices of named rows are numbers of `names` until MessageEncoder sends it.
  perceptron::v1::LearnStreamRequest request;
  NameNumbers names;
  // Offset of its first row.
  int64_t first_offset = 0;
  // The caller's tags of its rows.
  std::vector<uint64_t> tags;
  size_t bytes = 0;
  // The rows were learned but their answer was lost; only the end of the pass is unanswered.
  bool rows_settled = false;
};

class Window {
 public:
  size_t size() const { return messages_.size(); }
  bool empty() const { return messages_.empty(); }
  size_t bytes() const { return bytes_; }

  void Add(std::shared_ptr<Outgoing> message);

  // Returns the next message not sent on this connection and counts it as sent; null if there is
  // none.
  std::shared_ptr<Outgoing> NextToSend();
  // Whether any message was sent on this connection and not answered.
  bool InFlight() const { return sent_ > 0; }

  // The oldest message if its number on this connection is `number`, else null. Numbers start at 1;
  // 0 is the message that opens the connection.
  std::shared_ptr<Outgoing> Oldest(int64_t number) const;
  // Removes the oldest message after its answer.
  void RemoveOldest();

  // Starts a new connection, on which nothing was sent.
  void Restart();
  // Call after Restart() with the producer's next offset: the server has learned all rows below it.
  // Removes and returns the messages that need not be sent again. A message whose end of pass is
  // unanswered stays, without its rows; a partly learned message stays whole, because the server
  // skips duplicates.
  std::vector<std::shared_ptr<Outgoing>> Settle(int64_t next_offset);

 private:
  std::deque<std::shared_ptr<Outgoing>> messages_;
  size_t sent_ = 0;
  size_t bytes_ = 0;
  int64_t front_number_ = 1;
};

}  // namespace perceptrond::client
