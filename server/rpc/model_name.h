// Resource names: "models/{model}".
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perceptrond {

inline constexpr absl::string_view kModelCollection = "models/";

// INVALID_ARGUMENT, reason INVALID_FIELD, naming `field`, if `name` is not "models/" and a model's
// id.
absl::Status CheckModelName(absl::string_view name, absl::string_view field);

}  // namespace perceptrond
