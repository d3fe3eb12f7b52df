#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/command.h"
#include "client/ctl/json.h"
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

int Run(const Globals& globals, const std::string& service) {
  const absl::StatusOr<Health> health = globals.Connect().CheckHealth(service);
  if (!health.ok()) return PrintError("health", health.status());
  Print((globals.json() ? JsonObject().Text("status", Name(*health)).str() : Name(*health)) + "\n");
  return *health == Health::kServing ? kExitOk : kExitFailed;
}

}  // namespace

void AddHealth(CLI::App* app, const Globals* globals, Action* action) {
  auto service = std::make_shared<std::string>();
  CLI::App* command = app->add_subcommand("health", "Ask whether the server is serving");
  command
      ->add_option("--service", *service,
                   "One service, as perceptron.v1.LearningService (default: the whole server)")
      ->check(Utf8());
  command->footer("Exits with 0 only if it is. Example:\n  perceptronctl health --server db1:7600");
  command->callback([=] { *action = [=] { return Run(*globals, *service); }; });
}

}  // namespace perceptrond::client
