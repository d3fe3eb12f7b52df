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
  bool adopt = false;
  int64_t if_revision = 0;
  AnalysisFlags limits;
};

int Run(const Globals& globals, const CLI::App& command, const AnalyzeOptions& options) {
  v1::AnalyzeRequest request;
  request.set_name(options.name);
  request.set_adopt(options.adopt);
  if (command.count("--if-revision") > 0) request.set_if_revision(options.if_revision);
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
      "analyze", "Prove what the examples that a model retains admit: the best margin, or none");
  command->add_option("NAME", options->name, "spam, or models/spam")->required()->check(Utf8());
  auto* adopt = command->add_flag("--adopt", options->adopt,
                                  "Make the best separator the model's weights, as a new revision");
  command
      ->add_option("--if-revision", options->if_revision,
                   "With --adopt: only if the model is still at this revision")
      ->check(CLI::NonNegativeNumber)
      ->needs(adopt);
  options->limits.AddTo(command);
  command->footer(
      "A model retains the examples that caused updates; of a sample that holds everything it saw "
      "(create\n"
      "--retain-sample), what is proven holds for all its data. Models of two labels only "
      "(NOT_BINARY).\n"
      "Ctrl-C cancels, with exit code 130. Examples:\n"
      "  perceptronctl analyze spam\n"
      "  perceptronctl analyze spam --adopt -o json");
  command->callback([=] { *action = [=] { return Run(*globals, *command, *options); }; });
}

}  // namespace perceptrond::client
