// Reads requests for the methods of unary calls, and notes what the log of slow calls states about
// them.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/rpc/call.h"
#include "server/rpc/call_timing.h"
#include "server/rpc/message.h"

namespace perceptrond {

// The number of examples in columns, as their arrays state it: they may be invalid. O(1).
template <typename Columns>
size_t CountRows(const Columns& columns) {
  if (columns.prediction_ids_size() > 0) return static_cast<size_t>(columns.prediction_ids_size());
  if (columns.texts_size() > 0) return static_cast<size_t>(columns.texts_size());
  if (columns.dense_width() == 0) return static_cast<size_t>(columns.row_ends_size());
  const size_t halves = columns.half_values().size() / 2;
  return std::max<size_t>(columns.values_size(), halves) / columns.dense_width();
}

// The number of examples in a request; 0 for one that takes none. O(1).
template <typename Request>
size_t CountRequestRows(const Request& request) {
  if constexpr (requires { request.message.columns(); }) {
    return request.examples.size() + CountRows(request.message.columns());
  } else if constexpr (requires { request.inputs(0).shape(0); }) {
    const bool has_rows = request.inputs_size() > 0 && request.inputs(0).shape_size() > 0;
    return has_rows ? static_cast<size_t>(std::max<int64_t>(request.inputs(0).shape(0), 0)) : 0;
  } else {
    return 0;
  }
}

// The name of the model that a request is about, as the client wrote it; empty without one.
template <typename Request>
absl::string_view ModelNameOf(const Request& request) {
  if constexpr (requires { absl::string_view(request.model()); }) {
    return request.model();
  } else if constexpr (requires { absl::string_view(request.name()); }) {
    return request.name();
  } else if constexpr (requires { absl::string_view(request.model_name()); }) {
    return request.model_name();
  } else if constexpr (requires { absl::string_view(request.model_id()); }) {
    return request.model_id();
  } else if constexpr (requires { absl::string_view(request.model().name()); }) {
    return request.model().name();
  } else {
    return "";
  }
}

// As ParseMessage. The time until then counts as queueing, from then on as work.
template <typename Request>
absl::Status ParseRequest(Call& call, grpc::ByteBuffer& bytes, size_t max_bytes, Request& request) {
  CallTiming& timing = call.timing();
  timing.Switch(Part::kParse);
  timing.bytes = bytes.Length();
  absl::Status status = ParseMessage(bytes, max_bytes, request);
  if (!timing.started()) return status;
  timing.Switch(Part::kWork);
  // Some methods have the id alone.
  const absl::string_view model = ModelNameOf(request).substr(0, CallTiming::kMaxNameBytes);
  const bool is_id = !model.empty() && !absl::StartsWith(model, kModelCollection);
  timing.model = absl::StrCat(is_id ? kModelCollection : "", model);
  timing.rows = CountRequestRows(request);
  return status;
}

}  // namespace perceptrond
