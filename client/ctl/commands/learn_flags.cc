#include "client/ctl/commands/learn_flags.h"

#include "client/ctl/command.h"
#include "client/ctl/commands/learn_summary.h"

namespace perceptrond::client {
namespace {

void AddPasses(CLI::App* command, LearnRunOptions* options) {
  command->add_option("--passes", options->passes, "Number of passes over the files")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->default_str("1");
  command->add_flag("--until-converged", options->until_converged,
                    "Stop after the first pass without an update; --passes is then the maximum "
                    "(default 1000), after which the exit code is 5");
  command
      ->add_option("--shuffle", options->shuffle,
                   "Learn each pass in a random order, by this seed and the pass's number: all "
                   "examples are read first, into at most 2 GiB of memory. A repeated run has the "
                   "same order")
      ->type_name("SEED");
  command
      ->add_flag("--analyze", options->analyze,
                 "Then analyze the stored examples: the best margin and the bound on updates (see "
                 "'perceptronctl analyze')")
      ->excludes("--also");
  AddMessageFlags(command, &options->batch, &options->compact);
  command->add_option("--window", options->window, "Most unanswered messages")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void AddProducerFlags(CLI::App* command, LearnRunOptions* options) {
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
      ->check(WholeNumber())
      ->needs("--producer");
  command
      ->add_option("--passes-before", options->passes_before,
                   "With --start-offset: number of passes before that example (default 0 with "
                   "--start-offset 0)")
      ->check(WholeNumber())
      ->needs("--start-offset");
}

}  // namespace

void AddLearnFlags(CLI::App* command, LearnRunOptions* options) {
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  command
      ->add_option("FILE", options->input.files,
                   "Files of examples, learned in this order; - is standard input")
      ->required();
  command
      ->add_option(
          "--also", options->also,
          "Another model that learns the same examples, on a stream of its own and with a "
          "result of its own; may be repeated. NAME's labels and space say how files are read, "
          "and the others must take what is read")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->check(Utf8());
  AddInputOptions(command, &options->input);
  AddPasses(command, options);
  AddProducerFlags(command, options);
  command->footer(kLearnFooter);
  command
      ->add_option(
          "--unseen-indices", options->unseen_indices,
          "At an example beyond the dimension, or the slots of --hash-bits: stop, since the "
          "others alone would bias the model, or refuse it alone, as a validation error")
      ->check(CLI::IsMember({"stop", "refuse"}))
      ->capture_default_str();
}

}  // namespace perceptrond::client
