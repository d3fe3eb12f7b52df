// `perceptronctl list`, `get`, `watch`, `update`, `delete`, `freeze` and `unfreeze`.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/connection.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/expire_after.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "client/ctl/terminal.h"
#include "client/retry.h"
#include "core/report/format.h"

namespace perceptrond::client {
namespace {

constexpr char kListLine[] = "%-24s %-8s %12s %12s %12s  %s\n";

struct ModelOptions {
  std::string name;
  std::string etag;
  std::string description;
  double margin_of_interest = 0;
  std::string expire_after;
  bool weights = false;
  bool learning_curve = false;
  bool yes = false;

  v1::ModelView view() const {
    if (weights) return v1::MODEL_VIEW_WEIGHTS;
    return learning_curve ? v1::MODEL_VIEW_LEARNING_CURVE : v1::MODEL_VIEW_BASIC;
  }
};

void AddName(CLI::App* command, ModelOptions* options) {
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
}

void AddEtag(CLI::App* command, ModelOptions* options) {
  command
      ->add_option("--etag", options->etag,
                   "Only if the model still has this etag; 'get' prints it")
      ->check(Utf8());
}

int Show(const Globals& globals, const std::string& doing, const absl::StatusOr<v1::Model>& model) {
  if (!model.ok()) return PrintError(doing, model.status());
  Print(globals.json() ? ToJson(*model, true) + "\n" : DescribeModel(*model));
  return kExitOk;
}

// The same for a model that was changed.
int ShowChanged(const Globals& globals, const std::string& doing,
                const absl::StatusOr<v1::Model>& model) {
  if (model.ok() && !globals.json() && IsQuiet()) return kExitOk;
  return Show(globals, doing, model);
}

int RunList(const Globals& globals) {
  const absl::StatusOr<v1::ListModelsResponse> all = globals.Connect().ListModels();
  if (!all.ok()) return PrintError("list", all.status());
  if (globals.json()) {
    Print(ToJson(*all, true) + "\n");
    return kExitOk;
  }
  for (const std::string& name : all->unreachable())
    PrintStderr(
        absl::StrCat(PrintableInLine(name), " cannot be read; 'perceptronctl get' says why"));
  if (all->models().empty() && all->unreachable().empty()) {
    PrintNotice("there are no models; 'perceptronctl create' creates one");
  } else {
    Print(absl::StrFormat(kListLine, "NAME", "STATE", "REVISION", "EXAMPLES", "MISTAKES",
                          "FEATURES"));
  }
  for (const v1::Model& model : all->models()) {
    Print(absl::StrFormat(kListLine, PrintableInLine(ModelId(model.name())),
                          model.state() == v1::MODEL_STATE_FROZEN ? "frozen" : "active",
                          absl::StrCat(model.revision()), absl::StrCat(model.report().examples()),
                          absl::StrCat(model.report().mistakes()),
                          DescribeSpace(model.feature_space())));
  }
  return kExitOk;
}

int RunUpdate(const Globals& globals, const CLI::App& command, const ModelOptions& options) {
  v1::Model model;
  model.set_name(options.name);
  model.set_etag(options.etag);
  std::vector<std::string> paths;
  if (command.count("--description") > 0) {
    model.set_description(options.description);
    paths.push_back("description");
  }
  if (command.count("--margin-of-interest") > 0) {
    model.set_margin_of_interest(options.margin_of_interest);
    paths.push_back("margin_of_interest");
  }
  if (command.count("--expire-after") > 0) {
    const std::string wrong =
        options.expire_after == "never" ? "" : SetExpireAfter(options.expire_after, &model);
    if (!wrong.empty()) return PrintUsageError(wrong);
    paths.push_back("expire_after");
  }
  if (paths.empty()) {
    return PrintUsageError(
        "update: nothing to change; give --description, --margin-of-interest or --expire-after");
  }
  return ShowChanged(globals, absl::StrCat("update ", options.name),
                     globals.Connect().UpdateModel(model, paths));
}

// Asks on a terminal only: the input of a script is none.
Outcome ConfirmDelete(const Globals& globals, const ModelOptions& options) {
  if (options.yes || !CanAsk()) return {};
  const absl::StatusOr<v1::Model> model = globals.Connect().GetModel(options.name);
  if (!model.ok()) return Failed(absl::StrCat("delete ", options.name), model.status());
  const std::string name = PrintableInLine(model->name());
  if (AskYesNo(absl::StrCat("Delete ", name, ", which has learned ",
                            Counted(model->report().examples(), "examples"), " and made ",
                            Counted(model->report().updates(), "updates"), "?"))) {
    return {};
  }
  return {kExitInterrupted, absl::StrCat("delete: ", name, " is kept")};
}

int RunDelete(const Globals& globals, const ModelOptions& options) {
  if (options.name.starts_with("aliases/")) {
    return PrintUsageError(absl::StrCat("delete: ", options.name, " is an alias, not a model; ",
                                        "'perceptronctl alias NAME --delete' deletes an alias"));
  }
  if (const Outcome outcome = ConfirmDelete(globals, options); !outcome.ok())
    return outcome.Report();
  const absl::Status status = globals.Connect().DeleteModel(options.name, options.etag);
  if (!status.ok()) return PrintError(absl::StrCat("delete ", options.name), status);
  if (globals.json()) {
    Print(JsonObject().Text("deleted", ModelName(options.name)).str() + "\n");
  } else {
    PrintDone(absl::StrCat("deleted ", PrintableInLine(ModelName(options.name)), "\n"));
  }
  return kExitOk;
}

}  // namespace

void AddList(CLI::App* app, const Globals* globals, Action* action) {
  CLI::App* command = app->add_subcommand("list", "List all models");
  command->footer(
      "The JSON has no label names; get shows them.\n\nExample:\n  perceptronctl list -o json");
  command->callback([=] { *action = [=] { return RunList(*globals); }; });
}

void AddGet(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app->add_subcommand("get", "Show a model's settings and convergence report");
  AddName(command, options.get());
  auto* weights =
      command->add_flag("--weights", options->weights, "Also print the non-zero weights");
  command
      ->add_flag("--learning-curve", options->learning_curve,
                 "Also print the learning curve: the report at up to 512 revisions and now")
      ->excludes(weights);
  command->footer(R"(Examples:
  perceptronctl get spam
  perceptronctl get spam --weights -o json
  perceptronctl get spam --learning-curve -o json | jq '.learningCurve[].marginCeiling')");
  command->callback([=] {
    *action = [=] {
      return Show(*globals, absl::StrCat("get ", options->name),
                  globals->Connect().GetModel(options->name, options->view()));
    };
  });
}

void AddUpdate(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command =
      app->add_subcommand("update", "Change a model's description, margin of interest or expiry");
  AddName(command, options.get());
  command->add_option("--description", options->description, "Free text, at most 1024 bytes")
      ->check(Utf8());
  command->add_option("--margin-of-interest", options->margin_of_interest,
                      "Smallest margin of practical interest, >= 0; 0: none");
  command
      ->add_option("--expire-after", options->expire_after,
                   "Have the server delete the model once it was not used for this time: 12h, 30d; "
                   "never: keep it")
      ->check(Utf8());
  AddEtag(command, options.get());
  command->footer(
      "Example:\n  perceptronctl update spam --description 'SMS filter' --margin-of-interest 0.01");
  command->callback([=] { *action = [=] { return RunUpdate(*globals, *command, *options); }; });
}

void AddDelete(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app->add_subcommand("delete", "Delete a model and everything it has learned");
  AddName(command, options.get());
  AddEtag(command, options.get());
  command->add_flag("-y,--yes", options->yes, "Do not ask");
  command->footer(
      R"(Asks on a terminal; elsewhere, as in a script, it deletes without asking. Answered with anything
but y or yes, it exits with 130.

Example:
  perceptronctl delete spam)");
  command->callback([=] { *action = [=] { return RunDelete(*globals, *options); }; });
}

void AddFreeze(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command =
      app->add_subcommand("freeze", "Make a model read-only: it predicts but does not learn");
  AddName(command, options.get());
  AddEtag(command, options.get());
  command->footer("Example:\n  perceptronctl freeze spam");
  command->callback([=] {
    *action = [=] {
      return ShowChanged(*globals, absl::StrCat("freeze ", options->name),
                         globals->Connect().FreezeModel(options->name, options->etag));
    };
  });
}

void AddUnfreeze(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App* command = app->add_subcommand("unfreeze", "Let a frozen model learn again");
  AddName(command, options.get());
  AddEtag(command, options.get());
  command->footer("Example:\n  perceptronctl unfreeze spam");
  command->callback([=] {
    *action = [=] {
      return ShowChanged(*globals, absl::StrCat("unfreeze ", options->name),
                         globals->Connect().UnfreezeModel(options->name, options->etag));
    };
  });
}

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

// Returns false once nothing can be shown any more.
// `named` is the model as it was asked for last: a watch answers without label names.
bool ShowReport(const Globals& globals, const Client& client, v1::Model model, v1::Model* named,
                RedrawnText* picture) {
  const std::optional<WindowSize> window = SizeOfWindow(STDOUT_FILENO);
  if (globals.json()) {
    Print(ToJson(model, false) + "\n");
  } else if (window.has_value()) {
    const bool grows = model.learner().classes().new_classes() == v1::Classes::NEW_CLASSES_NAMED;
    if (named->uid() != model.uid() || grows) {
      // If they cannot be had, the watch's next answer says why.
      absl::StatusOr<v1::Model> whole = client.GetModel(model.name());
      if (whole.ok()) *named = *std::move(whole);
    }
    if (named->uid() == model.uid()) *model.mutable_label_names() = named->label_names();
    WriteBytes(stdout, picture->Draw(DescribeModel(model), *window));
  } else {
    Print(OneLine(model) + "\n");
  }
  return FlushOutput() == 0;
}

// Until nothing can be shown any more, also over lost connections and a rollback.
absl::Status Follow(const Globals& globals, const WatchOptions& options, RedrawnText* picture) {
  const Client client = globals.Connect();
  const RetryPolicy retry = globals.StreamRetry();
  Backoff backoff(retry);
  Connectivity connectivity;
  auto answered = retry.now();
  std::string name = options.name;
  v1::Model named;
  while (true) {
    grpc::ClientContext context;
    absl::Status status;
    {
      const InterruptWatch cancel([&context] {
        context.TryCancel();
        return false;
      });
      status = client.WatchModel(
          name, absl::Seconds(options.interval),
          [&](const v1::Model& model) {
            answered = retry.now();
            // Stays on the model of an alias.
            name = model.name();
            backoff.Reset();
            connectivity.OnAnswer();
            return ShowReport(globals, client, model, &named, picture) && !Interrupted();
          },
          &context);
    }
    if (status.ok() || Interrupted() || !IsTransient(status)) return status;
    const absl::Duration wait = backoff.Next(status);
    if (absl::FromChrono(retry.now() - answered) + wait >= retry.give_up_after)
      return WithGaveUpAfter(status, retry.give_up_after);
    connectivity.OnLost(status);
    retry.sleep(wait);
  }
}

int RunWatch(const Globals& globals, const WatchOptions& options) {
  CatchInterrupts();
  RedrawnText picture;
  const absl::Status status = Follow(globals, options, &picture);
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
one JSON object (perceptron.v1.Model, without label names) per line.

Examples:
  perceptronctl watch spam --interval 0.5
  perceptronctl watch spam -o json | jq .report.windowError)");
  command->callback([=] { *action = [=] { return RunWatch(*globals, *options); }; });
}

}  // namespace perceptrond::client
