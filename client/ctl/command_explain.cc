// The command line of `perceptronctl explain`.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/command.h"
#include "client/ctl/explain_run.h"

namespace perceptrond::client {

void AddExplain(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ExplainRunOptions>();
  CLI::App* command = app->add_subcommand("explain", "Say what makes up the scores of examples");
  command->add_option("NAME", options->name, "spam, or models/spam")->required()->check(Utf8());
  command->add_option("FILE", options->input.files, "Files to explain; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  command->add_option("--top", options->top, "How many features of each example are listed")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->footer(
      "A score is the offset plus, for each feature, its value times its weight. Prints those for\n"
      "each example, the largest first, with bars; + speaks for the label +1, - for -1. With -o "
      "json\n"
      "each line is a perceptron.v1.ExplainResponse for one example. Of a model with a feature map "
      "the\n"
      "features are those that the map makes: \"x1*x2\". Models of two labels only (NOT_LINEAR).\n"
      "Formats are those of 'perceptronctl learn --help'.\n"
      "\n"
      "Examples:\n"
      "  echo 'Win a prize now' | perceptronctl explain spam - --format text\n"
      "  perceptronctl explain iris iris.test --format svmlight --index-base 1 --top 2 -o json");
  command->callback([=] { *action = [=] { return ExplainRun(*globals, *options).Run(); }; });
}

}  // namespace perceptrond::client
