#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

struct BackupOptions {
  bool list = false;
  int32_t keep = 0;
};

// A backup reads and writes all tables that are new.
constexpr double kTimeoutSeconds = 3600;

void PrintBackup(const Globals& globals, const v1::Backup& backup) {
  if (globals.json()) return Print(ToJson(backup, false) + "\n");
  if (backup.damaged()) {
    return Print(absl::StrCat(backup.name(),
                              "  DAMAGED: it cannot be restored; perceptrond verify says more\n"));
  }
  const absl::Time time = absl::FromUnixSeconds(backup.create_time().seconds());
  Print(absl::StrFormat("%s  %s  %d bytes\n", backup.name(),
                        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()),
                        backup.size_bytes()));
}

int Run(const Globals& globals, const BackupOptions& options) {
  Globals patient = globals;
  patient.timeout_seconds = globals.timeout_seconds.value_or(kTimeoutSeconds);
  const Client client = patient.Connect();
  if (options.list) {
    const absl::StatusOr<std::vector<v1::Backup>> backups = client.ListBackups();
    if (!backups.ok()) return PrintError("backup --list", backups.status());
    for (const v1::Backup& backup : *backups) PrintBackup(globals, backup);
    return kExitOk;
  }
  const absl::StatusOr<v1::Backup> backup = client.CreateBackup(options.keep);
  if (!backup.ok()) return PrintError("backup", backup.status());
  PrintBackup(globals, *backup);
  return kExitOk;
}

}  // namespace

void AddBackup(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<BackupOptions>();
  CLI::App* command =
      app->add_subcommand("backup", "Back up all models in the server's --backup-dir");
  const CLI::Option* const list =
      command->add_flag("--list", options->list, "List the backups instead, oldest first");
  command
      ->add_option("--keep", options->keep,
                   "Delete all but this many of the newest backups afterwards (default: none)")
      ->check(CLI::Range(1, 1'000'000))
      ->excludes(command->get_option(list->get_name()));
  command->footer(
      R"(The server goes on serving meanwhile, and copies what changed since the backup before. Prints
the backup's name, time and size, or with -o json a perceptron.v1.Backup. 'perceptrond verify'
checks backups; 'perceptrond restore' brings one back. 'perceptrond migrate' moves all models to
a fleet, whose database PostgreSQL's own tools back up.

Examples:
  perceptronctl backup --keep 7
  perceptronctl backup --list)");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
