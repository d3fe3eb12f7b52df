// `perceptronctl copy`, `rename`, `export`, `import`, `snapshot` and `rollback`.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/ctl/command.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "client/ctl/terminal.h"
#include "client/format/reader.h"
#include "client/management.h"

namespace perceptrond::client {
namespace {

// A file that appears under its name only when it is whole. Written under another name beside its own, PATH.part-*, which goes with this object if the file was
// not closed before. Each method returns false if it failed, with the reason in errno.
//
//   NewFile file("spam.model");
//   const bool written = file.Open() && file.Write(bytes) && file.Close();
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), partial_(path + ".part-XXXXXX") {}
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  bool Open();
  bool Write(std::string_view bytes);
  // Has the file on the disk, then gives it its name, in the place of a file that has it.
  bool Close();

 private:
  const std::string path_;
  std::string partial_;
  int descriptor_ = -1;
  bool exists_ = false;
};

NewFile::~NewFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (exists_) unlink(partial_.c_str());
}

bool NewFile::Open() {
  descriptor_ = mkstemp(partial_.data());
  exists_ = descriptor_ >= 0;
  if (!exists_) return false;
  const mode_t mask = umask(0);
  umask(mask);
  return fchmod(descriptor_, 0666 & ~mask) == 0;
}

bool NewFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool NewFile::Close() {
  if (fsync(descriptor_) != 0) return false;
  const bool closed = close(std::exchange(descriptor_, -1)) == 0;
  if (!closed || std::rename(partial_.c_str(), path_.c_str()) != 0) return false;
  exists_ = false;
  return true;
}

struct HistoryOptions {
  std::string name;
  // Another name, or a snapshot's id.
  std::string other;
  std::string etag;
  std::optional<int64_t> expected_revision;
  std::optional<int64_t> revision;
  bool remove = false;
};

// A whole model is read and written.
constexpr double kPatientSeconds = 600;

ManagementClient ConnectPatiently(const Globals& globals) {
  return ManagementClient(globals.ConnectChannel(),
                          absl::Seconds(globals.timeout_seconds.value_or(kPatientSeconds)));
}

CLI::Option* AddModelName(CLI::App* command, HistoryOptions* options) {
  return command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
}

int ShowModel(const Globals& globals, const std::string& doing,
              const absl::StatusOr<v1::Model>& model) {
  if (!model.ok()) return PrintError(doing, model.status());
  if (globals.json()) {
    Print(ToJson(*model, true) + "\n");
  } else {
    PrintDone(DescribeModel(*model));
  }
  return kExitOk;
}

void PrintSnapshot(const Globals& globals, const v1::Snapshot& snapshot) {
  if (globals.json()) return Print(ToJson(snapshot, false) + "\n");
  const absl::Time time = absl::FromUnixSeconds(snapshot.create_time().seconds());
  Print(absl::StrFormat("%s  %s  revision %d  %d bytes\n", PrintableInLine(snapshot.name()),
                        absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()),
                        snapshot.revision(), snapshot.size_bytes()));
}

// Shows how far a transfer is, about ten times a second. `total`: 0 if it is unknown.
class TransferProgress {
 public:
  explicit TransferProgress(uint64_t total) : total_(total) {}
  ~TransferProgress() { WipeProgress(); }

