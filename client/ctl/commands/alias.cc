#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "client/management.h"

namespace perceptrond::client {
namespace {

struct AliasOptions {
  std::string name;
  std::string model;
  std::string challenger;
  std::string error = "window";
  double margin = 0;
  int64_t min_examples = 100;
  std::string etag;
  bool remove = false;
  bool dry_run = false;
};

ManagementClient Connect(const Globals& globals) {
  return ManagementClient(globals.ConnectChannel(),
                          absl::Seconds(globals.timeout_seconds.value_or(30)));
}

void PrintAlias(const Globals& globals, const v1::Alias& alias) {
  if (globals.json()) return Print(ToJson(alias, false) + "\n");
  Print(
      absl::StrFormat("%-32s %s\n", PrintableInLine(alias.name()), PrintableInLine(alias.model())));
}

int List(const Globals& globals) {
  const absl::StatusOr<std::vector<v1::Alias>> all = Connect(globals).ListAliases();
  if (!all.ok()) return PrintError("alias", all.status());
  for (const v1::Alias& alias : *all) PrintAlias(globals, alias);
  if (all->empty() && !globals.json())
    PrintStderr("there are no aliases; 'perceptronctl alias NAME MODEL' creates one");
  return kExitOk;
}

std::string Describe(const v1::Contestant& contestant) {
  const std::string error =
      contestant.has_error() ? absl::StrFormat("%.4f", contestant.error()) : "unknown";
  return absl::StrCat(PrintableInLine(contestant.model()), "  error ", error, " over ",
                      Counted(contestant.examples(), "examples"), ", at revision ",
                      contestant.revision(), "\n");
}

std::string DescribeOutcome(const v1::ChallengeAliasResponse& response, bool dry_run) {
  const std::string alias = PrintableInLine(response.alias().name());
  switch (response.outcome()) {
    case v1::CHALLENGE_OUTCOME_CHALLENGER_WON:
      return absl::StrCat(alias, dry_run ? " would move to " : " names ",
                          PrintableInLine(response.challenger().model()), dry_run ? "" : " now",
                          "\n");
    case v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES:
      return absl::StrCat(alias, " stays: too few examples to compare\n");
    default:
      return absl::StrCat(alias, " stays: the challenger does not err less\n");
  }
}

int Challenge(const Globals& globals, const AliasOptions& options) {
  v1::ChallengeAliasRequest request;
  request.set_name(options.name);
  request.set_challenger(options.challenger);
  request.set_error(options.error == "window" ? v1::COMPARED_ERROR_WINDOW
                                              : v1::COMPARED_ERROR_PROGRESSIVE);
  request.set_margin(options.margin);
  request.set_min_examples(options.min_examples);
  request.set_etag(options.etag);
  request.set_validate_only(options.dry_run);
  const absl::StatusOr<v1::ChallengeAliasResponse> response =
      Connect(globals).ChallengeAlias(request);
  if (!response.ok()) return PrintError(absl::StrCat("alias ", options.name), response.status());
  if (globals.json()) {
    Print(ToJson(*response, false) + "\n");
  } else {
    Print(absl::StrCat("champion    ", Describe(response->champion()), "challenger  ",
                       Describe(response->challenger()),
                       DescribeOutcome(*response, options.dry_run)));
  }
  return kExitOk;
}

int Delete(const Globals& globals, const AliasOptions& options) {
  const absl::Status status = Connect(globals).DeleteAlias(options.name, options.etag);
  if (!status.ok()) return PrintError(absl::StrCat("alias ", options.name), status);
  const std::string name = AliasName(options.name);
  if (globals.json()) {
    Print(JsonObject().Text("deleted", name).str() + "\n");
  } else {
    PrintDone(absl::StrCat("deleted ", PrintableInLine(name), "\n"));
  }
  return kExitOk;
}

int Run(const Globals& globals, const AliasOptions& options) {
  const bool chooses = options.remove || !options.challenger.empty();
  if (chooses && (options.name.empty() || !options.model.empty()))
    return PrintUsageError("alias: --delete and --challenger take the alias's NAME alone");
  if (options.name.empty()) return List(globals);
  if (options.remove) return Delete(globals, options);
  if (!options.challenger.empty()) return Challenge(globals, options);
  const ManagementClient client = Connect(globals);
  const absl::StatusOr<v1::Alias> alias =
      options.model.empty() ? client.GetAlias(options.name)
                            : client.SetAlias(options.name, options.model, options.etag);
  if (!alias.ok()) return PrintError(absl::StrCat("alias ", options.name), alias.status());
  if (globals.json() || !IsQuiet() || options.model.empty()) PrintAlias(globals, *alias);
  return kExitOk;
}

}  // namespace

void AddAlias(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<AliasOptions>();
  CLI::App* command =
      app->add_subcommand("alias", "List, set, move and delete aliases, other names for models");
  command->add_option("NAME", options->name, "Name of the alias: prod or aliases/prod")
      ->check(Utf8());
  command->add_option("MODEL", options->model, "Have the alias name this model")->check(Utf8());
  CLI::Option* const remove = command->add_flag("--delete", options->remove, "Delete the alias");
  command
      ->add_option("--challenger", options->challenger,
                   "Have the alias name this model if it errs less than what it names now")
      ->check(Utf8())
      ->excludes(remove);
  command
      ->add_option("--error", options->error,
                   "What --challenger compares: window, the latest 1000 examples of each, or "
                   "progressive, all of them")
      ->check(CLI::IsMember({"window", "progressive"}))
      ->capture_default_str();
  command
      ->add_option("--margin", options->margin,
                   "How much lower the challenger's error must be, from 0 to below 1")
      ->check(Between(0.0, 0.999999))
      ->capture_default_str();
  command
      ->add_option("--min-examples", options->min_examples, "The least examples of each to compare")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 62))
      ->capture_default_str();
  command->add_option("--etag", options->etag, "Only if the alias still has this etag")
      ->check(Utf8());
  command->add_flag("--dry-run", options->dry_run, "With --challenger: compare, move nothing");
  command->footer(
      R"(Commands that read a model, predict or learn take aliases/NAME instead of its name. Streams of predictions
follow an alias at their next message; streams that learn stay on their model.

Examples:
  perceptronctl alias prod spam-3
  perceptronctl predict aliases/prod mail.svm
  perceptronctl alias prod --challenger spam-4 --margin 0.01
  perceptronctl alias prod --delete)");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
