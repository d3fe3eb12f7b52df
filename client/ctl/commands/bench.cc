// The command line of `perceptronctl bench`.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/ctl/bench/bench_run.h"
#include "client/ctl/command.h"
#include "client/ctl/flags.h"

namespace perceptrond::client {
namespace {

// Every value that may be nonsense beside another one; "" if none is.
std::string Contradiction(const BenchOptions& options) {
  if (options.name.empty() && !options.dense && options.Features() > options.size)
    return "--features is more than --size";
  if (options.work != "learn" && options.refused > 0)
    return "--refused is about labels, and only --work learn sends them";
  if (options.work != "learn" && options.mistakes > 0)
    return "--mistakes is about labels, and only --work learn sends them";
  return "";
}

void AddLoadFlags(CLI::App* command, BenchOptions* options) {
  command
      ->add_option("--work", options->work,
                   "learn: streams that learn; predict: streams that ask; call: one call after "
                   "the other")
      ->check(CLI::IsMember({"learn", "predict", "call"}))
      ->capture_default_str();
  command->add_option("--streams", options->streams, "So many at once, each on its own thread")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--rate", options->rate,
                   "Examples a second, of all streams together (default: as many as the server "
                   "takes). A message is due for every --batch of them, the first "
                   "at once")
      ->check(Between(0.001, 1e9));
  command->add_option("--batch", options->batch, "Examples in a message (default 100; of calls 1)")
      ->check(CLI::Range(1, 65536));
  command->add_option("--window", options->window, "Messages of a stream that may be unanswered")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "How long is counted")
      ->check(Between(0.1, 86400))
      ->capture_default_str();
  command->add_option("--warmup", options->warmup, "Seconds before that, which are not counted")
      ->check(Between(0, 3600))
      ->capture_default_str();
}

void AddShapeFlags(CLI::App* command, BenchOptions* options) {
  command
      ->add_option("--features", options->features,
                   "Features of an example that are not 0 (default 75, or --size if that is less)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--size", options->size, "Dimension of the model that is made for the run")
      ->check(CLI::Range(2, 1 << 28))
      ->capture_default_str();
  command->add_flag("--dense", options->dense,
                    "Every coordinate has a value; --features is ignored");
  command
      ->add_option("--mistakes", options->mistakes,
                   "Share of the examples that the model is to err on for ever, 0 to 1. What it "
                   "came to is said: a small --size has not the room for it")
      ->check(Between(0, 1))
      ->capture_default_str();
  command
      ->add_option("--refused", options->refused,
                   "Share of the examples that the server has to refuse, 0 to 1")
      ->check(Between(0, 1))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the examples")->capture_default_str();
}

}  // namespace

void AddBench(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app->add_subcommand("bench", "Put a load on the server and measure how it is borne");
  command
      ->add_option("NAME", options->name,
                   "The model to load. It LEARNS the made-up examples. Default: one that is made "
                   "for the run and deleted after it")
      ->check(Utf8());
  AddLoadFlags(command, options.get());
  AddShapeFlags(command, options.get());
  command->footer(
      "With --rate each message has a time when it is due, and its latency counts from then to its "
      "answer,\n"
      "also if it could not be sent in time because the server was slow with those before: "
      "percentiles are\n"
      "free of coordinated omission. What is overdue at the end is still sent, for as long again. "
      "Without\n"
      "--rate messages go out as fast as the window lets them: that shows what the server can "
      "take, and its\n"
      "latencies are those of a full window.\n"
      "\n"
      "Before the clock runs all examples are made, and each stream has had the answer to a first "
      "message,\n"
      "which is in no figure. Examples and messages that would take more than a quarter of this "
      "machine's\n"
      "memory are refused. Client and load share this machine: watch its processor too. Of a mixed "
      "load run\n"
      "several at once on one NAME.\n"
      "\n"
      "A server that restarts is waited for (--timeout), but not by streams that teach a NAME. "
      "Ctrl-C ends a\n"
      "run early and says what was measured (exit code 130); a second one ends it at once, and "
      "leaves the\n"
      "model that was made.\n"
      "\n"
      "-o json prints one object:\n"
      "  {\"work\":\"learn\",\"model\":...,\"streams\":\"1\",\"batch\":\"100\",\"seconds\":10,\n"
      "   \"rate\":50000,\"examplesPerSecond\":50000,\"keptUp\":true,...,\n"
      "   \"latencyMicroseconds\":{\"p50\":210,...,\"max\":3100}}\n"
      "\n"
      "Examples:\n"
      "  perceptronctl bench                                        what one stream can learn\n"
      "  perceptronctl bench --rate 50000 --mistakes 0.1            how soon updates are durable\n"
      "  perceptronctl bench --work call --rate 1000 --seconds 60   a service that asks\n"
      "  perceptronctl bench spam --work predict --streams 4 -o json");
  command->callback([=] {
    const std::string wrong = Contradiction(*options);
    if (!wrong.empty()) throw CLI::ValidationError(wrong);
    *action = [=] { return BenchRun(*globals, *options).Run(); };
  });
}

}  // namespace perceptrond::client
