#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/command.h"
#include "client/ctl/flags.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "client/ctl/terminal.h"
#include "core/report/format.h"

namespace perceptrond::client {
namespace {

struct WatchOptions {
  std::string name;
  double interval = 1;
};

std::string OneLine(const v1::Model& model) {
  const v1::ConvergenceReport& report = model.report();
  std::string line = StateName(report.state());
  if (!line.empty()) absl::StrAppend(&line, "  ");
  absl::StrAppendFormat(&line, "revision %d  examples %d  mistakes %d  streak %d", model.revision(),
                        report.examples(), report.mistakes(), report.streak());
  if (report.has_window_error()) {
    absl::StrAppend(&line, "  window error ", Percent(report.window_error()));
  }
  if (report.has_error_ceiling()) {
    absl::StrAppend(&line, "  error <= ", Percent(report.error_ceiling()));
  }
  if (report.has_margin_ceiling()) {
    absl::StrAppendFormat(&line, "  margin <= %.4g", report.margin_ceiling());
  }
  return line;
}

void Show(const Globals& globals, const v1::Model& model, RedrawnText* picture) {
  const std::optional<WindowSize> window = SizeOfWindow(STDOUT_FILENO);
  if (globals.json()) {
    Print(ToJson(model, false) + "\n");
  } else if (window.has_value()) {
    std::fputs(picture->Draw(DescribeModel(model), *window).c_str(), stdout);
  } else {
    Print(OneLine(model) + "\n");
  }
  std::fflush(stdout);
}

int Run(const Globals& globals, const WatchOptions& options) {
  CatchInterrupts();
  RedrawnText picture;
  grpc::ClientContext context;
  int done[2];
  if (pipe(done) != 0) return PrintUsageError("watch: cannot create a pipe");
  std::thread canceller([&context, &done] {
    WaitInterrupted(done[0]);
    context.TryCancel();
  });
  const absl::Status status = globals.Connect().WatchModel(
      options.name, absl::Seconds(options.interval),
      [&](const v1::Model& model) {
        Show(globals, model, &picture);
        return !Interrupted();
      },
      &context);
  close(done[1]);
  canceller.join();
  close(done[0]);
  if (Interrupted() && !globals.json() && SizeOfWindow(STDOUT_FILENO).has_value()) {
    // Ends the line with the echoed ^C.
    Print("\n");
  }
  if (Interrupted() || status.ok()) return kExitOk;
  return PrintError(absl::StrCat("watch ", options.name), status);
}

}  // namespace

void AddWatch(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* command =
      app->add_subcommand("watch", "Follow a model's convergence report until Ctrl-C");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  command->add_option("--interval", options->interval, "Seconds between two reports, at least 0.05")
      ->check(Between(0.05, 86400.0))
      ->capture_default_str();
  command->footer(
      R"(Redraws the report on a terminal; elsewhere prints one line per report, or with -o json
one JSON object (perceptron.v1.Model) per line.

Examples:
  perceptronctl watch spam --interval 0.5
  perceptronctl watch spam -o json | jq .report.windowError)");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
