// `perceptronctl learn`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/analyze.h"
#include "client/ctl/commands/learn_flags.h"
#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/commands/producer_lease.h"
#include "client/ctl/commands/shuffled_rows.h"
#include "client/ctl/input.h"
#include "client/ctl/input_thread.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "client/error.h"
#include "client/learn_stream.h"
#include "core/report/format.h"

namespace perceptrond::client {
namespace {

constexpr int64_t kMostPassesUntilConverged = 1000;

// One run: sends the input to the server, pass by pass, and sums up. Each model has a stream of its own.
// Threads: one.
class LearnRun {
 public:
  // Both must outlive the run.
  LearnRun(const Globals& globals, const LearnRunOptions& options)
      : globals_(globals),
        options_(options),
        client_(globals.Connect()),
        names_(options.names()),
        summaries_(names_.size()) {}

  // Returns the exit code.
  int Run();

 private:
  bool several() const { return names_.size() > 1; }
  // All models have.
  bool converged() const {
    return std::all_of(summaries_.begin(), summaries_.end(),
                       [](const LearnSummary& one) { return one.converged(); });
  }
  std::string ErrorPrefix() const;
  int64_t MostPasses() const;
  LearnOptions StreamOptions(size_t model);

  // Opens the models, the input and the streams.
  Outcome Open();
  Outcome OpenInput();
  absl::Status OpenStreams();
  Outcome LearnPasses();
  Outcome LearnPass(int64_t pass);
  Outcome PushAll(int64_t pass, InputThread* input);
  // The same of the rows in memory, in the order of the pass.
  Outcome PushShuffled(int64_t pass);
  Outcome Push(const InputRow& row);
  Outcome MarkPass(int64_t pass);
  // Which of several models a line is about.
  std::string LinePrefix(size_t model) const;
  Outcome Finish(Outcome outcome);
  Outcome StreamFailed(const absl::Status& status) const;

  void OnAnswer(size_t model, const LearnAnswer& answer);
  void DrawProgress(int64_t pass, std::optional<double> fraction);
  void Summarize(const Outcome& outcome);
  // Analyzes the stored examples after a successful run.
  Outcome Analyze();

