#include "client/ctl/bench_run.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "client/ctl/bench_memory.h"
#include "client/ctl/bench_streams.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/progress.h"
#include "client/ctl/space_flags.h"
#include "client/ctl/terminal.h"
#include "client/load/reconnect.h"
#include "client/names.h"

namespace perceptrond::client {
namespace {

// Enough names for any load; a model that knows fewer learns them.
constexpr uint32_t kNames = 1U << 20;

LoadClock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<LoadClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

int BenchRun::Run() {
  CatchInterrupts();
  Outcome outcome = FindModel();
  // Whatever may fail on this side comes before the model.
  if (outcome.ok()) outcome = MakeLoads();
  if (outcome.ok() && options_.name.empty()) outcome = MakeModel();
  if (!outcome.ok()) return outcome.Report();
  outcome = RunLoads();
  WipeProgress();
  DeleteModel();
  const BenchReport report = MakeReport();
  if (outcome.ok() || report.tally.messages > 0)
    Print(globals_.json() ? report.Json() + "\n" : report.Text());
  if (outcome.ok() && Interrupted()) outcome.code = kExitInterrupted;
  return outcome.Report();
}

LoadOptions::Work BenchRun::Work() const {
  if (options_.work == "learn") return LoadOptions::Work::kLearn;
  return options_.work == "predict" ? LoadOptions::Work::kPredict : LoadOptions::Work::kCall;
}

size_t BenchRun::Batch() const {
  return options_.batch.value_or(Work() == LoadOptions::Work::kCall ? 1 : 100);
}

Outcome BenchRun::FindModel() {
  shape_.kind = options_.dense ? RowKind::kDense : RowKind::kSparse;
  shape_.size = options_.size;
  shape_.features = options_.features;
  shape_.labels = Work() == LoadOptions::Work::kLearn;
  shape_.mistakes = options_.mistakes;
  shape_.refused = options_.refused;
  shape_.parts = static_cast<uint32_t>(options_.streams);
  model_ = options_.name.empty() ? absl::StrCat("bench-", RandomId().substr(0, 12)) : options_.name;
  if (options_.name.empty()) return {};
  const absl::StatusOr<v1::Model> model = client_.GetModel(model_);
  return model.ok() ? ReadShape(*model) : Failed("bench", model.status());
}

Outcome BenchRun::MakeModel() {
  v1::Model model;
  model.set_description("Made by perceptronctl bench, which deletes it at its end.");
  model.mutable_feature_space()->mutable_dense()->set_dimension(options_.size);
  // Examples have no coordinate in common, so that those which are mistakes disturb no others.
  model.mutable_learner()->set_offset_value(0);
  const absl::StatusOr<v1::Model> created = client_.CreateModel(model_, model);
  return created.ok() ? Outcome() : Failed("bench", created.status());
}

Outcome BenchRun::ReadShape(const v1::Model& model) {
  if (model.learner().has_classes() && shape_.labels) {
    return WrongUsage("bench: its examples have two labels, and " + model_ +
                      " tells several classes apart: --work predict asks such a model");
  }
  const v1::FeatureSpace& space = ExampleSpace(model.feature_space());
  if (space.has_dense()) {
    shape_.size = space.dense().dimension();
  } else if (space.has_hashed()) {
    shape_.size = 1U << std::min<uint32_t>(space.hashed().bits(), 31);
    shape_.kind = RowKind::kSparse;
  } else {
    shape_.size = kNames;
    shape_.kind = RowKind::kNamed;
  }
  shape_.features = std::min(shape_.features, shape_.size);
  return {};
}

void BenchRun::DeleteModel() {
  if (!options_.name.empty()) return;
  RetryPolicy retry;
  retry.give_up_after = std::min(globals_.StreamTimeout(), absl::Seconds(3));
  // Its name is nobody else's, so that it may be deleted twice.
  const absl::Status status = CallWithRetry(Reconnecting(retry, client_.connection()), true,
                                            [this] { return client_.DeleteModel(model_); });
  if (status.ok() || absl::IsNotFound(status)) return;
  Complain(absl::StrCat("the model ", model_, " is left behind (", std::string(status.message()),
                        "): 'perceptronctl delete ", model_, "' removes it"));
}

LoadOptions BenchRun::Options() const {
  LoadOptions options;
  options.work = Work();
  options.model = model_;
  options.rate =
      options_.rate / static_cast<double>(options_.streams) / static_cast<double>(Batch());
  options.rows_per_message = Batch();
  options.window = options_.window;
  options.numbered = options_.name.empty();
  options.retry = globals_.StreamRetry();
  options.patience = globals_.StreamTimeout();
  return options;
}

std::vector<LoadTimes> BenchRun::Times() const {
  LoadTimes times;
  times.counted_from = start_ + Seconds(options_.warmup);
  times.end = times.counted_from + Seconds(options_.seconds);
  times.give_up = times.end + Seconds(options_.seconds);
  std::vector<LoadTimes> all;
  for (size_t i = 0; i < loads_.size(); ++i) {
    times.start = start_;
    // Not all at once.
    const double streams_rate = options_.rate / static_cast<double>(Batch());
    if (streams_rate > 0) times.start += Seconds(static_cast<double>(i) / streams_rate);
    all.push_back(times);
  }
  return all;
}

Outcome BenchRun::MakeLoads() {
  const LoadOptions options = Options();
  const std::string too_much = TooMuchMemory(options, shape_, options_.streams);
  if (!too_much.empty()) return WrongUsage("bench: " + too_much);
  MadeRowsOptions rows = shape_;
  for (size_t i = 0; i < options_.streams; ++i) {
    if (Interrupted()) return {kExitInterrupted, ""};
    rows.seed = options_.seed + static_cast<uint32_t>(i);
    rows.part = static_cast<uint32_t>(i);
    loads_.push_back(Load::Make(globals_.Connect(), options, rows));
  }
  return {};
}

Outcome BenchRun::RunLoads() {
  constexpr std::chrono::milliseconds kLook(100);
  // After Ctrl-C what is under way gets a moment.
  int looks = 0;
  const InterruptWatch interrupt([this, &looks] {
    constexpr int kMostLooks = 10;
    for (const std::unique_ptr<Load>& load : loads_)
      looks < kMostLooks ? load->Stop() : load->Cancel();
    return ++looks <= kMostLooks;
  });
  absl::Status failure;
  {
    BenchStreams streams(&loads_);
    while (!streams.WaitPrepared(kLook) && !Interrupted()) {
    }
    if (streams.failure().ok() && !Interrupted()) {
      // Ahead, so that all of them are there by then.
      start_ = LoadClock::now() + kLook;
      streams.Start(Times());
      while (!streams.WaitEnded(kLook)) DrawProgress();
      ended_ = LoadClock::now();
    }
    failure = streams.failure();
    // All that was to be counted, also if the last message was due before that.
    if (failure.ok() && !Interrupted()) ended_ = std::max(*ended_, Times().front().end);
    if (!failure.ok()) {
      for (const std::unique_ptr<Load>& load : loads_) load->Cancel();
    }
  }
  if (failure.ok() || Interrupted()) return {};
  return Failed(absl::StrCat("bench ", model_), failure);
}

void BenchRun::DrawProgress() const {
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  const BenchReport report = MakeReport();
  const double whole = options_.warmup + options_.seconds;
  Progress progress;
  progress.fraction = std::clamp(
      std::chrono::duration<double>(LoadClock::now() - start_).count() / whole, 0.0, 1.0);
  progress.figures = {
      absl::StrCat(Grouped(report.tally.examples), " examples"),
      absl::StrCat(Grouped(static_cast<uint64_t>(report.examples_per_second())), "/s")};
  ShowProgress(ProgressLine(progress, *columns));
}

BenchReport BenchRun::MakeReport() const {
  BenchReport report;
  report.work = options_.work;
  report.model = model_;
  report.streams = options_.streams;
  report.batch = Batch();
  report.rate = options_.rate;
  report.mistakes_asked = options_.mistakes;
  for (const std::unique_ptr<Load>& load : loads_) report.tally.Add(load->tally());
  report.seconds = Counted();
  if (report.tally.overdue == 0) report.seconds = std::min(report.seconds, options_.seconds);
  return report;
}

double BenchRun::Counted() const {
  if (start_ == LoadClock::time_point()) return 0;
  const std::chrono::duration<double> counted =
      ended_.value_or(LoadClock::now()) - start_ - Seconds(options_.warmup);
  return std::max(counted.count(), 0.0);
}

}  // namespace perceptrond::client
