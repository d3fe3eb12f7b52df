// What every method of the server works with.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace perceptrond {

class Drain;
class Model;
class Store;
class Workers;

// How much a stream may have unanswered before the server stops reading it, so that gRPC's flow
// control holds the sender back.
struct StreamLimits {
  size_t messages = 1024;
  // What unanswered messages keep in memory: their answers, and their share of the updates on their
  // way to the journal.
  size_t bytes = 16 << 20;
};

// Everything referred to must outlive the calls.
struct Backend {
  Store& store;
  Drain& drain;
  Workers& workers;
  // The largest request message, in bytes.
  size_t max_message_bytes = 0;
  StreamLimits stream_limits = {};
};

// The largest message that a polling thread handles itself, in bytes: it takes about as long as
// waking a worker.
inline constexpr size_t kMaxInlineBytes = 8 << 10;

// Whether a polling thread may answer small requests to the model of this full name: the model is
// in memory, and a row costs about its number of features (one weight vector, no feature map, no
// components). Any thread.
bool CanRunInline(Store& store, absl::string_view model);
// The same for a model that was looked up; false for null.
bool CanRunInline(const Model* model);

// The same for a request with a field `model`.
template <typename Request>
bool RequestCanRunInline(Store& store, const Request& request) {
  return CanRunInline(store, request.model());
}

}  // namespace perceptrond