  const Globals& globals_;
  const LearnRunOptions& options_;
  const Client client_;
  const std::vector<std::string> names_;
  std::unique_ptr<Input> input_;
  std::unique_ptr<ProducerLease> lease_;
  // With --shuffle, once they are read.
  std::optional<ShuffledRows> shuffled_;
  // Of each model.
  std::vector<LearnSummary> summaries_;
  // Rows sent.
  uint64_t rows_ = 0;
  std::pair<int, std::string> first_label_;
  bool has_several_labels_ = false;
  RowErrors row_errors_{options_.input.skip_bad_lines};
  Connectivity connectivity_;
  absl::Time started_;
  absl::Duration elapsed_;
  RedrawTimer redraw_timer_;
  // In the order of names_. Declared last: their threads call back into the members above.
  std::vector<std::unique_ptr<LearnStream>> streams_;
};

int LearnRun::Run() {
  const Outcome opened = Open();
  if (!opened.ok()) return opened.Report();
  const StreamInterrupt interrupt(&connectivity_, [this] {
    for (const auto& stream : streams_) stream->Cancel();
  });
  Outcome outcome = Finish(LearnPasses());
  WipeProgress();
  row_errors_.PrintCounts();
  // Read before the analysis, which may have to wait for another one.
  elapsed_ = absl::Now() - started_;
  if (outcome.ok() && options_.analyze) outcome = Analyze();
  Summarize(outcome);
  if (outcome.ok() && row_errors_.validation_errors() > 0) outcome.code = kExitRowErrors;
  const bool finished = outcome.ok() || outcome.code == kExitRowErrors;
  if (finished && options_.until_converged && !converged()) {
    outcome = {kExitNotConverged,
               absl::StrCat(ErrorPrefix(), ": not converged after ",
                            Counted(summaries_.front().passes.size(), "passes"),
                            "; --passes sets how many there may be, and 'perceptronctl "
                            "analyze' tells whether the data are separable")};
  }
  return outcome.Report();
}

std::string LearnRun::ErrorPrefix() const {
  return absl::StrCat("learn ", absl::StrJoin(names_, ", "));
}

int64_t LearnRun::MostPasses() const {
  return options_.passes.value_or(options_.until_converged ? kMostPassesUntilConverged : 1);
}

LearnOptions LearnRun::StreamOptions(size_t model) {
  LearnOptions options;
  options.numbered = !options_.unnumbered;
  options.producer_id = lease_ != nullptr ? lease_->id() : options_.producer;
  options.start_offset = options_.start_offset;
  options.passes_before = options_.passes_before;
  options.rows_per_message = options_.batch;
  options.compact = options_.compact;
  options.window_messages = options_.window;
  // The progress line shows it.
  options.include_report = model == 0 && ProgressColumns().has_value();
  options.retry = globals_.StreamRetry();
  options.response_timeout = globals_.StreamTimeout();
  options.on_result = [=, this](const LearnAnswer& answer) { OnAnswer(model, answer); };
  options.on_reconnect = [this](const absl::Status& status) { connectivity_.OnLost(status); };
  options.on_end = StopReading;
  return options;
}

Outcome LearnRun::OpenInput() {
  const auto refuse = [&](const absl::Status& status) {
    return UsageError(absl::StrCat(ErrorPrefix(), ": ", std::string(status.message())));
  };
  std::vector<v1::Model> models;
  for (const std::string& name : names_) {
    absl::StatusOr<v1::Model> model = client_.GetModel(name);
    if (!model.ok()) return Failed(ErrorPrefix(), model.status());
    const bool is_named = std::any_of(models.begin(), models.end(), [&](const v1::Model& other) {
      return other.name() == model->name();
    });
    if (is_named) {
      return refuse(absl::InvalidArgumentError(
          absl::StrCat(model->name(), " is named twice; name each model once")));
    }
    models.push_back(*std::move(model));
  }
  absl::StatusOr<std::unique_ptr<Input>> input = Input::Make(
      options_.input, models[0], true, MostPasses() > 1 && !options_.shuffle.has_value());
  if (!input.ok()) return refuse(input.status());
  input_ = *std::move(input);
  // A second pass would send the ids of the first again.
  if (input_->Has(FormatKind::kIds) && MostPasses() > 1) {
    return refuse(absl::InvalidArgumentError(
        "an id learns its prediction's label once, so --format ids takes neither --until-converged "
        "nor --passes above 1"));
  }
  for (size_t i = 1; i < models.size(); ++i) {
    if (absl::Status status = input_->AddModel(models[0], models[i]); !status.ok())
      return refuse(status);
  }
  return {};
}

Outcome LearnRun::Open() {
  if (Outcome outcome = OpenInput(); !outcome.ok()) return outcome;
  if (options_.producer.empty() && !options_.unnumbered) lease_ = std::make_unique<ProducerLease>();
  CatchInterrupts();
  if (absl::Status opened = OpenStreams(); !opened.ok()) {
    // Nothing was sent, so the producer can be used again.
    if (lease_ != nullptr) lease_->Return();
    return Failed(ErrorPrefix(), opened);
  }
  started_ = absl::Now();
  return {};
}

absl::Status LearnRun::OpenStreams() {
  for (size_t i = 0; i < names_.size(); ++i) {
    absl::StatusOr<std::unique_ptr<LearnStream>> stream =
        LearnStream::Open(client_.connection(), names_[i], StreamOptions(i));
    if (!stream.ok()) return stream.status();
    streams_.push_back(*std::move(stream));
  }
  return absl::OkStatus();
}

Outcome LearnRun::LearnPasses() {
  Outcome outcome;
  for (int64_t pass = 1; pass <= MostPasses() && outcome.ok(); ++pass) {
    if (pass > 1 && !shuffled_.has_value()) input_->Rewind();
    outcome = LearnPass(pass);
    if (options_.until_converged && converged()) break;
  }
  return outcome;
}

Outcome LearnRun::LearnPass(int64_t pass) {
  if (options_.shuffle.has_value()) {
    if (Outcome outcome = PushShuffled(pass); !outcome.ok()) return outcome;
  } else {
    InputThread input(input_.get(), [&](const InputThread& waiting) {
      // The next Push() returns any error.
      for (const auto& stream : streams_) stream->Flush().IgnoreError();
      DrawProgress(pass, waiting.fraction());
    });
    if (Outcome outcome = PushAll(pass, &input); !outcome.ok()) return outcome;
  }
  for (const auto& stream : streams_) {
    if (!stream->status().ok()) return StreamFailed(stream->status());
  }
  if (Interrupted())
    return {kExitInterrupted,
            absl::StrCat(ErrorPrefix(), ": interrupted; all examples read so far are learned")};
  if (rows_ == 0) {
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
  for (const auto& stream : streams_) {
    const absl::Status status = stream->Push(row.row, row.tag);
    if (status.ok()) continue;
    if (!stream->status().ok()) return StreamFailed(status);
    // A malformed row is so on each stream: the first one refuses it.
    return row_errors_.AddBadLine(input_->AtTag(row.tag, status));
  }
  if (rows_++ == 0) first_label_ = {row.row.label, row.row.label_name};
  has_several_labels_ = has_several_labels_ || first_label_.first != row.row.label ||
                        first_label_.second != row.row.label_name;
  return {};
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
  for (size_t i = 0; i < streams_.size(); ++i) {
    const absl::StatusOr<v1::PassSummary> marked = streams_[i]->MarkPass();
    if (!marked.ok()) return StreamFailed(marked.status());
    v1::PassSummary summary = *marked;
    // A leased producer has marked passes of earlier runs; number this run's passes from 1.
    if (lease_ != nullptr) summary.set_number(pass);
    if (!globals_.json()) PrintDone(absl::StrCat(LinePrefix(i), DescribePass(summary), "\n"));
    summaries_[i].passes.push_back(std::move(summary));
  }
  FlushOutput();
  return {};
}

std::string LearnRun::LinePrefix(size_t model) const {
  return several() ? absl::StrCat(PrintableInLine(ModelId(names_[model])), ": ") : "";
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
  std::optional<Outcome> failed;
  for (const auto& stream : streams_) {
    const absl::StatusOr<LearnTotals> totals = stream->Finish();
    if (!totals.ok() && !failed.has_value()) failed = StreamFailed(totals.status());
  }
  if (failed.has_value()) return *failed;
  if (outcome.ok() && lease_ != nullptr) lease_->Return();
  return outcome;
}

void LearnRun::OnAnswer(size_t model, const LearnAnswer& answer) {
  connectivity_.OnAnswer();
  for (const v1::RowError& error : answer.result.row_errors()) {
    if (error.row() >= answer.tags.size()) continue;
    row_errors_.AddValidationError(*input_, answer.tags[error.row()], ToAbslStatus(error.status()),
                                   LinePrefix(model));
  }
}

void LearnRun::DrawProgress(int64_t pass, std::optional<double> fraction) {
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  LearnPosition position;
  position.pass = pass;
  if (!options_.until_converged) position.passes = MostPasses();
  position.read = fraction;
  const Progress progress = LearnProgress(position, streams_.front()->totals(),
                                          absl::Now() - started_, streams_.front()->report());
  ShowProgress(ProgressLine(progress, *columns));
}

Outcome LearnRun::Analyze() {
  v1::AnalyzeRequest request;
  const std::string& opened = streams_.front()->opened().model();
  request.set_model(opened.empty() ? options_.name : opened);
  v1::AnalysisResult result;
  Outcome outcome = RunAnalysis(client_, request, &result);
  if (outcome.ok()) summaries_.front().analysis = std::move(result);
  return outcome;
}

void LearnRun::Summarize(const Outcome& outcome) {
  bool nothing = true;
  for (size_t i = 0; i < names_.size(); ++i) {
    LearnSummary& summary = summaries_[i];
    // An alias may name another one by now.
    const std::string& opened = streams_[i]->opened().model();
    summary.model = opened.empty() ? ModelName(names_[i]) : opened;
    summary.rows = rows_;
    summary.elapsed = elapsed_;
    summary.totals = streams_[i]->totals();
    summary.producer = streams_[i]->producer_id();
    summary.bad_lines = row_errors_.skipped();
    nothing &= summary.totals.examples + summary.totals.duplicates == 0;
  }
  // Without any learned example the error message suffices.
  if (nothing && !outcome.ok() && outcome.code != kExitInterrupted) return;
  // Labels that come after their predictions often come one by one.
  if (rows_ > 1 && !has_several_labels_ && !input_->Has(FormatKind::kIds)) {
    PrintNotice(
        "all examples have the same label; a model tells labels apart once it has learned others "
        "too");
  }
  std::vector<std::string> texts;
  for (size_t i = 0; i < summaries_.size(); ++i) {
    LearnSummary& summary = summaries_[i];
    // Do not call a server that has just failed to answer.
    if (streams_[i]->status().ok()) {
      const absl::StatusOr<v1::Model> now = client_.GetModel(summary.model);
      if (now.ok()) summary.now = *now;
    }
    texts.push_back(globals_.json() ? summary.Json() : summary.Text());
  }
  if (!globals_.json()) {
    PrintDone(absl::StrJoin(texts, ""));
  } else if (several()) {
    Print(JsonObject().Raw("models", JsonArray(texts)).str() + "\n");
  } else {
    Print(texts.front() + "\n");
  }
}

}  // namespace

void AddLearn(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<LearnRunOptions>();
  CLI::App* command = app->add_subcommand(
      "learn", "Train models on the examples of files, each learned exactly once");
  AddLearnFlags(command, options.get());
  command->callback([=] {
    options->input.check_dimension = options->unseen_indices == "stop";
    *action = [=] { return LearnRun(*globals, *options).Run(); };
  });
}

}  // namespace perceptrond::client
