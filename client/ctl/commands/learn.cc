// `perceptronctl learn`.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/analyze.h"
#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/commands/producer_lease.h"
#include "client/ctl/commands/shuffled_rows.h"
#include "client/ctl/input.h"
#include "client/ctl/input_thread.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "client/learn_stream.h"
#include "core/report/format.h"

namespace perceptrond::client {
namespace {

constexpr int64_t kMostPassesUntilConverged = 1000;

struct LearnRunOptions {
  std::string name;
  InputOptions input;
  // Default 1, with until_converged 1000.
  std::optional<int64_t> passes;
  bool until_converged = false;
  // The seed.
  std::optional<uint64_t> shuffle;
  bool analyze = false;
  AnalysisFlags analysis_limits;
  size_t batch = 512;
  bool compact = false;
  size_t window = 64;
  std::string unseen_indices = "stop";
  std::string producer;
  bool unnumbered = false;
  std::optional<int64_t> start_offset;
  std::optional<int64_t> passes_before;
};

// One run: sends the input to the server, pass by pass, and sums up. Threads: one.
class LearnRun {
 public:
  // Both must outlive the run.
  LearnRun(const Globals& globals, const LearnRunOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  std::string ErrorPrefix() const;
  int64_t MostPasses() const;
  LearnOptions StreamOptions();

  // Opens the model, the input and the stream.
  Outcome Open();
  Outcome LearnPasses();
  Outcome LearnPass(int64_t pass);
  Outcome PushAll(int64_t pass, InputThread* input);
  // The same of the rows in memory, in the order of the pass.
  Outcome PushShuffled(int64_t pass);
  Outcome Push(const InputRow& row);
  Outcome MarkPass(int64_t pass);
  Outcome Finish(Outcome outcome);
  Outcome StreamFailed(const absl::Status& status) const;

  void OnAnswer(const LearnAnswer& answer);
  void DrawProgress(int64_t pass, std::optional<double> fraction);
  void Summarize(const Outcome& outcome);
  // Analyzes the stored examples after a successful run.
  Outcome Analyze();

  const Globals& globals_;
  const LearnRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  std::unique_ptr<ProducerLease> lease_;
  // With --shuffle, once they are read.
  std::optional<ShuffledRows> shuffled_;
  LearnSummary summary_;
  RowErrors row_errors_{options_.input.skip_bad_lines};
  Connectivity connectivity_;
  absl::Time started_;
  RedrawTimer redraw_timer_;
  // Declared last: its thread calls back into the members above.
  std::unique_ptr<LearnStream> stream_;
};

int LearnRun::Run() {
  const Outcome opened = Open();
  if (!opened.ok()) return opened.Report();
  const StreamInterrupt interrupt(&connectivity_, [this] { stream_->Cancel(); });
  Outcome outcome = Finish(LearnPasses());
  WipeProgress();
  row_errors_.PrintCounts();
  // Read before the analysis, which may have to wait for another one.
  summary_.elapsed = absl::Now() - started_;
  if (outcome.ok() && options_.analyze) outcome = Analyze();
  Summarize(outcome);
  if (outcome.ok() && row_errors_.validation_errors() > 0) outcome.code = kExitRowErrors;
  const bool finished = outcome.ok() || outcome.code == kExitRowErrors;
  if (finished && options_.until_converged && !summary_.converged()) {
    outcome = {kExitNotConverged,
               absl::StrCat(ErrorPrefix(), ": not converged after ", summary_.passes.size(),
                            " passes; --passes sets how many there may be, and 'perceptronctl "
                            "analyze' tells whether the data are separable")};
  }
  return outcome.Report();
}

std::string LearnRun::ErrorPrefix() const { return absl::StrCat("learn ", options_.name); }

int64_t LearnRun::MostPasses() const {
  return options_.passes.value_or(options_.until_converged ? kMostPassesUntilConverged : 1);
}

LearnOptions LearnRun::StreamOptions() {
  LearnOptions options;
  options.numbered = !options_.unnumbered;
  options.producer_id = lease_ != nullptr ? lease_->id() : options_.producer;
  options.start_offset = options_.start_offset;
  options.passes_before = options_.passes_before;
  options.rows_per_message = options_.batch;
  options.compact = options_.compact;
  options.window_messages = options_.window;
  // The progress line shows it.
  options.include_report = ProgressColumns().has_value();
  options.retry = globals_.StreamRetry();
  options.response_timeout = globals_.StreamTimeout();
  options.on_result = [this](const LearnAnswer& answer) { OnAnswer(answer); };
  options.on_reconnect = [this](const absl::Status& status) { connectivity_.OnLost(status); };
  options.on_end = StopReading;
  return options;
}

Outcome LearnRun::Open() {
  const absl::StatusOr<v1::Model> model = client_.GetModel(options_.name);
  if (!model.ok()) return Failed(ErrorPrefix(), model.status());
  absl::StatusOr<std::unique_ptr<Input>> input =
      Input::Make(options_.input, *model, true, MostPasses() > 1 && !options_.shuffle.has_value());
  if (!input.ok()) {
    return UsageError(absl::StrCat(ErrorPrefix(), ": ", std::string(input.status().message())));
  }
  input_ = *std::move(input);
  if (options_.producer.empty() && !options_.unnumbered) lease_ = std::make_unique<ProducerLease>();
  CatchInterrupts();
  absl::StatusOr<std::unique_ptr<LearnStream>> stream =
      LearnStream::Open(client_.connection(), options_.name, StreamOptions());
  if (!stream.ok()) {
    // Nothing was sent, so the producer can be used again.
    if (lease_ != nullptr) lease_->Return();
    return Failed(ErrorPrefix(), stream.status());
  }
  stream_ = *std::move(stream);
  started_ = absl::Now();
  return {};
}

Outcome LearnRun::LearnPasses() {
  Outcome outcome;
  for (int64_t pass = 1; pass <= MostPasses() && outcome.ok(); ++pass) {
    if (pass > 1 && !shuffled_.has_value()) input_->Rewind();
    outcome = LearnPass(pass);
    if (options_.until_converged && summary_.converged()) break;
  }
  return outcome;
}

Outcome LearnRun::LearnPass(int64_t pass) {
  if (options_.shuffle.has_value()) {
    if (Outcome outcome = PushShuffled(pass); !outcome.ok()) return outcome;
  } else {
    InputThread input(input_.get(), [&](const InputThread& waiting) {
      // The next Push() returns any error.
      stream_->Flush().IgnoreError();
      DrawProgress(pass, waiting.fraction());
    });
    if (Outcome outcome = PushAll(pass, &input); !outcome.ok()) return outcome;
  }
  if (!stream_->status().ok()) return StreamFailed(stream_->status());
  if (Interrupted())
    return {kExitInterrupted,
            absl::StrCat(ErrorPrefix(), ": interrupted; all examples read so far are learned")};
  if (summary_.rows == 0) {
    return UsageError(absl::StrCat(ErrorPrefix(), ": the input contains no examples"));
  }
  return MarkPass(pass);
}

Outcome LearnRun::PushAll(int64_t pass, InputThread* input) {
  while (const InputRow* read = input->Next()) {
    if (Outcome outcome = Push(*read); !outcome.ok()) return outcome;
    if (redraw_timer_.Due()) DrawProgress(pass, input->fraction());
  }
  return {};
}

Outcome LearnRun::Push(const InputRow& row) {
  if (!row.status.ok()) return row_errors_.AddBadLine(row.status);
  const absl::Status status = stream_->Push(row.row, row.tag);
  summary_.rows += status.ok() ? 1 : 0;
  if (status.ok()) return {};
  if (!stream_->status().ok()) return StreamFailed(status);
  return row_errors_.AddBadLine(input_->AtTag(row.tag, status));
}

Outcome LearnRun::PushShuffled(int64_t pass) {
  if (!shuffled_.has_value()) {
    shuffled_.emplace(*options_.shuffle);
    if (Outcome outcome = shuffled_->Read(input_.get(), &row_errors_); !outcome.ok())
      return outcome;
  }
  // The order that a run which is repeated had, whichever pass it begins with.
  shuffled_->Shuffle(options_.passes_before.value_or(0) + pass);
  for (size_t i = 0; i < shuffled_->size() && !Interrupted(); ++i) {
    if (Outcome outcome = Push((*shuffled_)[i]); !outcome.ok()) return outcome;
    if (redraw_timer_.Due())
      DrawProgress(pass, static_cast<double>(i) / static_cast<double>(shuffled_->size()));
  }
  return {};
}

Outcome LearnRun::MarkPass(int64_t pass) {
  absl::StatusOr<v1::PassSummary> summary = stream_->MarkPass();
  if (!summary.ok()) return StreamFailed(summary.status());
  // A leased producer has marked passes of earlier runs; number this run's passes from 1.
  if (lease_ != nullptr) summary->set_number(pass);
  summary_.passes.push_back(*std::move(summary));
  if (!globals_.json()) {
    PrintDone(FormatFigures(summary_.passes.back()) + "\n");
    std::fflush(stdout);
  }
  return {};
}

Outcome LearnRun::StreamFailed(const absl::Status& status) const {
  if (!Interrupted() || !absl::IsCancelled(status)) return Failed(ErrorPrefix(), status);
  return {
      kExitInterrupted,
      absl::StrCat(ErrorPrefix(),
                   ": interrupted while the connection was lost; unanswered examples are learned "
                   "when you learn the file again")};
}

// Waits until everything sent is learned, also after an error in the input.
Outcome LearnRun::Finish(Outcome outcome) {
  const absl::StatusOr<LearnTotals> totals = stream_->Finish();
  if (!totals.ok()) return StreamFailed(totals.status());
  if (outcome.ok() && lease_ != nullptr) lease_->Return();
  return outcome;
}

void LearnRun::OnAnswer(const LearnAnswer& answer) {
  connectivity_.OnAnswer();
  for (const v1::RowError& error : answer.result.row_errors()) {
    if (error.row() >= answer.tags.size()) continue;
    row_errors_.AddValidationError(*input_, answer.tags[error.row()], ToAbslStatus(error.status()));
  }
}

void LearnRun::DrawProgress(int64_t pass, std::optional<double> fraction) {
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  LearnPosition position;
  position.pass = pass;
  if (!options_.until_converged) position.passes = MostPasses();
  position.read = fraction;
  const Progress progress =
      LearnProgress(position, stream_->totals(), absl::Now() - started_, stream_->report());
  ShowProgress(ProgressLine(progress, *columns));
}

Outcome LearnRun::Analyze() {
  v1::AnalyzeRequest request;
  request.set_model(options_.name);
  options_.analysis_limits.Fill(&request);
  v1::AnalysisResult result;
  Outcome outcome = RunAnalysis(client_, request, &result);
  if (outcome.ok()) summary_.analysis = std::move(result);
  return outcome;
}

void LearnRun::Summarize(const Outcome& outcome) {
  summary_.model = ModelName(options_.name);
  summary_.totals = stream_->totals();
  summary_.producer = stream_->producer_id();
  summary_.bad_lines = row_errors_.skipped();
  // Without any learned example the error message suffices.
  const bool nothing = summary_.totals.examples + summary_.totals.duplicates == 0;
  if (nothing && !outcome.ok() && outcome.code != kExitInterrupted) return;
  // Do not call a server that has just failed to answer.
  if (stream_->status().ok()) {
    const absl::StatusOr<v1::Model> now = client_.GetModel(options_.name);
    if (now.ok()) summary_.now = *now;
  }
  if (globals_.json()) {
    Print(summary_.Json() + "\n");
  } else {
    PrintDone(summary_.Text());
  }
}

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
  auto* analyze = command->add_flag(
      "--analyze", options->analyze,
      "Then analyze the stored examples: the best margin and the bound on updates (see "
      "'perceptronctl analyze')");
  options->analysis_limits.AddTo(command, "analyze-", analyze);
  command->add_option("--batch", options->batch, "Examples per message")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_flag("--compact", options->compact,
                    "Send fewer bytes for more work: faster over networks of about 1 Gbit/s and "
                    "less");
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
  command
      ->add_option("--unseen-indices", options->unseen_indices,
                   "Dense models, at an example beyond the dimension: stop, since the others alone "
                   "would bias the model, or refuse it alone, as a validation error")
      ->check(CLI::IsMember({"stop", "refuse"}))
      ->capture_default_str();
  command->callback([=] {
    options->input.check_dimension = options->unseen_indices == "stop";
    *action = [=] { return LearnRun(*globals, *options).Run(); };
  });
}

}  // namespace perceptrond::client
