#include "client/ctl/commands/learn_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/connection.h"
#include "client/ctl/analysis.h"
#include "client/ctl/commands/learn_summary.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/terminal.h"
#include "core/report/format.h"

namespace perceptrond::client {
namespace {

constexpr int64_t kMostPassesUntilConverged = 1000;

}  // namespace

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
      Input::Make(options_.input, *model, true, MostPasses() > 1);
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
    if (pass > 1) input_->Rewind();
    outcome = LearnPass(pass);
    if (options_.until_converged && summary_.converged()) break;
  }
  return outcome;
}

Outcome LearnRun::LearnPass(int64_t pass) {
  input_->OnWait([this, pass] {
    // The next Push() returns any error.
    stream_->Flush().IgnoreError();
    DrawProgress(pass);
  });
  if (Outcome outcome = PushAll(pass); !outcome.ok()) return outcome;
  if (!stream_->status().ok()) return StreamFailed(stream_->status());
  if (Interrupted())
    return {kExitInterrupted,
            absl::StrCat(ErrorPrefix(), ": interrupted; all examples read so far are learned")};
  if (summary_.rows == 0) {
    return UsageError(absl::StrCat(ErrorPrefix(), ": the input contains no examples"));
  }
  return MarkPass(pass);
}

Outcome LearnRun::PushAll(int64_t pass) {
  Row row;
  while (true) {
    const absl::StatusOr<bool> more = input_->Next(&row);
    if (more.ok() && !*more) return {};
    absl::Status status = more.status();
    if (status.ok()) {
      status = stream_->Push(row, input_->tag());
      if (status.ok()) {
        ++summary_.rows;
        if (redraw_timer_.Due()) DrawProgress(pass);
        continue;
      }
      if (!stream_->status().ok()) return StreamFailed(status);
      status = input_->AtLine(status);
    }
    if (Outcome outcome = row_errors_.AddBadLine(status); !outcome.ok()) return outcome;
  }
}

Outcome LearnRun::MarkPass(int64_t pass) {
  absl::StatusOr<v1::PassSummary> summary = stream_->MarkPass();
  if (!summary.ok()) return StreamFailed(summary.status());
  // A leased producer has marked passes of earlier runs; number this run's passes from 1.
  if (lease_ != nullptr) summary->set_number(pass);
  summary_.passes.push_back(*std::move(summary));
  if (!globals_.json()) {
    Print(FormatFigures(summary_.passes.back()) + "\n");
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

void LearnRun::DrawProgress(int64_t pass) {
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  LearnPosition position;
  position.pass = pass;
  if (!options_.until_converged) position.passes = MostPasses();
  position.read = input_->fraction();
  const Progress progress =
      LearnProgress(position, stream_->totals(), absl::Now() - started_, stream_->report());
  ShowProgress(ProgressLine(progress, *columns));
}

Outcome LearnRun::Analyze() {
  v1::AnalyzeRequest request;
  request.set_name(options_.name);
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
  Print(globals_.json() ? summary_.Json() + "\n" : summary_.Text());
}

}  // namespace perceptrond::client
