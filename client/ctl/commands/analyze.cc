#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/ctl/analysis.h"
#include "client/ctl/command.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

struct AnalyzeOptions {
  std::string name;
  bool replace_weights = false;
  int64_t expected_revision = 0;
  AnalysisFlags limits;
};

int Run(const Globals& globals, const CLI::App& command, const AnalyzeOptions& options) {
  v1::AnalyzeRequest request;
  request.set_name(options.name);
  request.set_replace_weights(options.replace_weights);
  if (command.count("--if-revision") > 0) request.set_expected_revision(options.expected_revision);
  options.limits.Fill(&request);
  CatchInterrupts();
  const Client client = globals.Connect();
  v1::AnalysisResult result;
  if (const Outcome outcome = RunAnalysis(client, request, &result); !outcome.ok())
    return outcome.Report();
  if (globals.json()) {
    Print(ToJson(result, true) + "\n");
    return kExitOk;
  }
  const absl::StatusOr<v1::Model> model = client.GetModel(options.name);
  if (!model.ok()) return PrintError(absl::StrCat("analyze ", options.name), model.status());
  Print(DescribeResult(result, model->report().updates()));
  return kExitOk;
}

}  // namespace

void AddAnalyze(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app->add_subcommand(
      "analyze",
      "Find the best margin of a model's stored examples, or prove that they are not separable");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  auto* replace = command->add_flag("--replace-weights", options->replace_weights,
                                    "Replace the model's weights by the best separator, as a new "
                                    "revision");
  command
      ->add_option("--if-revision", options->expected_revision,
                   "With --replace-weights: only if the model is still at this revision")
      ->check(CLI::NonNegativeNumber)
      ->needs(replace);
  options->limits.AddTo(command);
  command->footer(
      R"(Analyzes the examples that the model stores: those that caused updates, and the sample
of 'create --store-sample'. If the sample holds all the model has seen, the result holds for all
its data. With several classes the margin is that of Kesler's construction. Ctrl-C cancels the
analysis.

Examples:
  perceptronctl analyze spam
  perceptronctl analyze spam --replace-weights -o json)");
  command->callback([=] { *action = [=] { return Run(*globals, *command, *options); }; });
}

}  // namespace perceptrond::client
