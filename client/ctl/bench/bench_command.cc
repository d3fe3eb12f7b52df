// The command line of `perceptronctl bench`.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/bench/bench.h"
#include "client/ctl/command.h"

namespace perceptrond::client {
namespace {

constexpr char kBenchFooter[] =
    R"(Sends synthetic examples and prints examples per second and latency percentiles per
message.

With --rate each message has a due time, and its latency counts from then to its answer, even if
earlier answers delayed sending it: percentiles are free of coordinated omission. Messages overdue
at the end are still sent, for at most the measured time again. Without --rate messages are sent as
fast as --window allows: this shows the throughput, with the latency of a full window.

All examples are generated, and each stream has answered a first message, before the load starts.
Loads that need more than a quarter of this machine's memory are an error. Client and server share
the processor if they run on one machine. For a mixed load run several benches on one NAME.

If the connection is lost, bench waits --timeout seconds for the server, except for streams that
learn on an existing NAME. Ctrl-C ends the run with the results so far (exit code 130); a second one
ends it at once and leaves the temporary model.

-o json prints one object:
  {"work":"learn","model":...,"streams":"1","batch":"100","seconds":10,
   "rate":50000,"examplesPerSecond":50000,"keptUp":true,...,
   "latencyMicroseconds":{"p50":210,...,"max":3100}}

Examples:
  perceptronctl bench                                        throughput of one learn stream
  perceptronctl bench --rate 50000 --mistakes 0.1            latency of durable updates
  perceptronctl bench --named --size 100000                  examples by name, as text has them
  perceptronctl bench --work call --rate 1000 --seconds 60   latency of predict calls
  perceptronctl bench spam --work predict --streams 4 -o json)";

// Checks flags that contradict each other; returns an error message, or an empty string.
std::string CheckFlags(const BenchOptions& options) {
  if (options.name.empty() && !options.dense && options.Features() > options.size)
    return "--features must not be greater than --size";
  if (options.work != "learn" && options.mistakes > 0)
    return "--mistakes requires --work learn: the other kinds of work send no labels";
  return "";
}

void AddLoadFlags(CLI::App* command, BenchOptions* options) {
  command
      ->add_option(
          "--work", options->work,
          "Kind of load. learn: learn streams; predict: predict streams; call: unary predict "
          "calls, one after the other")
      ->check(CLI::IsMember({"learn", "predict", "call"}))
      ->capture_default_str();
  command->add_option("--streams", options->streams, "Concurrent streams, each on its own thread")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--rate", options->rate,
                   "Examples per second over all streams (default: as many as the server accepts)")
      ->check(Between(0.001, 1e9));
  command
      ->add_option("--batch", options->batch,
                   "Examples per message (default 100, with --work call 1)")
      ->check(CLI::Range(1, 65536));
  command->add_option("--window", options->window, "Most unanswered messages of a stream")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_flag("--compact", options->compact,
                    "Streams send fewer bytes for more work, for slow networks");
  command->add_option("--seconds", options->seconds, "Measured time in seconds")
      ->check(Between(0.1, 86400))
      ->capture_default_str();
  command->add_option("--warmup", options->warmup, "Seconds of load before the measured time")
      ->check(Between(0, 3600))
      ->capture_default_str();
}

void AddShapeFlags(CLI::App* command, BenchOptions* options) {
  command
      ->add_option("--features", options->features,
                   "Non-zero features of an example (default 75, or --size if that is less)")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--size", options->size,
                   "Dimension of the temporary model; with --named, number of names")
      ->check(CLI::Range(2, 1 << 28))
      ->capture_default_str();
  auto* dense =
      command->add_flag("--dense", options->dense,
                        "Dense examples: all features are non-zero; --features is ignored");
  auto* named = command
                    ->add_flag("--named", options->named,
                               "Features by name, some names frequent and most rare (Zipf's law); "
                               "the temporary model has a named space")
                    ->excludes(dense);
  command
      ->add_option("--hash-bits", options->hash_bits,
                   "With --named: the temporary model hashes names into 2^B weights")
      ->check(CLI::Range(1, 28))
      ->needs(named);
  command
      ->add_option("--mistakes", options->mistakes,
                   "Share of examples that the model never learns, 0 to 1. The result prints the "
                   "share reached, which is lower if --size is small")
      ->check(Between(0, 1))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the random examples")
      ->capture_default_str();
}

}  // namespace

void AddBench(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app->add_subcommand("bench", "Measure the throughput and latency of the server under load");
  command
      ->add_option("NAME", options->name,
                   "Existing model to load. With --work learn it LEARNS the synthetic examples. "
                   "Default: a temporary model, deleted after the run")
      ->check(Utf8());
  AddLoadFlags(command, options.get());
  AddShapeFlags(command, options.get());
  command->footer(kBenchFooter);
  command->callback([=] {
    const std::string wrong = CheckFlags(*options);
    if (!wrong.empty()) throw CLI::ValidationError(wrong);
    *action = [=] { return RunBench(*globals, *options); };
  });
}

}  // namespace perceptrond::client
