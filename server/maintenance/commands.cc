#include "server/maintenance/commands.h"

#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/journal/rocksdb/backups.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "server/config/command_line.h"
#include "server/maintenance/journals.h"
#include "server/maintenance/verify.h"

namespace perceptrond {
namespace {

using ::perceptron::storage::v1::Migration;
using ::perceptron::storage::v1::ModelVerification;
using ::perceptron::storage::v1::Verification;

constexpr int kOk = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

struct Arguments {
  std::string from;
  std::string to;
  uint32_t keep = 0;
  // 0: the newest, or for verify all.
  uint32_t backup = 0;
  bool json = false;
  // How fleets are opened.
  Options options;
};

void Print(const std::string& line) { std::fputs(absl::StrCat(line, "\n").c_str(), stdout); }

int Fail(const std::string& command, const absl::Status& status) {
  std::fputs(absl::StrCat("perceptrond ", command, ": ", status.message(), "\n").c_str(), stderr);
  return kFailed;
}

int FailOnFleet(const std::string& command, const std::string& instead) {
  (void)Fail(command, absl::InvalidArgumentError(
                          absl::StrCat("is of data directories, and not of a fleet: ", instead)));
  return kUsage;
}

std::string Describe(const Backup& backup) {
  return absl::StrFormat("backups/%d  %s  %d bytes", backup.number,
                         absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", backup.time, absl::UTCTimeZone()),
                         backup.bytes);
}

int RunBackup(const Arguments& arguments) {
  if (IsFleet(arguments.from)) return FailOnFleet("backup", "pg_dump --schema copies it");
  RocksDbJournal::Options options;
  options.directory = arguments.from;
  // Only a server makes a directory.
  absl::StatusOr<DirectoryContent> content = ReadDirectory(arguments.from);
  if (content.ok() && !content->has_database)
    content = absl::NotFoundError(absl::StrCat(arguments.from, " has no journal"));
  if (!content.ok()) return Fail("backup", content.status());
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(options);
  if (!journal.ok()) return Fail("backup", journal.status());
  const absl::StatusOr<Backup> backup = (*journal)->BackUp(Backups(arguments.to), arguments.keep);
  if (!backup.ok()) return Fail("backup", backup.status());
  Print(Describe(*backup));
  return kOk;
}

// The backups that were asked for; all if none was named. NOT_FOUND.
absl::StatusOr<std::vector<Backup>> Chosen(const Arguments& arguments) {
  absl::StatusOr<std::vector<Backup>> backups = Backups(arguments.from).List();
  if (!backups.ok()) return backups;
  if (arguments.backup != 0)
    std::erase_if(*backups, [&](const Backup& one) { return one.number != arguments.backup; });
  if (!backups->empty()) return backups;
  const std::string which =
      arguments.backup == 0 ? "no backup" : absl::StrCat("no backup ", arguments.backup);
  return absl::NotFoundError(absl::StrCat(arguments.from, " has ", which));
}

int RunRestore(const Arguments& arguments) {
  if (IsFleet(arguments.to))
    return FailOnFleet("restore", "restore into a directory, and migrate that");
  const absl::StatusOr<std::vector<Backup>> backups = Chosen(arguments);
  if (!backups.ok()) return Fail("restore", backups.status());
  const Backup& backup = backups->back();
  if (backup.damaged) {
    return Fail("restore", absl::DataLossError(absl::StrCat(
                               "backups/", backup.number, " in ", arguments.from,
                               " is damaged: name another one with --backup; perceptrond verify ",
                               arguments.from, " says which are whole")));
  }
  const absl::Status restored = Backups(arguments.from).Restore(backup.number, arguments.to);
  if (!restored.ok()) return Fail("restore", restored);
  Print(Describe(backup));
  return kOk;
}

void PrintJson(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  (void)google::protobuf::util::MessageToJsonString(message, &text, options);
  Print(text);
}

// Makes the copy of a journal that no server uses: of a fleet in an empty directory, or of a directory in a fleet without
// models. It keeps its id, and producers go on. INVALID_ARGUMENT if both are of one kind; other errors are JournalCopy's and
// those of opening the journals. Interrupted, it goes on where it was when it is called again.
absl::StatusOr<Migration> Migrate(const std::string& from, const std::string& to,
                                  const Options& options) {
  if (IsFleet(from) == IsFleet(to)) {
    return absl::InvalidArgumentError(
        "one of the two must be a fleet, as postgres://..., and one a data directory");
  }
  const absl::StatusOr<std::unique_ptr<Journal>> source = OpenToRead(from, options);
  if (!source.ok()) return source.status();
  if (absl::Status status = (*source)->ExcludeOthers(); !status.ok()) return status;
  const absl::StatusOr<MadeCopy> copy =
      MakeCopy(**source, to, options, ImportOptions{(*source)->Id()});
  if (!copy.ok()) return copy.status();
  // A server that came meanwhile may have learned.
  if (absl::Status status = (*source)->ExcludeOthers(); !status.ok()) return status;
  if (absl::Status status = copy->journal->FinishImport(); !status.ok()) return status;
  Migration migration;
  migration.set_from(from);
  migration.set_to(to);
  migration.set_models(static_cast<int64_t>(copy->statistics.models));
  migration.set_copied_before(static_cast<int64_t>(copy->statistics.copied_before));
  migration.set_bytes(static_cast<int64_t>(copy->statistics.bytes));
  return migration;
}

int RunMigrate(const Arguments& arguments) {
  const absl::StatusOr<Migration> done = Migrate(arguments.from, arguments.to, arguments.options);
  if (!done.ok()) {
    (void)Fail("migrate", done.status());
    return absl::IsInvalidArgument(done.status()) ? kUsage : kFailed;
  }
  if (arguments.json) {
    PrintJson(*done);
  } else {
    Print(absl::StrCat(done->from(), " to ", done->to(), ": ", done->models(),
                       " models copied and compared, ", done->bytes(), " bytes"));
  }
  return kOk;
}

void PrintVerification(const Verification& found, bool json) {
  if (json) {
    std::string text;
    (void)google::protobuf::util::MessageToJsonString(found, &text);
    return Print(text);
  }
  int damaged = 0;
  for (const ModelVerification& model : found.models()) {
    damaged += model.error().empty() ? 0 : 1;
    Print(model.error().empty() ? absl::StrCat(model.name(), "  revision ", model.revision(),
                                               "  examples ", model.examples())
                                : absl::StrCat(model.name(), "  DAMAGED: ", model.error()));
  }
  std::string end = found.directory();
  if (found.backup() != 0) absl::StrAppend(&end, ", backups/", found.backup());
  absl::StrAppend(&end, ": ", found.sound() ? "sound" : "DAMAGED", ", ", found.models_size(),
                  " models");
  if (damaged > 0) absl::StrAppend(&end, ", of which ", damaged, " cannot be restored");
  if (found.lost_writes() > 0 && found.error().empty())
    absl::StrAppend(&end, "; the log ends early and lacks ", found.lost_writes(), " writes");
  if (!found.error().empty()) absl::StrAppend(&end, "; ", found.error());
  Print(end);
}

int RunVerify(const Arguments& arguments) {
  std::vector<Verification> found;
  if (IsFleet(arguments.from) || !Backups::IsBackupDirectory(arguments.from)) {
    absl::StatusOr<Verification> one = IsFleet(arguments.from)
                                           ? VerifyFleet(arguments.from, arguments.options)
                                           : VerifyDirectory(arguments.from);
    if (!one.ok()) return Fail("verify", one.status());
    found.push_back(*std::move(one));
  } else {
    const absl::StatusOr<std::vector<Backup>> backups = Chosen(arguments);
    if (!backups.ok()) return Fail("verify", backups.status());
    for (const Backup& backup : *backups) found.push_back(VerifyBackup(arguments.from, backup));
  }
  bool sound = true;
  for (const Verification& one : found) {
    PrintVerification(one, arguments.json);
    sound &= one.sound();
  }
  return sound ? kOk : kFailed;
}

struct Argument {
  const char* name;
  const char* description;
};
struct Command {
  const char* name;
  const char* description;
  const char* footer;
  Argument from;
  // Without a name: there is none.
  Argument to;
  int (*run)(const Arguments& arguments);
};

constexpr Command kCommands[] = {
    {"backup",
     "Back up the journal of a stopped server",
     "Copies what the backup before does not have. For a running server: perceptronctl backup. "
     "For a\nfleet: pg_dump, or PostgreSQL's archive of its log.\n\n"
     "Example:\n  perceptrond backup /var/lib/perceptrond /backup --keep 7",
     {"FROM", "Data directory"},
     {"BACKUPS", "Directory of backups; created if missing"},
     RunBackup},
    {"restore",
     "Restore a backup into an empty directory",
     "Checks the files' checksums. The copy keeps the journal's id. Producers that were "
     "acknowledged\nmore than it has receive an error.\n\n"
     "Example:\n  perceptrond restore /backup /var/lib/perceptrond",
     {"BACKUPS", "Directory of backups"},
     {"TO", "Data directory: absent or empty"},
     RunRestore},
    {"verify",
     "Check every model of a data directory, of a fleet, or of all backups in a directory",
     "Restores each model as a server does and compares it to the bit with what its records say;\n"
     "reads all tables; changes nothing. A fleet may serve meanwhile. Exit code 1: something is\n"
     "damaged or missing.\n\n"
     "Example:\n  perceptrond verify /var/lib/perceptrond",
     {"FROM", "Data directory, directory of backups, or a fleet's database: postgres://..."},
     {nullptr, nullptr},
     RunVerify},
    {"migrate",
     "Copy all models from a data directory to a fleet, or back",
     "No server may use either. Copies each model at its revision: settings, state, stored "
     "examples,\nlearning curve, counters, producers' positions; not the records before it. Then "
     "reads the copy\nand compares it to the bit. Until that is done no server opens the copy; "
     "interrupted, run it again.\nProducers go on exactly once. FROM stays as it is: start no "
     "server on it any more.\n\n"
     "Examples:\n  perceptrond migrate /var/lib/perceptrond "
     "postgres://perceptrond@db1,db2/perceptrond\n"
     "  perceptrond migrate postgres://perceptrond@db1,db2/perceptrond /var/lib/perceptrond",
     {"FROM", "Data directory, or a fleet's database: postgres://..."},
     {"TO", "The other: a directory that is absent or empty, or a fleet without models"},
     RunMigrate},
};

// How a fleet's journal is opened.
constexpr absl::string_view kFleetFlags[] = {"fleet", "fleet-partitions", "fleet-timeout",
                                             "durability"};

void AddArguments(const Command& command, CLI::App& app, Arguments& arguments) {
  const std::string name = command.name;
  app.footer(command.footer);
  app.add_option(command.from.name, arguments.from, command.from.description)->required();
  if (command.to.name != nullptr)
    app.add_option(command.to.name, arguments.to, command.to.description)->required();
  if (name == "backup") {
    app.add_option("--keep", arguments.keep,
                   "Delete all but this many of the newest backups afterwards (default: none)")
        ->check(CLI::Range(1, 1'000'000));
  } else if (name != "migrate") {
    app.add_option("--backup", arguments.backup,
                   absl::StrCat("Number of the backup (default: ",
                                name == "verify" ? "all" : "the newest", ")"))
        ->check(CLI::Range(1, 2'000'000'000));
  }
  if (name == "verify" || name == "migrate") {
    app.add_option_function<std::string>(
           "-o,--output",
           [&arguments](const std::string& form) { arguments.json = form == "json"; },
           name == "verify"
               ? "text, or json: a perceptron.storage.v1.Verification per line (default: text)"
               : "text, or json: a perceptron.storage.v1.Migration (default: text)")
        ->check(CLI::IsMember({"text", "json"}));
  }
  if (name != "verify" && name != "migrate") return;
  for (const Flag& flag : MakeFlags(&arguments.options)) {
    if (absl::c_linear_search(kFleetFlags, flag.name)) AddFlag(flag, &app);
  }
}

}  // namespace

bool IsMaintenance(const std::vector<std::string>& args) {
  return !args.empty() && std::any_of(std::begin(kCommands), std::end(kCommands),
                                      [&](const Command& one) { return args[0] == one.name; });
}

int RunMaintenance(const std::vector<std::string>& args) {
  const Command& command = *std::find_if(std::begin(kCommands), std::end(kCommands),
                                         [&](const Command& one) { return args[0] == one.name; });
  Arguments arguments;
  CLI::App app(command.description, absl::StrCat("perceptrond ", command.name));
  AddArguments(command, app, arguments);
  // CLI11 reads its arguments from the back.
  std::vector<std::string> reversed(args.rbegin(), args.rend() - 1);
  // Models are their owner's.
  umask(0077);
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  } catch (const CLI::Error& error) {
    std::fputs(absl::StrCat("perceptrond ", command.name, ": ", error.what(), "\nTry perceptrond ",
                            command.name, " --help.\n")
                   .c_str(),
               stderr);
    return kUsage;
  }
  return command.run(arguments);
}

}  // namespace perceptrond