  // CANCELLED after Ctrl-C.
  absl::Status Add(size_t bytes) {
    bytes_ += bytes;
    if (Interrupted()) return absl::CancelledError("interrupted");
    const std::optional<size_t> columns = ProgressColumns();
    if (!columns.has_value() || absl::Now() < next_) return absl::OkStatus();
    next_ = absl::Now() + absl::Milliseconds(100);
    Progress progress;
    if (total_ > 0)
      progress.fraction = std::min(1.0, static_cast<double>(bytes_) / static_cast<double>(total_));
    progress.figures = {absl::StrFormat("%.1f MB", static_cast<double>(bytes_) * 1e-6)};
    ShowProgress(ProgressLine(progress, *columns));
    return absl::OkStatus();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  const uint64_t total_;
  uint64_t bytes_ = 0;
  // A short transfer shows nothing.
  absl::Time next_ = absl::Now() + absl::Milliseconds(500);
};

// The call of a transfer, which Ctrl-C ends also while it waits for the server.
struct TransferCall {
  grpc::ClientContext context;
  const InterruptWatch watch{[this] {
    context.TryCancel();
    return false;
  }};
};

// What a transfer ends with that did not succeed. `effect`: what an interrupt may have left.
int TransferFailed(const std::string& command, const HistoryOptions& options,
                   const absl::Status& status, const char* effect = "") {
  if (Interrupted()) {
    PrintStderr(absl::StrCat(command, " ", PrintableInLine(options.name), ": interrupted", effect));
    return kExitInterrupted;
  }
  return PrintError(absl::StrCat(command, " ", options.name), status);
}

int ExportToOutput(const Globals& globals, const HistoryOptions& options) {
  TransferProgress progress(0);
  const auto write = [&](std::string_view piece) -> absl::Status {
    WriteBytes(stdout, piece);
    // The end of the run says why.
    if (std::ferror(stdout) != 0) return absl::UnknownError("standard output");
    return progress.Add(piece.size());
  };
  TransferCall call;
  const absl::Status status =
      ConnectPatiently(globals).ExportModel(options.name, write, &call.context);
  if (std::ferror(stdout) != 0) return kExitFailed;
  return status.ok() ? kExitOk : TransferFailed("export", options, status);
}

int RunExport(const Globals& globals, const HistoryOptions& options) {
  const bool to_stdout = options.other == "-";
  if (to_stdout && isatty(STDOUT_FILENO) == 1)
    return PrintUsageError("export: a model is binary; write it to a file or into a pipe");
  CatchInterrupts();
  if (to_stdout) return ExportToOutput(globals, options);
  NewFile file(options.other);
  TransferProgress progress(0);
  std::string failure;
  const auto check = [&](bool written) {
    if (!written) failure = std::generic_category().message(errno);
    return written;
  };
  const auto write = [&](std::string_view piece) -> absl::Status {
    if (!check(file.Write(piece))) return absl::UnknownError("the file");
    return progress.Add(piece.size());
  };
  absl::Status status;
  if (check(file.Open())) {
    TransferCall call;
    status = ConnectPatiently(globals).ExportModel(options.name, write, &call.context);
  }
  WipeProgress();
  if (failure.empty() && status.ok()) check(file.Close());
  if (!failure.empty()) {
    return Outcome{kExitFailed, absl::StrCat("export: cannot write ", options.other, ": ", failure)}
        .Report();
  }
  if (!status.ok()) return TransferFailed("export", options, status);
  if (globals.json()) {
    Print(JsonObject()
              .Text("file", options.other)
              .Integer("bytes", static_cast<int64_t>(progress.bytes()))
              .str() +
          "\n");
  } else {
    PrintDone(absl::StrFormat("%s  %d bytes\n", PrintableInLine(options.other), progress.bytes()));
  }
  return kExitOk;
}

int RunImport(const Globals& globals, const HistoryOptions& options) {
  const auto failed = [](const absl::Status& status) {
    return PrintUsageError(absl::StrCat("import: ", std::string(status.message())));
  };
  CatchInterrupts();
  const absl::StatusOr<std::unique_ptr<ByteSource>> source =
      OpenFile(options.other, [](int descriptor) { return WaitReadable(descriptor); });
  if (!source.ok()) return failed(source.status());
  std::error_code unknown;
  const uintmax_t size =
      options.other == "-" ? 0 : std::filesystem::file_size(options.other, unknown);
  TransferProgress progress(unknown ? 0 : size);
  absl::Status unreadable;
  bool at_end = false;
  const auto read = [&](size_t most) -> absl::StatusOr<std::string> {
    std::string piece(most, '\0');
    const absl::StatusOr<size_t> count = (*source)->Read(piece.data(), most);
    if (!count.ok()) return unreadable = count.status();
    piece.resize(*count);
    if (absl::Status status = progress.Add(*count); !status.ok()) return status;
    at_end = piece.empty();
    return piece;
  };
  TransferCall call;
  const absl::StatusOr<v1::Model> model =
      ConnectPatiently(globals).ImportModel(options.name, read, &call.context);
  WipeProgress();
  if (!unreadable.ok()) return failed(unreadable);
  if (!model.ok()) {
    return TransferFailed("import", options, model.status(),
                          at_end ? "; the file was sent: see in 'perceptronctl list' whether the "
                                   "model was created"
                                 : "; no model was created");
  }
  return ShowModel(globals, absl::StrCat("import ", options.name), model);
}

int RunSnapshot(const Globals& globals, const HistoryOptions& options) {
  const std::string doing = absl::StrCat("snapshot ", options.name);
  const ManagementClient client = ConnectPatiently(globals);
  if (options.remove) {
    if (options.other.empty()) return PrintUsageError("snapshot: --delete needs the snapshot's ID");
    const absl::Status status = client.DeleteSnapshot(options.name, options.other);
    if (!status.ok()) return PrintError(doing, status);
    const std::string name = absl::StrCat(ModelName(options.name), "/snapshots/", options.other);
    if (globals.json()) {
      Print(JsonObject().Text("deleted", name).str() + "\n");
    } else {
      PrintDone(absl::StrCat("deleted ", PrintableInLine(name), "\n"));
    }
    return kExitOk;
  }
  if (!options.other.empty()) {
    const absl::StatusOr<v1::Snapshot> made = client.CreateSnapshot(options.name, options.other);
    if (!made.ok()) return PrintError(doing, made.status());
    if (globals.json() || !IsQuiet()) PrintSnapshot(globals, *made);
    return kExitOk;
  }
  const absl::StatusOr<std::vector<v1::Snapshot>> all = client.ListSnapshots(options.name);
  if (!all.ok()) return PrintError(doing, all.status());
  for (const v1::Snapshot& snapshot : *all) PrintSnapshot(globals, snapshot);
  return kExitOk;
}

}  // namespace

