// Where the server listens: HOST:PORT, [IPV6]:PORT or unix:PATH. Addresses are checked, since for an
// invalid one gRPC reports only that it cannot listen.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace perceptrond {

// The host of HOST:PORT, without the brackets of an IPv6 address; absent unless the address has
// that form, with a port from 0 to 65535.
std::optional<std::string> HostOf(absl::string_view address);

// Whether gRPC can listen on an address of this form.
bool IsAddress(absl::string_view address);

// Whether only this machine can reach the address: a Unix socket, localhost, 127.0.0.0/8 or ::1.
bool IsLoopback(absl::string_view address);

// Whether it stands for all of this machine's addresses, 0.0.0.0 or ::, at which no other can reach it.
bool IsWildcard(absl::string_view address);

// Whether a process listens on the Unix socket of this path. A second server could otherwise take
// over the path without an error. False for a file that a stopped server left.
bool IsListenedOn(const std::string& path);

}  // namespace perceptrond
