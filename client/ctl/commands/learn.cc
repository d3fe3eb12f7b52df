// The command line of `perceptronctl learn`.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/command.h"
#include "client/ctl/commands/learn_run.h"

namespace perceptrond::client {
namespace {

constexpr char kLearnFooter[] =
    R"(Prints a line per pass and a summary: examples, mistakes, updates, and the convergence
report.

Examples:
  perceptronctl learn iris iris.train --format svmlight --index-base 1 --passes 3
  perceptronctl learn spam sms.tsv --skip-lines 1 --until-converged
  zcat log.vw.gz | perceptronctl learn clicks - --format vw --producer web1 --start-offset 0

Formats, one example per line:
  svmlight  -1 3:0.5 7:2 # comment
  vw        1 |words free win |info length:23      (features words^free, info^length)
  csv       all columns but --label-column are features, named by the header
  jsonl     {"named": {"names": ["free", "win"]}, "label": 1}
  text      spam<TAB>Free entry! Win ...           (features: lower-case words and their counts)
Labels are -1, +1, 1, or the label names of the model. In text without required labels, as for
predict, a line without a tab, or with an unknown label before its first tab, is all text; if the
model adds classes by name, the text before the first tab is a label.

With -o json the summary is one object: model, producer, converged, seconds; the counts rows,
examples, mistakes, updates, duplicates, rowErrors, lostAnswers, badLines, revision and
acknowledgedThrough (as strings, like all 64-bit numbers in protobuf's JSON); passes (each a
perceptron.v1.PassSummary), report (perceptron.v1.ConvergenceReport), and with --analyze analysis
(perceptron.v1.AnalysisResult).

Ctrl-C ends the run cleanly with a summary. If the server does not answer for --timeout seconds
(default 60), reconnecting included, learn gives up with exit code 4.)";

void AddPasses(CLI::App* command, LearnRunOptions* options) {
  command->add_option("--passes", options->passes, "Number of passes over the files")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->default_str("1");
  command->add_flag("--until-converged", options->until_converged,
                    "Stop after the first pass without an update; --passes is then the maximum "
                    "(default 1000)");
  auto* analyze = command->add_flag(
      "--analyze", options->analyze,
      "Then analyze the retained examples: the best margin and the bound on updates (see "
      "'perceptronctl analyze')");
  options->analysis_limits.AddTo(command, "analyze-", analyze);
  command->add_option("--batch", options->batch, "Examples per message")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--window", options->window, "Most unanswered messages")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void AddProducer(CLI::App* command, LearnRunOptions* options) {
  auto* producer =
      command
          ->add_option("--producer", options->producer,
                       "Producer id under which the examples are numbered, so that a repeated run "
                       "learns each only once (default: an id managed on this machine)")
          ->check(Utf8());
  command
      ->add_flag("--unnumbered", options->unnumbered,
                 "Do not number the examples. A lost connection then ends the run, and it is "
                 "unknown which of the last examples were learned")
      ->excludes(producer);
  command
      ->add_option(
          "--start-offset", options->start_offset,
          "With --producer: offset of the first example. With 0 a repeated file is learned "
          "from where it stopped (default: after the producer's last example)")
      ->check(CLI::NonNegativeNumber)
      ->needs("--producer");
  command
      ->add_option("--passes-before", options->passes_before,
                   "With --start-offset: number of passes before that example (default 0 with "
                   "--start-offset 0)")
      ->check(CLI::NonNegativeNumber)
      ->needs("--start-offset");
}

}  // namespace

void AddLearn(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<LearnRunOptions>();
  CLI::App* command = app->add_subcommand(
      "learn", "Train a model on the examples of files, each learned exactly once");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  command
      ->add_option("FILE", options->input.files,
                   "Files of examples, learned in this order; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  AddPasses(command, options.get());
  AddProducer(command, options.get());
  command->footer(kLearnFooter);
  command->callback([=] { *action = [=] { return LearnRun(*globals, *options).Run(); }; });
}

}  // namespace perceptrond::client