void AddCopy(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command =
      app->add_subcommand("copy", "Copy a model with its weights, counters and producers");
  AddModelName(command, options.get());
  command->add_option("NEW_NAME", options->other, "Name of the copy")->required()->check(Utf8());
  command->footer("Example:\n  perceptronctl copy spam spam-candidate");
  command->callback([=] {
    *action = [=] {
      return ShowModel(*globals, absl::StrCat("copy ", options->name),
                       ConnectPatiently(*globals).CopyModel(options->name, options->other));
    };
  });
}

void AddRename(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command = app->add_subcommand("rename", "Give a model another name");
  AddModelName(command, options.get());
  command->add_option("NEW_NAME", options->other, "The new name")->required()->check(Utf8());
  command->add_option("--etag", options->etag, "Only if the model still has this etag")
      ->check(Utf8());
  command->footer(R"(Its streams end; producers resume under the new name. Aliases follow.

Example:
  perceptronctl rename spam spam-2026)");
  command->callback([=] {
    *action = [=] {
      return ShowModel(
          *globals, absl::StrCat("rename ", options->name),
          ConnectPatiently(*globals).RenameModel(options->name, options->other, options->etag));
    };
  });
}

void AddExport(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command =
      app->add_subcommand("export", "Write a model to a file: weights, counters, producers");
  AddModelName(command, options.get());
  command
      ->add_option("FILE", options->other, "The file, which must not exist; - is standard output")
      ->required()
      ->check(CLI::NonexistentPath);
  command->footer(
      R"(The file has checksums; 'perceptronctl import' makes a model of it, here or on another server.
It gets its name when it is whole; until then it is FILE.part-*, which an error removes.

Example:
  perceptronctl export spam spam.model)");
  command->callback([=] { *action = [=] { return RunExport(*globals, *options); }; });
}

void AddImport(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command = app->add_subcommand("import", "Create a model from an exported file");
  AddModelName(command, options.get());
  command->add_option("FILE", options->other, "The file; - is standard input")
      ->required()
      ->check(CLI::Validator(
          [](std::string& file) { return file == "-" ? "" : CLI::ExistingFile(file); }, "FILE"));
  command->footer(R"(Weights, revision, report and producers' positions are those of the file.
Files of any size are sent in pieces, within --timeout (default 600 s); an error leaves no model.

Example:
  perceptronctl export spam - | perceptronctl --server other:7600 import spam -)");
  command->callback([=] { *action = [=] { return RunImport(*globals, *options); }; });
}

void AddSnapshot(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command = app->add_subcommand(
      "snapshot", "Keep a model's current state under an ID, or list those that are kept");
  AddModelName(command, options.get());
  command->add_option("ID", options->other, "Name of the snapshot; none: list them")->check(Utf8());
  command->add_flag("--delete", options->remove, "Delete the snapshot of this ID");
  command->footer(R"(A model keeps at most 16.

Examples:
  perceptronctl snapshot spam before-import
  perceptronctl snapshot spam
  perceptronctl snapshot spam before-import --delete)");
  command->callback([=] { *action = [=] { return RunSnapshot(*globals, *options); }; });
}

void AddRollback(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command = app->add_subcommand(
      "rollback", "Go back to earlier weights and their theorem, as a new revision");
  AddModelName(command, options.get());
  CLI::Option* const id = command
                              ->add_option("ID", options->other,
                                           "The snapshot's ID; 'perceptronctl snapshot' lists them")
                              ->check(Utf8());
  command
      ->add_option("--revision", options->revision,
                   "Instead of ID: a revision from that of the oldest snapshot on, for as long as\n"
                   "the server holds the updates between (its --max-history-bytes)")
      ->check(WholeNumber())
      ->excludes(id);
  command->add_option("--expected-revision", options->expected_revision,
                      "Only if the model is at this revision");
  command->footer(R"(Streams that learn end and resume; predictions go on.

Examples:
  perceptronctl rollback spam before-import
  perceptronctl rollback spam --revision 1200)");
  command->callback([=] {
    if (options->other.empty() && !options->revision.has_value())
      throw CLI::ValidationError("rollback needs a snapshot's ID or --revision");
    *action = [=] {
      std::variant<std::string_view, int64_t> to = options->other;
      if (options->revision.has_value()) to = *options->revision;
      return ShowModel(
          *globals, absl::StrCat("rollback ", options->name),
          ConnectPatiently(*globals).RollBackModel(options->name, to, options->expected_revision));
    };
  });
}

}  // namespace perceptrond::client
