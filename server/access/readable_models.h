// Lists of the models that a caller may read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/store/store.h"

namespace perceptrond {

// As Store::Search, of the models whose full names begin with one of the prefixes, which are in
// order and none of which begins with another. Neither the result nor where it ends depends on other
// models. At most `most_read` models are read for each prefix.
absl::StatusOr<Store::Found> SearchReadable(
    Store& store, const std::vector<std::string>& prefixes, const std::string& after, size_t limit,
    size_t most_read, const std::function<bool(const ::perceptron::v1::Model&)>& wanted);

}  // namespace perceptrond
