#include "server/sessions/analyze_reactor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/model/model_analysis.h"
#include "server/rpc/backend.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"
#include "server/sessions/convert.h"
#include "server/sessions/placement.h"

namespace perceptrond {

namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::Duration kProgressInterval = absl::Milliseconds(100);
// Stored examples of no more bytes, all classes together, make a small analysis.
constexpr size_t kSmallBytes = size_t{16} << 20;
// What an analysis leaves of the time before its call's deadline.
constexpr double kAnswerShare = 0.1;
constexpr absl::Duration kMinAnswerTime = absl::Milliseconds(50);

absl::Duration TimeLimit(const v1::AnalyzeRequest& request) {
  return absl::Seconds(request.time_limit().seconds()) +
         absl::Nanoseconds(request.time_limit().nanos());
}
// What an analysis takes, in sizes of the stored examples: copies with wider numbers, and the
// solvers' own.
constexpr size_t kMemoryFactor = 6;

absl::Status NoSeparator(const ModelAnalysis& analysis) {
  const bool none = analysis.analysis.separability == Separability::kNotSeparable;
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_SEPARATOR",
                   none ? "the stored examples are not separable; the weights are unchanged"
                        : "no float32 weights that separate the stored examples were found; the "
                          "weights are unchanged");
}

}  // namespace

void AnalyzeReactor::Start(Call& call, const Backend& backend, AnalysisQueue& queue) {
  std::shared_ptr<AnalyzeReactor> reactor(new AnalyzeReactor(call, backend, queue));
  reactor->token_.set_deadline(call.cancellation().deadline());
  call.Bind(reactor);
  call.UseMemory(backend.memory);
  if (call.slow_calls().enabled()) call.timing().Start(Part::kReceive, EventTime());
  call.StartReadRequest(&reactor->incoming_);
  backend.drain.Add(
      [weak = std::weak_ptr<AnalyzeReactor>(reactor)] {
        const std::shared_ptr<AnalyzeReactor> alive = weak.lock();
        if (alive == nullptr) return;
        alive->Finish(DrainingError());
        // Only now, so that the status of the cancelled analysis comes after this one.
        alive->token_.Cancel(StopReason::kDraining);
      },
      reactor->drain_id_);
}

void AnalyzeReactor::OnReadDone(bool ok) {
  // The request is late.
  if (cancelled()) return;
  if (!ok) return Finish(MissingRequest());
  if (absl::Status status = ParseSmallRequest(incoming_, request_); !status.ok())
    return Finish(status);
  // On a worker, since the model may have to be loaded.
  Workers::Work work = [self = shared_from_this()] { self->Enqueue(); };
  const WorkSize size = PlacementOfManagement(backend_.store, request_.model()).size;
  if (!backend_.workers.TrySchedule(size, work)) Finish(ServerBusy());
}

void AnalyzeReactor::Enqueue() {
  SwitchTo(Part::kWork);
  const CancellationScope scope(&token_);
  if (absl::Status status = CheckRequest(); !status.ok()) return Finish(status);
  SwitchTo(Part::kQueue);
  if (queue_.Submit(shared_from_this())) return;
  const std::string most = absl::StrCat(queue_.options().max_jobs);
  Finish(WithRetry(MakeError(absl::StatusCode::kResourceExhausted, "ANALYSIS_QUEUE_FULL",
                             absl::StrCat(most, " analyses run or wait, the most that may (",
                                          "--max-queued-analyses): try again when one is done"),
                             {{"max_queued_analyses", most}}),
                   absl::Seconds(10)));
}

absl::Status AnalyzeReactor::CheckRequest() {
  if (absl::Status status = CheckModelName(request_.model(), "model"); !status.ok()) return status;
  if (absl::StatusOr<AnalysisOptions> options = ReadAnalysisOptions(request_); !options.ok())
    return options.status();
  const absl::Duration most = queue_.options().max_time;
  if (TimeLimit(request_) > most) {
    return MakeError(absl::StatusCode::kResourceExhausted, "ANALYSIS_TIME",
                     absl::StrCat("time_limit is above ", absl::FormatDuration(most),
                                  ", the server's --max-analysis-time: ask for less, or start the "
                                  "server with more"),
                     {{"max_analysis_time", absl::FormatDuration(most)}});
  }
  const absl::StatusOr<std::shared_ptr<Model>> model = backend_.store.Acquire(request_.model());
  if (!model.ok()) return model.status();
  const size_t classes = std::max<size_t>(1, (*model)->settings().learner.classes.max);
  const size_t bytes = (*model)->ledger().stored_examples().statistics().memory_bytes;
  small_ = bytes <= kSmallBytes / classes;
  return absl::OkStatus();
}

AnalysisMonitor::Clock::time_point AnalyzeReactor::Deadline() const {
  using Clock = AnalysisMonitor::Clock;
  const Clock::time_point now = Clock::now();
  absl::Duration limit = queue_.options().max_time;
  if (request_.has_time_limit()) limit = TimeLimit(request_);
  if (token_.deadline() == Clock::time_point::max()) return now + absl::ToChronoNanoseconds(limit);
  // The answer needs its time, too: the separator is measured once more, and sent.
  const absl::Duration left = absl::FromChrono(token_.deadline() - now);
  const absl::Duration answer = std::max(left * kAnswerShare, kMinAnswerTime);
  return now + absl::ToChronoNanoseconds(std::min(limit, left - answer));
}

