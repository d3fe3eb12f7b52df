// Window: the messages of one learning stream that were not answered yet, and what a broken
// connection means for them. Pure bookkeeping; LearnStream drives it.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond::client {

// A message on its way.
struct Outgoing {
  perceptron::v1::LearnStreamRequest request;
  // The number of its first row.
  int64_t first_offset = 0;
  // What the caller calls its rows.
  std::vector<uint64_t> tags;
  size_t bytes = 0;
  // Rows are known to be accounted for though their answer was lost; only the mark at their end is
  // still to be answered.
  bool rows_settled = false;
};

class Window {
 public:
  size_t size() const { return messages_.size(); }
  bool empty() const { return messages_.empty(); }
  size_t bytes() const { return bytes_; }

  void Add(std::shared_ptr<Outgoing> message);

  // The next message that was not sent on this connection, which is sent thereby; null if there is
  // none.
  std::shared_ptr<Outgoing> NextToSend();
  // True iff any was sent on this connection and not answered.
  bool InFlight() const { return sent_ > 0; }

  // The oldest message if it was sent as `number` of this connection; null if that is not what is
  // to be answered next. Numbers start at 1: 0 is the message that opens the connection.
  std::shared_ptr<Outgoing> Oldest(int64_t number) const;
  // It was answered.
  void RemoveOldest();

  // A new connection on which nothing was sent yet.
  void Restart();
  // The server has accounted for all rows below next_offset. Takes out and returns
  // the messages that need not be sent again; of one whose mark must still be answered the rows are
  // removed. Call after Restart(). Messages accounted for in part stay whole: the server skips what
  // it knows.
  std::vector<std::shared_ptr<Outgoing>> Settle(int64_t next_offset);

 private:
  std::deque<std::shared_ptr<Outgoing>> messages_;
  size_t sent_ = 0;
  size_t bytes_ = 0;
  int64_t front_number_ = 1;
};

}  // namespace perceptrond::client
