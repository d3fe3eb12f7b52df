// The command line of `perceptronctl examples`.
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

struct ExamplesOptions {
  std::string name;
};

// Appends " 3:0.5 7:2": indices from 0, or names.
void AppendFeatures(const v1::Example& example, std::string* out) {
  for (int i = 0; i < example.dense().values_size(); ++i) {
    if (example.dense().values(i) != 0)
      absl::StrAppend(out, " ", i, ":", Shortest(example.dense().values(i)));
  }
  for (int i = 0; i < example.sparse().indices_size(); ++i)
    absl::StrAppend(out, " ", example.sparse().indices(i), ":",
                    Shortest(example.sparse().values(i)));
  for (int i = 0; i < example.named().names_size(); ++i)
    absl::StrAppend(out, " ", PrintableInLine(example.named().names(i)), ":",
                    Shortest(example.named().values(i)));
}

std::string Line(const v1::StoredExample& stored) {
  const v1::Example& example = stored.example();
  std::string line = example.has_label_name()
                         ? PrintableInLine(example.label_name())
                         : absl::StrCat(example.label() == 1 ? "+" : "", example.label());
  AppendFeatures(example, &line);
  if (stored.update_revision() > 0) {
    absl::StrAppend(&line, " # update ", stored.update_revision(), ", score ",
                    Shortest(stored.score()));
  }
  return line;
}

int Run(const Globals& globals, const ExamplesOptions& options) {
  bool empty = true;
  const absl::Status status = globals.Connect().ListStoredExamples(
      options.name, [&](const v1::ListStoredExamplesResponse& page) {
        for (const v1::StoredExample& example : page.examples())
          Print((globals.json() ? ToJson(example, false) : Line(example)) + "\n");
        empty = empty && page.examples_size() == 0;
        return true;
      });
  if (!status.ok()) return PrintError(absl::StrCat("examples ", options.name), status);
  if (empty) {
    PrintStderr(
        "the model stores no examples; see --store-updates and --store-sample of "
        "'perceptronctl create'");
  }
  return kExitOk;
}

}  // namespace

void AddExamples(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ExamplesOptions>();
  CLI::App* command = app->add_subcommand("examples", "List the examples that a model stores");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  command->footer(
      R"(Lists the latest examples that caused updates, then the sample, in svmlight form; indices
start at 0. After # are the revision that the example's update produced and the score before it.
With -o json each line is a perceptron.v1.StoredExample.

Examples:
  perceptronctl examples spam
  perceptronctl examples spam -o json | jq .updateRevision)");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
