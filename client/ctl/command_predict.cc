// The command line of `perceptronctl predict`.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/command.h"
#include "client/ctl/predict_run.h"

namespace perceptrond::client {

void AddPredict(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<PredictRunOptions>();
  CLI::App* command = app->add_subcommand("predict", "Predict the examples of files");
  command->add_option("NAME", options->name, "spam, or models/spam")->required()->check(Utf8());
  command->add_option("FILE", options->input.files, "Files to predict; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  command->add_flag("--summary", options->summary_only, "The summary only, on standard output");
  command->add_flag("--all-scores", options->all_scores,
                    "Of several classes: with -o json every class's score, as classScores");
  command->add_option("--min-revision", options->min_revision,
                      "Refuse answers from an older state of the model");
  command->add_option("--batch", options->batch, "Examples in a message")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->footer(
      "Prints a line for each example: label, score and distance from the boundary, and where the\n"
      "learner has probabilities that of +1. With -o json each line is a "
      "perceptron.v1.PredictResponse\n"
      "for that example alone:\n"
      "  {\"scores\":[2.5],\"labels\":[1],\"distances\":[0.7],\"revision\":\"366\",\"errors\":[],"
      "\"probabilities\":[],\"classScores\":[],\"classProbabilities\":[],\"componentRevisions\":[]}"
      "\n"
      "distances is empty while all weights are zero; errors says why an example was refused "
      "(score NaN,\n"
      "label 0). What -1 and +1 are called, 'get -o json' says: .labelNames. Of several classes "
      "the "
      "label is\n"
      "the class, a number in JSON, and the distance the margin to the next class.\n"
      "Labels are not needed; where the input has them, a summary on standard error tells how many "
      "were\n"
      "predicted wrong, and of two labels the data's margin: the least label x distance, below 0 "
      "if one\n"
      "is wrong; there is none where there are no distances. --summary -o json prints that as\n"
      "  {\"examples\":\"9\",\"labelled\":\"9\",\"refused\":\"0\",\"badLines\":\"0\","
      "\"revision\":\"366\",\"errors\":\"1\",\n"
      "   "
      "\"errorRate\":0.11,\"majorityErrorRate\":0.22,\"truePositives\":\"2\",...,\"margin\":-0.7}\n"
      "with counts as strings, as protobuf's JSON form has 64-bit numbers; from errors on only if "
      "there are labels.\n"
      "Formats are those of 'perceptronctl learn --help', and so is --timeout.\n"
      "\n"
      "Examples:\n"
      "  perceptronctl predict iris iris.test --format svmlight --index-base 1\n"
      "  perceptronctl predict iris iris.test --format svmlight --index-base 1 -o json | "
      "jq '.labels[0]'\n"
      "  perceptronctl predict spam sms.tsv --skip-lines 1 --summary\n"
      "  echo 'Win a prize now' | perceptronctl predict spam - --format text");
  command->callback([=] { *action = [=] { return PredictRun(*globals, *options).Run(); }; });
}

}  // namespace perceptrond::client
