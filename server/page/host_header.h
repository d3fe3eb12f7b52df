// Whom a browser believes that it is asking.
#pragma once

#include "absl/strings/string_view.h"

namespace perceptrond {

// Whether a Host header names an address or "localhost", or nothing: no name that its owner could
// have lead to this machine behind the reader's back (DNS rebinding: to the browser his page and
// ours would then be of one origin).
bool IsAddressOrLocalhost(absl::string_view host);

}  // namespace perceptrond
