#include "server/sessions/analyze_reactor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/model/model_analysis.h"
#include "server/rpc/backend.h"
#include "server/rpc/message.h"
#include "server/sessions/convert.h"

namespace perceptrond {

AnalysisQueue::~AnalysisQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void AnalysisQueue::Submit(std::shared_ptr<Job> job) {
  size_t jobs_ahead = 0;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    jobs_ahead = jobs_.size();
    jobs_.push_back(job);
  }
  if (jobs_ahead > 0) job->OnQueued(jobs_ahead);
}

void AnalysisQueue::DropCancelled() {
  if (jobs_.empty()) return;
  // The queue's thread removes the first itself.
  jobs_.erase(std::remove_if(jobs_.begin() + 1, jobs_.end(),
                             [](const std::shared_ptr<Job>& job) { return job->cancelled(); }),
              jobs_.end());
}

void AnalysisQueue::NotifyPositions() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    MutexLock lock(&mutex_);
    DropCancelled();
    jobs.assign(jobs_.begin(), jobs_.end());
  }
  for (size_t i = 1; i < jobs.size(); ++i) jobs[i]->OnQueued(i);
}

void AnalysisQueue::RunAll() {
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !jobs_.empty();
  };
  while (true) {
    std::shared_ptr<Job> job;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_) return jobs_.clear();
      job = jobs_.front();
    }
    NotifyPositions();
    if (!job->cancelled()) job->Run();
    MutexLock lock(&mutex_);
    jobs_.pop_front();
  }
}

namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::Duration kProgressInterval = absl::Milliseconds(100);

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
  call.Bind(reactor);
  if (call.slow_calls().enabled()) call.timing().Start(Part::kReceive, EventTime());
  call.StartRead(&reactor->incoming_);
  backend.drain.Add(
      [weak = std::weak_ptr<AnalyzeReactor>(reactor)] {
        const std::shared_ptr<AnalyzeReactor> alive = weak.lock();
        if (alive == nullptr) return;
        alive->Finish(DrainingError());
        // Only now, so that the status of the cancelled analysis comes after this one.
        alive->cancelled_ = true;
      },
      reactor->drain_id_);
}

void AnalyzeReactor::OnReadDone(bool ok) {
  if (!ok) return Finish(MissingRequest());
  // On a worker, since the model may have to be loaded.
  backend_.workers.Schedule([self = shared_from_this()] { self->Enqueue(); });
}

void AnalyzeReactor::Enqueue() {
  SwitchTo(Part::kWork);
  const absl::Status status = ReadRequest();
  if (!status.ok()) return Finish(status);
  SwitchTo(Part::kQueue);
  queue_.Submit(shared_from_this());
}

absl::Status AnalyzeReactor::ReadRequest() {
  if (absl::Status status = ParseMessage(incoming_, backend_.max_message_bytes, request_);
      !status.ok())
    return status;
  if (absl::Status status = CheckModelName(request_.model(), "model"); !status.ok()) return status;
  if (absl::StatusOr<AnalysisOptions> options = ReadAnalysisOptions(request_); !options.ok())
    return options.status();
  return backend_.store.Acquire(request_.model()).status();
}

void AnalyzeReactor::OnQueued(size_t jobs_ahead) {
  v1::AnalysisProgress progress;
  progress.set_stage(v1::ANALYSIS_STAGE_WAITING);
  progress.set_queue_position(static_cast<uint32_t>(jobs_ahead));
  SendProgress(progress);
}

void AnalyzeReactor::Run() {
  SwitchTo(Part::kWork);
  v1::AnalyzeResponse response;
  const absl::Status status = Analyze(*response.mutable_result());
  MutexLock lock(&mutex_);
  if (status.ok()) writer_.Write(response);
  writer_.Finish(status);
}

absl::Status AnalyzeReactor::Analyze(v1::AnalysisResult& result) {
  const absl::Time started = absl::Now();
  absl::StatusOr<std::shared_ptr<Model>> model = backend_.store.Acquire(request_.model());
  if (!model.ok()) return model.status();
  const auto keep_going = [&](const ModelAnalysisProgress& now) {
    if (absl::Now() - last_progress_ >= kProgressInterval) {
      last_progress_ = absl::Now();
      v1::AnalysisProgress progress;
      ToProto(now, progress);
      SendProgress(progress);
    }
    return !cancelled_ && (*model)->closed().ok();
  };
  absl::StatusOr<ModelAnalysis> analysis =
      AnalyzeModel(**model, *ReadAnalysisOptions(request_), keep_going);
  if (absl::Status closed = (*model)->closed(); !closed.ok()) return closed;
  if (!analysis.ok()) return analysis.status();
  ToProto(**model, *analysis, result);
  absl::Status replaced;
  // A client that has cancelled does not want the weights any more; the analysis is kept.
  if (request_.replace_weights() && !cancelled_) {
    replaced = analysis->separator.has_value()
                   ? ReplaceWeights(**model, *analysis->separator, result)
                   : NoSeparator(*analysis);
  }
  const absl::Status durable = backend_.store.committer().Commit(*model);
  const absl::Duration run = absl::Now() - started;
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
  if (!ok) cancelled_ = true;
  MutexLock lock(&mutex_);
  writer_.OnWriteDone(ok);
}

void AnalyzeReactor::OnCancel() {
  cancelled_ = true;
  Finish(MakeError(absl::StatusCode::kCancelled, "ANALYSIS_CANCELLED", "the client cancelled"));
}

void AnalyzeReactor::OnDone() {
  cancelled_ = true;
  backend_.drain.Remove(drain_id_);
}

}  // namespace perceptrond
