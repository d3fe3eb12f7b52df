// `perceptronctl predict`: sends rows of the input to the server and prints a line for each answer.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/answering_model.h"
#include "client/ctl/dimension.h"
#include "client/ctl/evaluation.h"
#include "client/ctl/input.h"
#include "client/ctl/input_thread.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/ctl/report.h"
#include "client/ctl/terminal.h"
#include "client/predict_stream.h"
#include "core/sync/mutex.h"

namespace perceptrond::client {
namespace {

// Tags of rows say where a row is in the input, and its label. The lowest bits hold the label plus 2, or 0 for none.
constexpr int kLabelBits = 15;
constexpr int kMostLabels = (1 << kLabelBits) - 2;
static_assert(kUnknownClass < kMostLabels);

uint64_t TagWithLabel(uint64_t tag, int label) {
  const int bits = label == Row::kNoLabel || label >= kMostLabels ? 0 : label + 2;
  return tag << kLabelBits | static_cast<uint64_t>(bits);
}
int LabelOf(uint64_t tag) {
  const auto bits = static_cast<int>(tag & ((1U << kLabelBits) - 1));
  return bits == 0 ? Row::kNoLabel : bits - 2;
}
// Input::tag().
uint64_t WithoutLabel(uint64_t tag) { return tag >> kLabelBits; }

struct PredictRunOptions {
  std::string name;
  InputOptions input;
  bool summary_only = false;
  bool include_class_scores = false;
  bool include_prediction_ids = false;
  std::string unseen_indices = "refuse";
  std::string unknown_names = "ignore";
  int64_t min_revision = 0;
  size_t batch = 512;
  bool compact = false;
};

// Answers arrive on the stream's thread; until the stream ends, only that thread counts and prints.
// Threads: one.
class PredictRun {
 public:
  // Both must outlive the run.
  PredictRun(const Globals& globals, const PredictRunOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  std::string ErrorPrefix() const;
  PredictOptions StreamOptions();

  // Opens the model, the input and the stream.
  Outcome Open();
  Outcome PushAll();
  // The row's tag, with its label.
  uint64_t TagOf(const InputRow& read);
  Outcome Finish(Outcome outcome);
  Outcome StreamFailed(const absl::Status& status) const;

  void OnAnswer(const PredictAnswer& answer);
  // Counts a row and prints its line.
  void OnRow(const v1::PredictResponse& response, int row, const v1::RowError* error, uint64_t tag);
  // Ends the run at a labelled row if the model that answered has other labels than its label was read by.
  bool HasOtherLabels(uint64_t tag);
  // Has a line printed for each of `lines` lines without a prediction, after the rows that were pushed.
  void AddLines(uint64_t lines) ABSL_LOCKS_EXCLUDED(mutex_);
  // Prints those of them whose turn has come.
  void PrintLines() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that another model answers, from the row with this tag on.
  void OnOtherModel(uint64_t tag);
  void PrintHeader(bool has_probabilities);
  void DrawProgress(const InputThread& input);
  void Summarize(const Outcome& outcome);
  void ReadNames();

  const Globals& globals_;
  const PredictRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  PredictSummary summary_;
  RowErrors row_errors_{options_.input.skip_bad_lines};
  Connectivity connectivity_;
  AnsweringModel answering_{client_, options_.name};
  // Why the stream's answers are not taken any more.
  absl::Status answers_error_;
  bool has_header_ = false;
  // The first label that is none of the model's, with its line.
  std::string first_unknown_label_;
  bool hashed_ = false;
  // What examples are cut to; absent: nothing is cut.
  std::optional<uint64_t> index_limit_;
  uint64_t cut_ = 0;
  uint64_t pushed_ = 0;
  Mutex mutex_;
  // Lines without a prediction: after how many rows, and how many.
  std::deque<std::pair<uint64_t, uint64_t>> lines_ ABSL_GUARDED_BY(mutex_);
  // Rows that were printed.
  uint64_t printed_ ABSL_GUARDED_BY(mutex_) = 0;
  // Answered rows, for the progress line, which another thread reads.
  std::atomic<uint64_t> answered_ = 0;
  absl::Time started_;
  RedrawTimer redraw_timer_;
  // Declared last: its thread calls back into the members above.
  std::unique_ptr<PredictStream> stream_;
};

constexpr char kPredictFooter[] =
    R"(Prints a line per example: label, score, signed distance from the boundary and, for learners with
probabilities, the probability of +1, under a header on a terminal. For multiclass models the
label is the class, the distance is the margin to the next class, and the probability is that of
the class. Each line of the input, or csv record, has a line, "?" where there is no prediction
(a blank line, a comment, a malformed or refused example), except headers, lines of --skip-lines
and blank lines at a file's end. Labels in the input are not required; a label that the model does
not have counts as an error. If there are labels, a summary on standard error
has the confusion matrix, precision, recall and F1 (of +1, or of each class and their mean); for
two labels also the AUC and the margin of the data: the smallest label x distance, negative if an
example is wrong; and with probabilities their calibration: expected calibration error, a table
of ten intervals, Brier score and log loss, the mean of -ln of the label's probability, which
counts as at least 2^-23 (as in scikit-learn, for float32). The Brier score is the mean of
(p - y)^2, p the probability of +1 and y 1 or 0; of several classes, with --summary, the mean of
its sum over the classes, from 0 to 2. A score of 0 counts as in learning: as an error, unless the
model's --tie says otherwise. Label 0 means -1 if the other labels are all +1, else no label. The
AUC is exact up to 4194304 labelled examples; of more it is counted in 2^20 intervals of the
score, and what it may be off by is stated.

With -o json each line is a perceptron.v1.PredictResponse for one example:
  {"scores":[2.5],"predictedLabels":[1],"distances":[0.7],"probabilities":[],"classScores":[],
   "classProbabilities":[],"revision":"366","epoch":"1796094110796673","age":"0","componentRevisions":[],
   "rowErrors":[],"predictionIds":[],"nameTableSize":0,"model":"models/iris"}
distances is empty while all weights are zero; rowErrors holds the validation error of the example, or says
that the line has none (score NaN, label 0). Classes are numbers; 'get -o json' prints their names in labelNames.
--summary -o json prints one object, from errors on only if the input has labels:
  {"examples":"9","labelled":"9","rowErrors":"0","badLines":"0","unknownLabels":"0","revision":"366",
   "errors":"1","errorRate":0.11,"majorityErrorRate":0.22,"truePositives":"2",...,"zeroScores":"0",
   "precision":0.67,"recall":1,"f1":0.8,"auc":0.93,"margin":-0.7}
Without a denominator a figure is absent. With probabilities brierScore, logLoss,
expectedCalibrationError and calibration are in it; with several classes macroPrecision,
macroRecall, macroF1, classes and confusion (predicted -1: no class yet, -2: equal scores).
Counts are strings, like all 64-bit numbers in protobuf's JSON. 'perceptronctl learn --help'
describes the formats and --timeout.

Examples:
  perceptronctl predict iris iris.test --format svmlight --index-base 1
  perceptronctl predict iris iris.test --format svmlight --index-base 1 -o json | jq '.predictedLabels[0]'
  perceptronctl predict spam sms.tsv --skip-lines 1 --summary
  echo 'Win a prize now' | perceptronctl predict spam - --format text)";

// Most scores of classes that the server puts into an answer.
constexpr size_t kMostScores = 1 << 20;

int PredictRun::Run() {
  const Outcome opened = Open();
  if (!opened.ok()) return opened.Report();
  const StreamInterrupt interrupt(&connectivity_, [this] { stream_->Cancel(); });
  Outcome outcome = Finish(PushAll());
  WipeProgress();
  row_errors_.PrintCounts();
  Summarize(outcome);
  if (outcome.ok() && row_errors_.validation_errors() > 0) outcome.code = kExitRowErrors;
  return outcome.Report();
}

std::string PredictRun::ErrorPrefix() const { return absl::StrCat("predict ", options_.name); }

PredictOptions PredictRun::StreamOptions() {
  PredictOptions options;
  // Brier score and log loss of several classes need each probability.
  const v1::Learner& learner = answering_.model().learner();
  options.include_class_scores =
      options_.include_class_scores ||
      (options_.summary_only && answering_.multiclass() && learner.has_logistic_regression());
  options.rows_per_message = options_.batch;
  if (options.include_class_scores && answering_.multiclass()) {
    options.rows_per_message = std::clamp<size_t>(
        kMostScores / std::max(learner.classes().max_classes(), 1U), 1, options_.batch);
  }
  options.compact = options_.compact;
  options.min_revision = options_.min_revision;
  options.refuse_unknown_features = options_.unknown_names == "refuse";
  options.include_prediction_ids = options_.include_prediction_ids;
  options.retry = globals_.StreamRetry();
  options.response_timeout = globals_.StreamTimeout();
  options.on_answer = [this](const PredictAnswer& answer) { OnAnswer(answer); };
  options.on_reconnect = [this](const absl::Status& status) { connectivity_.OnLost(status); };
  options.on_end = StopReading;
  return options;
}

Outcome PredictRun::Open() {
  if (absl::Status status = answering_.Open(); !status.ok()) return Failed(ErrorPrefix(), status);
  const v1::Model& model = answering_.model();
  ReadNames();
  const v1::FeatureSpace& space = ExampleSpace(model.feature_space());
  hashed_ = space.has_hashed();
  if (options_.unseen_indices == "ignore") index_limit_ = IndexLimit(space);
  if (absl::Status status = CheckKnowsNames(space);
      options_.unknown_names == "refuse" && !status.ok())
    return UsageError(absl::StrCat(ErrorPrefix(), ": ", std::string(status.message())));
  absl::StatusOr<std::unique_ptr<Input>> input =
      Input::Make(options_.input, model, false, false, &client_);
  if (!input.ok())
    return UsageError(absl::StrCat(ErrorPrefix(), ": ", std::string(input.status().message())));
  input_ = *std::move(input);
  CatchInterrupts();
  stream_ = std::make_unique<PredictStream>(client_.connection(), options_.name, StreamOptions());
  started_ = absl::Now();
  return {};
}

void PredictRun::ReadNames() {
  summary_.tie_rule = answering_.model().learner().tie_rule();
  summary_.label_names = answering_.label_names();
  summary_.classes_known = ClassesKnown(answering_.model());
}

Outcome PredictRun::PushAll() {
  InputThread input(input_.get(), [this](const InputThread&) {
    // The next Push() returns any error.
    stream_->Flush().IgnoreError();
    PrintLines();
    FlushOutput();
  });
  while (InputRow* read = input.Next()) {
    AddLines(read->lines_without_example);
    absl::Status status = read->status;
    if (status.ok()) {
      Row& row = read->row;
      const uint64_t tag = TagOf(*read);
      row.label = Row::kNoLabel;
      row.label_name.clear();
      if (index_limit_.has_value() && DropUnseen(*index_limit_, &row)) ++cut_;
      status = stream_->Push(row, tag);
      if (status.ok()) {
        ++pushed_;
        if (redraw_timer_.Due()) DrawProgress(input);
        continue;
      }
      if (absl::Status failed = stream_->status(); !failed.ok()) return StreamFailed(failed);
      status = input_->AtTag(read->tag, status);
    }
    if (Outcome outcome = row_errors_.AddBadLine(status); !outcome.ok()) return outcome;
    AddLines(1);
  }
  if (Interrupted()) return {kExitInterrupted, absl::StrCat(ErrorPrefix(), ": interrupted")};
  return {};
}

uint64_t PredictRun::TagOf(const InputRow& read) {
  const int label = read.label_status.ok() ? answering_.LabelOf(read.row) : kUnknownClass;
  if (label == kUnknownClass && first_unknown_label_.empty()) {
    const absl::Status status =
        read.label_status.ok()
            ? absl::InvalidArgumentError(
                  absl::StrCat("label \"", read.row.label_name, "\" is not a class of the model"))
            : read.label_status;
    first_unknown_label_ = std::string(input_->AtTag(read.tag, status).message());
  }
  return TagWithLabel(read.tag, label);
}

void PredictRun::AddLines(uint64_t lines) {
  if (lines == 0 || options_.summary_only) return;
  MutexLock lock(&mutex_);
  if (lines_.empty() || lines_.back().first != pushed_) lines_.emplace_back(pushed_, 0);
  lines_.back().second += lines;
}

void PredictRun::PrintLines() {
  MutexLock lock(&mutex_);
  for (; !lines_.empty() && lines_.front().first <= printed_; lines_.pop_front()) {
    for (; lines_.front().second > 0; --lines_.front().second)
      Print(globals_.json() ? PredictionJsonLine(NoPrediction(answering_.model().name()))
                            : NoPredictionLine());
  }
}

Outcome PredictRun::StreamFailed(const absl::Status& status) const {
  if (!Interrupted() || !absl::IsCancelled(status)) return Failed(ErrorPrefix(), status);
  return {kExitInterrupted,
          absl::StrCat(ErrorPrefix(),
                       ": interrupted while the connection was lost; some answers are missing")};
}

Outcome PredictRun::Finish(Outcome outcome) {
  absl::Status status = stream_->Finish();
  if (!answers_error_.ok()) status = answers_error_;
  if (!status.ok()) return StreamFailed(status);
  PrintLines();
  return outcome;
}

void PredictRun::OnAnswer(const PredictAnswer& answer) {
  connectivity_.OnAnswer();
  if (!answers_error_.ok()) return;
  const v1::PredictResponse& response = answer.response;
  const absl::StatusOr<bool> is_another = answering_.Follow(response);
  answers_error_ = is_another.status();
  if (is_another.ok() && *is_another) OnOtherModel(answer.tags.front());
  summary_.revision = std::max(summary_.revision, response.revision());
  int next_error = 0;
  for (int row = 0; row < static_cast<int>(answer.tags.size()) && answers_error_.ok(); ++row) {
    const bool has_error = next_error < response.row_errors_size() &&
                           response.row_errors(next_error).row() == static_cast<uint32_t>(row);
    OnRow(response, row, has_error ? &response.row_errors(next_error++) : nullptr,
          answer.tags[static_cast<size_t>(row)]);
  }
  answered_ = summary_.examples;
  PrintLines();
  // Interactive users and followed logs need each answer at once. After an error the rest is not
  // requested.
  if (FlushOutput() != 0 || !answers_error_.ok()) input_->Stop();
}

void PredictRun::OnOtherModel(uint64_t tag) {
  const v1::Model& model = answering_.model();
  PrintNotice(absl::StrCat(input_->Where(WithoutLabel(tag)),
                           ": from here on another model answers: ", model.name()));
  ReadNames();
  summary_.later_model = model.name();
  summary_.revision = 0;
  has_header_ = false;
  if (index_limit_.has_value() && IndexLimit(ExampleSpace(model.feature_space())) != index_limit_) {
    answers_error_ = absl::FailedPreconditionError(absl::StrCat(
        model.name(), " has not the ", hashed_ ? "number of slots " : "dimension ", *index_limit_,
        ", which examples were cut to by --unseen-indices ignore; run the command again"));
  }
}

bool PredictRun::HasOtherLabels(uint64_t tag) {
  if (!answering_.HasNot(LabelOf(tag))) return false;
  answers_error_ = absl::FailedPreconditionError(absl::StrCat(
      input_->Where(WithoutLabel(tag)), ": the label is one of the model that ", options_.name,
      " was at first, and ", answering_.model().name(),
      " has others; give the rest of the input to another run, or leave the labels out"));
  return true;
}

void PredictRun::OnRow(const v1::PredictResponse& response, int row, const v1::RowError* error,
                       uint64_t tag) {
  if (HasOtherLabels(tag)) return;
  ++summary_.examples;
  if (error != nullptr) {
    row_errors_.AddValidationError(*input_, WithoutLabel(tag), ToAbslStatus(error->status()));
  } else if (const int actual = LabelOf(tag);
             actual != Row::kNoLabel && answering_.has_first_labels()) {
    const LabelledPrediction labelled = MakeLabelled(response, row, actual);
    answering_.multiclass() ? summary_.AddClass(labelled) : summary_.AddTwoLabels(labelled);
  }
  if (options_.summary_only) return;
  PrintLines();
  // Rows with errors have a line too, so that output and input lines match.
  v1::PredictResponse own = AnswerToRow(response, row, error);
  if (globals_.json()) {
    own.set_model(answering_.model().name());
    Print(PredictionJsonLine(own));
  } else {
    PrintHeader(own.probabilities_size() > 0);
    Print(answering_.multiclass() ? ClassPredictionLine(own, summary_.label_names)
                                  : PredictionLine(own, summary_.label_names));
  }
  MutexLock lock(&mutex_);
  ++printed_;
}

// For people; what reads a pipe or a file knows the columns.
void PredictRun::PrintHeader(bool has_probabilities) {
  if (has_header_) return;
  has_header_ = true;
  if (isatty(STDOUT_FILENO) != 1 || IsQuiet()) return;
  Print(PredictionHeader(answering_.multiclass(), summary_.label_names, has_probabilities,
                         options_.include_prediction_ids));
}

void PredictRun::DrawProgress(const InputThread& input) {
  // Predictions on the same terminal show the progress themselves.
  if (!options_.summary_only && isatty(STDOUT_FILENO) == 1) return;
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  const uint64_t answered = answered_;
  ShowProgress(
      ProgressLine({input.fraction(),
                    "",
                    {Counted(answered, "examples"), Rate(answered, absl::Now() - started_)}},
                   *columns));
}

void PredictRun::Summarize(const Outcome& outcome) {
  summary_.row_errors = row_errors_.validation_errors();
  summary_.bad_lines = row_errors_.skipped();
  summary_.partial = !outcome.ok();
  // Without any prediction the error message suffices.
  if (summary_.partial && summary_.examples == 0) return;
  FlushOutput();
  if (cut_ > 0) {
    PrintNotice(absl::StrCat(
        Counted(cut_, "examples"), cut_ == 1 ? " has" : " have", " features beyond the model's ",
        hashed_ ? "number of slots " : "dimension ", *index_limit_, ", which were ignored"));
  }
  if (const std::string notice = summary_.DecideZeroLabels(); !notice.empty()) PrintNotice(notice);
  // Where any text may be a label, the text before the tab is one.
  const bool any_label =
      answering_.model().learner().classes().new_classes() == v1::Classes::NEW_CLASSES_NAMED;
  if (input_->Has(FormatKind::kText) && !any_label) summary_.DropLabelsIfAllAreUnknown();
  if (summary_.unknown_labels > 0) {
    PrintStderr(absl::StrCat(Counted(summary_.unknown_labels, "labels"),
                             summary_.unknown_labels == 1 ? " is" : " are",
                             " none of the model's; each counts as an error, and the first is in ",
                             first_unknown_label_));
  }
  if (!options_.summary_only && IsQuiet()) return;
  if (options_.summary_only && globals_.json()) {
    Print(summary_.Json() + "\n");
  } else {
    Write(options_.summary_only ? stdout : stderr, summary_.Text());
  }
}

}  // namespace

void AddPredict(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<PredictRunOptions>();
  CLI::App* command = app->add_subcommand("predict", "Predict the labels of examples in files");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  command->add_option("FILE", options->input.files, "Files of examples; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  CLI::Option* const summary = command->add_flag("--summary", options->summary_only,
                                                 "Print only the summary, on standard output");
  command->add_flag(
      "--all-scores", options->include_class_scores,
      "Multiclass models with -o json: print the scores of all classes, as classScores");
  command
      ->add_flag("--ids", options->include_prediction_ids,
                 "Print the id of each prediction last, by which 'learn --format ids' learns its "
                 "label later; for models created with --keep-predictions")
      ->excludes(summary);
  command
      ->add_option(
          "--unseen-indices", options->unseen_indices,
          "What to do with an example that has indices beyond the dimension, or the slots of "
          "--hash-bits: refuse it, as a validation error, or ignore these indices")
      ->check(CLI::IsMember({"refuse", "ignore"}))
      ->capture_default_str();
  command
      ->add_option("--unknown-names", options->unknown_names,
                   "With models of --named: what to do with names that the model has not learned:\n"
                   "ignore them, or refuse the example, as a validation error")
      ->check(CLI::IsMember({"ignore", "refuse"}))
      ->capture_default_str();
  command->add_option("--min-revision", options->min_revision,
                      "Fail if the model is older than this revision");
  AddMessageFlags(command, &options->batch, &options->compact);
  command->footer(kPredictFooter);
  options->input.keep_zero_labels = true;
  command->callback([=] { *action = [=] { return PredictRun(*globals, *options).Run(); }; });
}

}  // namespace perceptrond::client
