#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

const char* Name(Health health) {
  switch (health) {
    case Health::kServing:
      return "SERVING";
    case Health::kNotServing:
      return "NOT_SERVING";
    case Health::kServiceUnknown:
      return "SERVICE_UNKNOWN";
    case Health::kUnknown:
      break;
  }
  return "UNKNOWN";
}

// The address of a server started with the same environment, as in its container: the first of
// PERCEPTROND_ADDRESS, with a wildcard address replaced by the loopback one. Absent if not set.
std::optional<std::string> AddressOfServerHere() {
  const char* const variable = std::getenv("PERCEPTROND_ADDRESS");
  if (variable == nullptr || *variable == '\0') return std::nullopt;
  const std::vector<absl::string_view> all = absl::StrSplit(variable, ',');
  absl::string_view address = absl::StripAsciiWhitespace(all.front());
  if (absl::ConsumePrefix(&address, "0.0.0.0:") || absl::ConsumePrefix(&address, "*:"))
    return absl::StrCat("127.0.0.1:", address);
  if (absl::ConsumePrefix(&address, "[::]:")) return absl::StrCat("[::1]:", address);
  return std::string(address);
}

int Run(const Globals& globals, const std::string& service) {
  const absl::StatusOr<Health> health = globals.Connect().CheckHealth(service);
  if (!health.ok()) return PrintError("health", health.status());
  Print((globals.json() ? JsonObject().Text("status", Name(*health)).str() : Name(*health)) + "\n");
  return *health == Health::kServing ? kExitOk : kExitFailed;
}

}  // namespace

void AddHealth(CLI::App* app, const Globals* globals, Action* action) {
  auto service = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand("health", "Check whether the server is serving");
  command
      ->add_option(
          "--service", *service,
          "Check one service, such as perceptron.v1.LearningService (default: the whole server)")
      ->check(Utf8());
  command->footer(
      R"(Prints SERVING with exit code 0, or another state with exit code 1. Without --server and
PERCEPTROND_SERVER it checks the first address of PERCEPTROND_ADDRESS, the server's own setting,
if set.

Example:
  perceptronctl health --server db1:7600)");
  const CLI::Option* const server = app->get_option("--server");
  command->callback([=] {
    *action = [=] {
      Globals target = *globals;
      if (server->count() == 0) target.server = AddressOfServerHere().value_or(target.server);
      return Run(target, *service);
    };
  });
}

}  // namespace perceptrond::client
