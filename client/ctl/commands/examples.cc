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

// " 3:0.5 7:2", from index 0; names as they are.
void Features(const v1::Example& example, std::string* out) {
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

std::string Line(const v1::RetainedExample& retained) {
  const v1::Example& example = retained.example();
  std::string line = example.has_label_name()
                         ? PrintableInLine(example.label_name())
                         : absl::StrCat(example.label() == 1 ? "+" : "", example.label());
  Features(example, &line);
  if (retained.update_revision() > 0) {
    absl::StrAppend(&line, " # update ", retained.update_revision(), ", score ",
                    Shortest(retained.score()));
  }
  return line;
}

int Run(const Globals& globals, const ExamplesOptions& options) {
  bool empty = true;
  const absl::Status status = globals.Connect().ListRetainedExamples(
      options.name, [&](const v1::ListRetainedExamplesResponse& page) {
        for (const v1::RetainedExample& example : page.examples())
          Print((globals.json() ? ToJson(example, false) : Line(example)) + "\n");
        empty = empty && page.examples_size() == 0;
        return true;
      });
  if (!status.ok()) return PrintError(absl::StrCat("examples ", options.name), status);
  if (empty) {
    Complain(
        "no examples are retained; see --retain-updates and --retain-sample of 'perceptronctl "
        "create'");
  }
  return kExitOk;
}

}  // namespace

void AddExamples(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ExamplesOptions>();
  CLI::App* command =
      app->add_subcommand("examples", "List the examples that a model retains, updates first");
  command->add_option("NAME", options->name, "spam, or models/spam")->required()->check(Utf8());
  command->footer(
      "Lines in svmlight form, features from 0 or by name as the model's weights have them, behind "
      "# the\n"
      "revision that an example's update produced and the score before it; with -o json each a\n"
      "perceptron.v1.RetainedExample. Example:\n"
      "  perceptronctl examples spam -o json | jq .updateRevision");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
