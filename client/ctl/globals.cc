#include <CLI/CLI.hpp>
#include <algorithm>

#include "client/ctl/command.h"
#include "core/vector/name.h"

namespace perceptrond::client {

Client Globals::Connect() const {
  ClientOptions options;
  options.timeout = absl::Seconds(timeout_seconds.value_or(30));
  // Somebody is waiting at the prompt: a server that restarts is worth a moment, a wrong address is
  // not.
  options.retry.give_up_after = std::min(options.timeout, absl::Seconds(3));
  options.tls = tls;
  // gRPC would take a name alone for port 443, or 0.
  const bool bare = server.find(':') == std::string::npos;
  return Client::Connect(bare ? server + ":7600" : server, options);
}

CLI::Validator Utf8() {
  const auto check = [](const std::string& text) {
    return IsValidUtf8(text) ? "" : std::string("no valid UTF-8: ") + text;
  };
  return CLI::Validator(check, "");
}

RetryPolicy Globals::StreamRetry() const {
  RetryPolicy retry;
  retry.give_up_after = StreamTimeout();
  // Giving up is a matter of the time stated, not of a wait that would end just after it.
  retry.max_backoff = absl::Seconds(1);
  return retry;
}

}  // namespace perceptrond::client
