// What is answered in microseconds, and so without a worker.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace perceptrond {

class Model;
class Store;

// A message that is no larger is answered in about the time that it takes to wake another thread.
inline constexpr size_t kSmallMessage = 8 << 10;

// Whether the model of that full name is in memory, and costs a row no more than about its
// features: one vector of weights, examples that are not mapped, no components.
bool IsQuick(Store& store, absl::string_view model);
// The same of a model in memory; null: false.
bool IsQuick(const Model* model);

// Of requests with a field `model`.
template <typename Request>
bool HasQuickModel(Store& store, const Request& request) {
  return IsQuick(store, request.model());
}

}  // namespace perceptrond