void AnalyzeReactor::OnQueued(size_t jobs_ahead) {
  v1::AnalysisProgress progress;
  progress.set_stage(v1::ANALYSIS_STAGE_WAITING);
  progress.set_queue_position(static_cast<uint32_t>(jobs_ahead));
  SendProgress(progress);
}

void AnalyzeReactor::Run() {
  const CancellationScope scope(&token_);
  SwitchTo(Part::kWork);
  v1::AnalyzeResponse response;
  const absl::Status status = WithinMemory([&] { return Analyze(*response.mutable_result()); });
  MutexLock lock(&mutex_);
  if (status.ok()) writer_.Write(response);
  writer_.Finish(status);
}

absl::Status AnalyzeReactor::Analyze(v1::AnalysisResult& result) {
  const absl::Time started = absl::Now();
  absl::Duration waited;
  absl::StatusOr<std::shared_ptr<Model>> model = backend_.store.Acquire(request_.model());
  if (!model.ok()) return model.status();
  AnalysisOptions options = *ReadAnalysisOptions(request_);
  options.deadline = Deadline();
  MemoryBudget& budget = backend_.memory.budget();
  const size_t bytes =
      kMemoryFactor * (*model)->ledger().stored_examples().statistics().memory_bytes;
  if (!budget.TryReserve(MemoryUse::kAnalyses, bytes))
    return MemoryExhausted("the analysis", bytes, budget);
  const absl::Cleanup release = [&] { budget.Release(MemoryUse::kAnalyses, bytes); };
  const auto keep_going = [&](const ModelAnalysisProgress& now) {
    waited += absl::FromChrono(queue_.AwaitTurn(*this));
    if (absl::Now() - last_progress_ >= kProgressInterval) {
      last_progress_ = absl::Now();
      v1::AnalysisProgress progress;
      ToProto(now, progress);
      SendProgress(progress);
    }
    return (*model)->closed().ok();
  };
  absl::StatusOr<ModelAnalysis> analysis = AnalyzeModel(**model, options, keep_going);
  if (absl::Status closed = (*model)->closed(); !closed.ok()) return closed;
  if (!analysis.ok()) return analysis.status();
  ToProto(**model, *analysis, result);
  absl::Status replaced;
  // A client that has cancelled does not want the weights any more; the analysis is kept.
  if (request_.replace_weights() && !cancelled()) {
    replaced = analysis->separator.has_value()
                   ? ReplaceWeights(**model, *analysis->separator, result)
                   : NoSeparator(*analysis);
  }
  const absl::Status durable = backend_.store.committer().Commit(*model);
  const absl::Duration run = absl::Now() - started - waited;
  result.mutable_run_duration()->set_seconds(absl::ToInt64Seconds(run));
  result.mutable_run_duration()->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(run) % 1'000'000'000));
  return replaced.ok() ? durable : replaced;
}

absl::Status AnalyzeReactor::ReplaceWeights(Model& model, const NewWeights& separator,
                                            v1::AnalysisResult& result) {
  std::optional<uint64_t> expected_revision;
  if (request_.has_expected_revision())
    expected_revision = static_cast<uint64_t>(request_.expected_revision());
  const absl::StatusOr<uint64_t> revision = model.ReplaceWeights(separator, expected_revision);
  if (revision.ok()) result.set_new_revision(static_cast<int64_t>(*revision));
  return revision.status();
}

void AnalyzeReactor::SendProgress(const v1::AnalysisProgress& progress) {
  v1::AnalyzeResponse response;
  *response.mutable_progress() = progress;
  MutexLock lock(&mutex_);
  writer_.Write(response);
}

void AnalyzeReactor::SwitchTo(Part part) {
  MutexLock lock(&mutex_);
  // The analysis may outlive its call.
  if (writer_.finished()) return;
  call_.timing().Switch(part);
  call_.timing().model = request_.model();
}

void AnalyzeReactor::Finish(const absl::Status& status) {
  MutexLock lock(&mutex_);
  writer_.Finish(status);
}

void AnalyzeReactor::OnWriteDone(bool ok) {
  if (!ok) token_.Cancel();
  MutexLock lock(&mutex_);
  writer_.OnWriteDone(ok);
}

void AnalyzeReactor::OnRequestTimeout() {
  token_.Cancel(StopReason::kDeadline);
  Finish(RequestTimeout());
}

void AnalyzeReactor::OnCancel() {
  token_.Cancel();
  Finish(MakeError(absl::StatusCode::kCancelled, "ANALYSIS_CANCELLED", "the client cancelled"));
}

void AnalyzeReactor::OnDone() {
  token_.Cancel();
  backend_.drain.Remove(drain_id_);
}

}  // namespace perceptrond
