// `perceptronctl predict`: sends rows of the input to the server and prints a line for each answer.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/predict_summary.h"
#include "client/ctl/input.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/ctl/terminal.h"
#include "client/predict_stream.h"

namespace perceptrond::client {

struct PredictRunOptions {
  std::string name;
  InputOptions input;
  bool summary_only = false;
  bool all_scores = false;
  int64_t min_revision = 0;
  size_t batch = 512;
};

// Answers come on the stream's thread, and only there is anything counted or printed until the
// stream has ended. Threads: one.
class PredictRun {
 public:
  // Both must outlive the run.
  PredictRun(const Globals& globals, const PredictRunOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  std::string Doing() const;
  PredictOptions StreamOptions();

  // Model, input, stream.
  Outcome Open();
  Outcome PushAll();
  Outcome Finish(Outcome outcome);
  Outcome StreamFailed(const absl::Status& status) const;

  void TakeAnswer(const PredictAnswer& answer);
  // Counts it, and prints its line.
  void TakeRow(const v1::PredictResponse& response, int row, const v1::RowError* error,
               uint64_t tag);
  void DrawProgress();
  void Summarize(const Outcome& outcome);
  // The number of the row's class, if it has one.
  int ActualLabel(const Row& row);
  // Takes over the names of the model's classes.
  void TakeNames(const v1::Model& model);

  const Globals& globals_;
  const PredictRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  PredictSummary summary_;
  Complaints complaints_{options_.input.skip_bad_lines};
  Connectivity connectivity_;
  bool several_classes_ = false;
  // As they were when the run began.
  absl::flat_hash_map<std::string, int> class_numbers_;
  // Read while answers come; everything else about them is in summary_.
  std::atomic<uint64_t> answered_ = 0;
  absl::Time started_;
  DrawPace pace_;
  // Last: its thread calls back into all of the above.
  std::unique_ptr<PredictStream> stream_;
};

namespace {

// A row's label comes back with its answer, in the tag's lowest bits: two more than it, or 0.
constexpr int kLabelBits = 15;
constexpr int kMostLabels = (1 << kLabelBits) - 2;
static_assert(kNoClassOfTheModel < kMostLabels);

uint64_t TagWithLabel(uint64_t tag, int label) {
  const int bits = label == Row::kNoLabel || label >= kMostLabels ? 0 : label + 2;
  return tag << kLabelBits | static_cast<uint64_t>(bits);
}
int LabelOf(uint64_t tag) {
  const auto bits = static_cast<int>(tag & ((1U << kLabelBits) - 1));
  return bits == 0 ? Row::kNoLabel : bits - 2;
}

}  // namespace

int PredictRun::Run() {
  const Outcome opened = Open();
  if (!opened.ok()) return opened.Report();
  const StreamInterrupt interrupt(&connectivity_, [this] { stream_->Cancel(); });
  Outcome outcome = Finish(PushAll());
  WipeProgress();
  complaints_.ReportCounts();
  Summarize(outcome);
  if (outcome.ok() && complaints_.refused() > 0) outcome.code = kExitRefused;
  return outcome.Report();
}

std::string PredictRun::Doing() const { return absl::StrCat("predict ", options_.name); }

PredictOptions PredictRun::StreamOptions() {
  PredictOptions options;
  options.rows_per_message = options_.batch;
  options.min_revision = options_.min_revision;
  options.all_scores = options_.all_scores;
  options.retry = globals_.StreamRetry();
  options.patience = globals_.StreamTimeout();
  options.on_answer = [this](const PredictAnswer& answer) { TakeAnswer(answer); };
  options.on_reconnect = [this](const absl::Status& status) { connectivity_.Lost(status); };
  options.on_end = StopReading;
  return options;
}

Outcome PredictRun::Open() {
  const absl::StatusOr<v1::Model> model = client_.GetModel(options_.name);
  if (!model.ok()) return Failed(Doing(), model.status());
  several_classes_ = model->learner().has_classes();
  TakeNames(*model);
  absl::StatusOr<std::unique_ptr<Input>> input = Input::Make(options_.input, *model, false, false);
  if (!input.ok()) {
    return WrongUsage(absl::StrCat(Doing(), ": ", std::string(input.status().message())));
  }
  input_ = *std::move(input);
  CatchInterrupts();
  stream_ = std::make_unique<PredictStream>(client_.connection(), options_.name, StreamOptions());
  // An error shows with the next row.
  input_->OnWait([this] { stream_->Flush().IgnoreError(); });
  started_ = absl::Now();
  return {};
}

void PredictRun::TakeNames(const v1::Model& model) {
  summary_.label_names.assign(model.label_names().begin(), model.label_names().end());
  for (const std::string& name : model.label_names())
    class_numbers_.emplace(name, static_cast<int>(class_numbers_.size()));
}

int PredictRun::ActualLabel(const Row& row) {
  if (row.label_name.empty()) return row.label;
  if (const auto known = class_numbers_.find(row.label_name); known != class_numbers_.end())
    return known->second;
  return kNoClassOfTheModel;
}

Outcome PredictRun::PushAll() {
  Row row;
  while (true) {
    const absl::StatusOr<bool> more = input_->Next(&row);
    if (more.ok() && !*more) break;
    absl::Status status = more.status();
    if (status.ok()) {
      const uint64_t tag = TagWithLabel(input_->tag(), ActualLabel(row));
      row.label = Row::kNoLabel;
      row.label_name.clear();
      status = stream_->Push(row, tag);
      if (status.ok()) {
        if (pace_.Due()) DrawProgress();
        continue;
      }
      if (!absl::IsInvalidArgument(status)) return StreamFailed(status);
      status = input_->AtLine(status);
    }
    if (Outcome outcome = complaints_.Take(status); !outcome.ok()) return outcome;
  }
  if (Interrupted()) return {kExitInterrupted, absl::StrCat(Doing(), ": interrupted")};
  return {};
}

Outcome PredictRun::StreamFailed(const absl::Status& status) const {
  if (!Interrupted() || !absl::IsCancelled(status)) return Failed(Doing(), status);
  return {
      kExitInterrupted,
      absl::StrCat(Doing(), ": interrupted while the server was away; some answers are missing")};
}

Outcome PredictRun::Finish(Outcome outcome) {
  const absl::Status status = stream_->Finish();
  return status.ok() ? outcome : StreamFailed(status);
}

void PredictRun::TakeAnswer(const PredictAnswer& answer) {
  connectivity_.Answered();
  const v1::PredictResponse& response = answer.response;
  summary_.revision = std::max(summary_.revision, response.revision());
  int next_error = 0;
  for (int row = 0; row < static_cast<int>(answer.tags.size()); ++row) {
    const bool refused = next_error < response.errors_size() &&
                         response.errors(next_error).row() == static_cast<uint32_t>(row);
    TakeRow(response, row, refused ? &response.errors(next_error++) : nullptr,
            answer.tags[static_cast<size_t>(row)]);
  }
  answered_ = summary_.examples;
  // Whoever types examples in, or follows a log, waits for these.
  std::fflush(stdout);
}

void PredictRun::TakeRow(const v1::PredictResponse& response, int row, const v1::RowError* error,
                         uint64_t tag) {
  ++summary_.examples;
  if (error != nullptr) {
    complaints_.Refused(*input_, tag >> kLabelBits, ToAbslStatus(error->status()));
  } else if (const int actual = LabelOf(tag); actual != Row::kNoLabel) {
    if (several_classes_) {
      summary_.classes.Add(actual, response.labels(row));
    } else {
      summary_.confusion.Add(actual, response.labels(row));
      summary_.margin.Add(actual, row < response.distances_size()
                                      ? std::optional<float>(response.distances(row))
                                      : std::nullopt);
    }
  }
  if (options_.summary_only) return;
  // Of refused rows too, so that lines go on matching the input's.
  const v1::PredictResponse own = AnswerToRow(response, row, error);
  if (globals_.json()) {
    Print(PredictionJsonLine(own));
  } else {
    Print(several_classes_ ? ClassPredictionLine(own, summary_.label_names)
                           : PredictionLine(own, summary_.label_names));
  }
}

void PredictRun::DrawProgress() {
  // On one terminal with them, the predictions themselves show how far it is.
  if (!options_.summary_only && isatty(STDOUT_FILENO) == 1) return;
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  const uint64_t answered = answered_;
  ShowProgress(ProgressLine(
      {input_->fraction(),
       "",
       {absl::StrCat(Grouped(answered), " examples"), Rate(answered, absl::Now() - started_)}},
      *columns));
}

void PredictRun::Summarize(const Outcome& outcome) {
  summary_.refused = complaints_.refused();
  summary_.bad_lines = complaints_.skipped();
  summary_.partial = !outcome.ok();
  // Where nothing was predicted the error says it all.
  if (summary_.partial && summary_.examples == 0) return;
  std::fflush(stdout);
  if (options_.summary_only && globals_.json()) {
    Print(summary_.Json() + "\n");
  } else {
    Write(options_.summary_only ? stdout : stderr, summary_.Text());
  }
}

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
