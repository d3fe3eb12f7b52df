// Which models answer a small message in microseconds, and so without a worker.
#pragma once

#include "absl/strings/string_view.h"

namespace perceptrond {

class Store;

// Whether the model of that full name is in memory, and costs a row no more than about its
// features: one vector of weights, examples that are not mapped, no components.
bool IsQuick(Store& store, absl::string_view model);

// Of requests with a field `model`.
template <typename Request>
bool HasQuickModel(Store& store, const Request& request) {
  return IsQuick(store, request.model());
}

}  // namespace perceptrond
