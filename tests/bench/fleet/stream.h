// The streams of a simulated fleet, and their rows on the way. Times are in seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace perceptrond::bench::fleet {

struct Message {
  double arrived = 0;
  std::vector<float> rows;
};

struct Stream {
  // Whether the replica may evaluate rows.
  bool open = true;
  std::deque<Message> waiting;
  size_t unserved = 0;
  uint64_t floor = 0;
  // When the writer evaluated the last forwarded message.
  double served = 0;
  // The part of the latest messages that had updates: a moving average.
  double erring = 0;
  // Until when the replica evaluates earlier messages.
  double busy_until = 0;
};

struct Arrival {
  double time = 0;
  size_t stream = 0;
  bool operator>(const Arrival& other) const { return time > other.time; }
};

// Rows of one message on their way to the writer.
struct Segment {
  double served = 0;
  size_t stream = 0;
  // Number of rows, the first ones, that the replica found to call for an update.
  size_t called = 0;
  Message message;
};

// When a stream that waits may be evaluated by its replica again.
struct Opening {
  double time = 0;
  size_t stream = 0;
  // The revision that its replica has by then.
  uint64_t copy = 0;
  bool operator>(const Opening& other) const { return time > other.time; }
};

}  // namespace perceptrond::bench::fleet
