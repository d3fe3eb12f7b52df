#include "server/sessions/analyze_reactor.h"

#include <utility>

#include "absl/time/clock.h"
#include "core/model/error.h"
#include "core/model/model_analysis.h"
#include "server/rpc/message.h"
#include "server/rpc/model_name.h"
#include "server/rpc/status.h"
#include "server/rpc/workers.h"
#include "server/sessions/analysis_convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr absl::Duration kBetweenProgress = absl::Milliseconds(100);

absl::Status NoSeparator(const ModelAnalysis& analysis) {
  const bool none = analysis.analysis.separability == Separability::kNotSeparable;
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_SEPARATOR",
                   none ? "nothing separates the examples retained: there are no weights to adopt"
                        : "no separator of the examples retained was found in float32: there are "
                          "no weights to adopt");
}

}  // namespace

void AnalyzeReactor::Start(Call& call, const Backend& backend, AnalysisQueue& queue) {
  std::shared_ptr<AnalyzeReactor> reactor(new AnalyzeReactor(call, backend, queue));
  call.Bind(reactor);
  call.StartRead(&reactor->incoming_);
  backend.drain.Add(
      [weak = std::weak_ptr<AnalyzeReactor>(reactor)] {
        const std::shared_ptr<AnalyzeReactor> alive = weak.lock();
        if (alive == nullptr) return;
        {
          MutexLock lock(&alive->mutex_);
          alive->End(DrainingError());
        }
        // Only now: what the analysis then says of itself comes too late.
        alive->cancelled_ = true;
      },
      reactor->drain_id_);
}

void AnalyzeReactor::OnReadDone(bool ok) {
  if (ok) return backend_.workers.Do([self = shared_from_this()] { self->Begin(); });
  MutexLock lock(&mutex_);
  End(NoRequest());
}

// The model may have to be loaded.
void AnalyzeReactor::Begin() {
  const absl::Status status = ReadRequest();
  if (status.ok()) return queue_.Submit(shared_from_this());
  MutexLock lock(&mutex_);
  End(status);
}

absl::Status AnalyzeReactor::ReadRequest() {
  if (absl::Status status = ParseMessage(incoming_, backend_.max_message_bytes, request_);
      !status.ok())
    return status;
  if (absl::Status status = CheckModelName(request_.name(), "name"); !status.ok()) return status;
  if (absl::StatusOr<AnalysisOptions> options = ReadAnalysisOptions(request_); !options.ok())
    return options.status();
  return backend_.store.Acquire(request_.name()).status();
}

void AnalyzeReactor::Wait(size_t before) {
  v1::AnalysisProgress progress;
  progress.set_stage(v1::ANALYSIS_STAGE_WAITING);
  progress.set_waiting_for(static_cast<uint32_t>(before));
  TellProgress(progress);
}

void AnalyzeReactor::Run() {
  v1::AnalyzeResponse response;
  const absl::Status status = Analyze(*response.mutable_result());
  MutexLock lock(&mutex_);
  if (status.ok()) next_ = std::move(response);
  End(status);
}

absl::Status AnalyzeReactor::Analyze(v1::AnalysisResult& result) {
  const absl::Time started = absl::Now();
  absl::StatusOr<std::shared_ptr<Model>> model = backend_.store.Acquire(request_.name());
  if (!model.ok()) return model.status();
  const auto keep_going = [&](const ModelAnalysisProgress& now) {
    if (absl::Now() - told_ >= kBetweenProgress) {
      told_ = absl::Now();
      v1::AnalysisProgress progress;
      ToProto(now, progress);
      TellProgress(progress);
    }
    return !cancelled_ && (*model)->closed().ok();
  };
  absl::StatusOr<ModelAnalysis> analysis =
      AnalyzeModel(**model, *ReadAnalysisOptions(request_), keep_going);
  if (absl::Status closed = (*model)->closed(); !closed.ok()) return closed;
  if (!analysis.ok()) return analysis.status();
  ToProto(**model, *analysis, result);
  absl::Status adopted;
  // Whoever has cancelled by now does not want it any more; what was proven stays.
  if (request_.adopt() && !cancelled_) {
    adopted = analysis->separator.has_value()
                  ? ReplaceWeights(**model, *analysis->separator, result)
                  : NoSeparator(*analysis);
  }
  const absl::Status durable = backend_.store.committer().Commit(*model);
  result.set_seconds(absl::ToDoubleSeconds(absl::Now() - started));
  return adopted.ok() ? durable : adopted;
}

absl::Status AnalyzeReactor::ReplaceWeights(Model& model, const NewWeights& separator,
                                            v1::AnalysisResult& result) {
  std::optional<uint64_t> if_revision;
  if (request_.has_if_revision()) if_revision = static_cast<uint64_t>(request_.if_revision());
  const absl::StatusOr<uint64_t> revision = model.ReplaceWeights(separator, if_revision);
  if (revision.ok()) result.set_adopted_revision(static_cast<int64_t>(*revision));
  return revision.status();
}

void AnalyzeReactor::TellProgress(const v1::AnalysisProgress& progress) {
  MutexLock lock(&mutex_);
  if (end_.has_value()) return;
  *next_.emplace().mutable_progress() = progress;
  GoOn();
}

void AnalyzeReactor::GoOn() {
  if (writing_ || finished_) return;
  if (next_.has_value()) {
    const absl::Status status = SerializeMessage(*next_, outgoing_);
    next_.reset();
    if (status.ok()) {
      writing_ = true;
      return call_.StartWrite(outgoing_);
    }
    end_ = ToGrpc(status);
  }
  if (!end_.has_value()) return;
  finished_ = true;
  call_.Finish(*end_);
}

void AnalyzeReactor::End(const absl::Status& status) {
  if (end_.has_value()) return;
  if (!status.ok()) next_.reset();
  end_ = ToGrpc(status);
  GoOn();
}

void AnalyzeReactor::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) cancelled_ = true;
  GoOn();
}

void AnalyzeReactor::OnCancel() {
  cancelled_ = true;
  MutexLock lock(&mutex_);
  End(MakeError(absl::StatusCode::kCancelled, "ANALYSIS_CANCELLED", "cancelled"));
}

void AnalyzeReactor::OnDone() {
  cancelled_ = true;
  backend_.drain.Remove(drain_id_);
}

}  // namespace perceptrond
