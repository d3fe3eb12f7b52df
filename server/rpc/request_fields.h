// Fields that requests of several methods have: names of models, page sizes and page tokens.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perceptrond {

// A model's resource name is "models/{model}".
inline constexpr absl::string_view kModelCollection = "models/";

// INVALID_ARGUMENT (INVALID_FIELD), naming `field`, unless `name` is "models/" and a model's id.
absl::Status CheckModelName(absl::string_view name, absl::string_view field);

// The number of entries for one page: `standard` if the request's page_size is 0, and at most
// `maximum`. INVALID_ARGUMENT (INVALID_FIELD) for a negative one.
absl::StatusOr<size_t> ReadPageSize(int32_t page_size, size_t standard, size_t maximum);

// A page token holds the position where a list goes on, opaque to the caller. `list` identifies the
// list, by its method and what the request selected: a token of one list is invalid for another.
// Tokens stay valid across restarts and on every server. They carry a checksum and no secret: the
// checksum protects callers from mistakes, not the list, which anybody may read.
std::string MakePageToken(absl::string_view list, absl::string_view position);

// The position in a token, never empty; empty for an empty token. INVALID_ARGUMENT (INVALID_FIELD),
// naming page_token, if MakePageToken did not make the token for this list.
absl::StatusOr<std::string> ReadPageToken(absl::string_view list, const std::string& token);

}  // namespace perceptrond
