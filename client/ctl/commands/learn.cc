// The command line of `perceptronctl learn`.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/command.h"
#include "client/ctl/commands/learn_run.h"

namespace perceptrond::client {
namespace {

void AddPasses(CLI::App* command, LearnRunOptions* options) {
  command->add_option("--passes", options->passes, "How often to go over the files")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->default_str("1");
  command->add_flag("--until-converged", options->until_converged,
                    "Stop after the first pass that changes nothing; --passes is then the most "
                    "passes (default 1000)");
  auto* analyze = command->add_flag(
      "--analyze", options->analyze,
      "Then analyze what the model retains: the best margin, and the bound on updates "
      "that it proves (see 'perceptronctl analyze')");
  options->analysis_limits.AddTo(command, "analyze-", analyze);
  command->add_option("--batch", options->batch, "Examples in a message")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--window", options->window, "Messages that may be unanswered")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void AddProducer(CLI::App* command, LearnRunOptions* options) {
  auto* producer =
      command
          ->add_option("--producer", options->producer,
                       "Number the examples in this producer's name, to be able to run again after "
                       "a crash (default: one of this machine's own)")
          ->check(Utf8());
  command
      ->add_flag("--unnumbered", options->unnumbered,
                 "Do not number the examples: once one was sent, a broken connection ends the run, "
                 "and nobody can tell what was learned")
      ->excludes(producer);
  command
      ->add_option("--start-offset", options->start_offset,
                   "With --producer: the number of the first example. 0 runs a file again from its "
                   "start: what was learned already is skipped (default: append)")
      ->check(CLI::NonNegativeNumber)
      ->needs("--producer");
  command
      ->add_option("--passes-before", options->passes_before,
                   "With --start-offset: passes marked before that example (default 0 with "
                   "--start-offset 0)")
      ->check(CLI::NonNegativeNumber)
      ->needs("--start-offset");
}

}  // namespace

void AddLearn(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<LearnRunOptions>();
  CLI::App* command = app->add_subcommand("learn", "Teach a model from files, exactly once");
  command->add_option("NAME", options->name, "spam, or models/spam")->required()->check(Utf8());
  command
      ->add_option("FILE", options->input.files,
                   "Files to learn in this order; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  AddPasses(command, options.get());
  AddProducer(command, options.get());
  command->footer(
      "Examples:\n"
      "  perceptronctl learn iris iris.train --format svmlight --index-base 1 --passes 3\n"
      "  perceptronctl learn spam sms.tsv --skip-lines 1 --until-converged\n"
      "  zcat log.vw.gz | perceptronctl learn clicks - --format vw --producer web1 --start-offset "
      "0\n"
      "\n"
      "Formats, one example a line:\n"
      "  svmlight  -1 3:0.5 7:2 # comment\n"
      "  vw        1 |words free win |info length:23      (feature words^free, info^length)\n"
      "  csv       columns but --label-column are features, named by the header\n"
      "  jsonl     {\"named\": {\"names\": [\"free\", \"win\"]}, \"label\": 1}\n"
      "  text      spam<TAB>Free entry! Win ...           (words in lower case, valued by count)\n"
      "Where no label is needed, as for predict, a text line with no tab, or with no label of the "
      "model before\n"
      "its first, is all text; where classes come up by name, what is before the first tab is a "
      "label.\n"
      "With -o json the summary is one object: model, producer, converged, seconds, the counts "
      "rows, "
      "examples,\n"
      "mistakes, updates, duplicates, refused, lostAnswers, badLines, revision and "
      "acknowledgedThrough (strings,\n"
      "as protobuf's JSON form has 64-bit numbers), passes (each a perceptron.v1.PassSummary), "
      "the model's\n"
      "report (perceptron.v1.ConvergenceReport), and with --analyze analysis "
      "(perceptron.v1.AnalysisResult).\n"
      "Labels are -1, +1, 1, or the model's label names. Ctrl-C ends cleanly with a summary.\n"
      "Where the server does not answer for --timeout seconds (default 60), reconnecting included, "
      "learn\n"
      "gives up with exit code 4.");
  command->callback([=] { *action = [=] { return LearnRun(*globals, *options).Run(); }; });
}

}  // namespace perceptrond::client
