// What every method of the server works with: the store, the workers, the limits, and the drain.
#pragma once

#include <cstddef>

#include "server/rpc/drain.h"
#include "server/rpc/workers.h"

namespace perceptrond {

class InFlightMemory;
class Model;
class Store;

// How much a stream may have unanswered before the server stops reading it, so that gRPC's flow
// control holds the sender back.
struct StreamLimits {
  size_t messages = 1024;
  // What unanswered messages keep in memory: their answers, and their share of the updates on their
  // way to the journal.
  size_t bytes = 16 << 20;
  // The largest message, which the stream's opening states.
  size_t message_bytes = 16 << 20;
};

// Everything referred to must outlive the calls.
struct Backend {
  static constexpr absl::Duration kTransferTime = absl::Minutes(1);

  Store& store;
  Drain& drain;
  Workers& workers;
  InFlightMemory& memory;
  // The largest request message, in bytes.
  size_t max_message_bytes = 0;
  StreamLimits stream_limits = {};
  // A model's file may take this long, and a second for each 64 KiB of it.
  absl::Duration transfer_time = kTransferTime;
};

// The largest message that a polling thread handles itself, in bytes: it takes about as long as
// waking a worker.
inline constexpr size_t kMaxInlineBytes = 8 << 10;

// Whether a polling thread may answer small requests to the model: it is in memory (not null), a row
// costs about its number of features (one weight vector, no feature map, no components), and nothing
// large holds the model. Any thread.
bool CanRunInline(const Model* model);

}  // namespace perceptrond
