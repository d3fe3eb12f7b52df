#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/command.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"

namespace perceptrond::client {
namespace {

struct WatchOptions {
  std::string name;
  double interval = 1;
};

std::string OneLine(const v1::Model& model) {
  const v1::ConvergenceReport& report = model.report();
  std::string line =
      absl::StrFormat("revision %d  examples %d  mistakes %d  streak %d", model.revision(),
                      report.examples(), report.mistakes(), report.streak());
  if (report.has_window_error()) {
    absl::StrAppend(&line, "  window error ", Percent(report.window_error()));
  }
  if (report.has_margin_ceiling()) {
    absl::StrAppendFormat(&line, "  margin <= %.4g", report.margin_ceiling());
  }
  return line;
}

int Run(const Globals& globals, const WatchOptions& options) {
  CatchInterrupts();
  const bool terminal = !globals.json() && isatty(STDOUT_FILENO) == 1;
  int drawn_lines = 0;
  grpc::ClientContext context;
  int done[2];
  if (pipe(done) != 0) return PrintUsageError("watch: no pipe to be had");
  std::thread canceller([&context, &done] {
    WaitInterrupted(done[0]);
    context.TryCancel();
  });
  const absl::Status status = globals.Connect().WatchModel(
      options.name, absl::Seconds(options.interval),
      [&](const v1::Model& model) {
        if (globals.json()) {
          std::printf("%s\n", ToJson(model, false).c_str());
        } else if (terminal) {
          // Back to where the last picture began, and wipe it.
          if (drawn_lines > 0) std::printf("\033[%dA\033[J", drawn_lines);
          const std::string picture = DescribeModel(model);
          drawn_lines = static_cast<int>(std::count(picture.begin(), picture.end(), '\n'));
          std::fputs(picture.c_str(), stdout);
        } else {
          std::printf("%s\n", OneLine(model).c_str());
        }
        std::fflush(stdout);
        return !Interrupted();
      },
      &context);
  close(done[1]);
  canceller.join();
  close(done[0]);
  if (Interrupted() || status.ok()) return kExitOk;
  return PrintError(absl::StrCat("watch ", options.name), status);
}

}  // namespace

void AddWatch(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* command = app->add_subcommand("watch", "Follow a model's convergence until Ctrl-C");
  command->add_option("NAME", options->name, "spam, or models/spam")->required();
  command->add_option("--interval", options->interval, "Seconds between two looks, at least 0.05")
      ->check(CLI::Range(0.05, 86400.0))
      ->capture_default_str();
  command->footer(
      "A picture redrawn on a terminal, lines elsewhere, JSON lines with -o json. Examples:\n"
      "  perceptronctl watch spam --interval 0.5\n"
      "  perceptronctl watch spam -o json | jq .report.windowError");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
