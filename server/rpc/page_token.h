// The tokens by which a list goes on: where the page before ended, opaque to the caller.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perceptrond {

// `list` says which list it is of, its method and what was asked of it: a token of another list is
// none of this one's. Good across restarts and on every server. It carries a checksum of both and
// no secret: what is protected is the caller from mistakes, not the list, which anybody may read.
std::string MakePageToken(absl::string_view list, absl::string_view place);

// The place, never empty; empty for an empty token. INVALID_ARGUMENT, INVALID_FIELD, naming
// page_token and what it was, for one that MakePageToken did not make of this list.
absl::StatusOr<std::string> ReadPageToken(absl::string_view list, const std::string& token);

}  // namespace perceptrond
