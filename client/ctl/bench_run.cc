#include "client/ctl/bench_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/progress.h"
#include "client/ctl/space_flags.h"
#include "client/ctl/terminal.h"
#include "client/monitor.h"
#include "client/names.h"

namespace perceptrond::client {
namespace {

// Enough names for any load; a model that knows fewer learns them.
constexpr uint32_t kNames = 1U << 20;

LoadClock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<LoadClock::duration>(std::chrono::duration<double>(seconds));
}

// How the streams end: all of them, or the first that fails.
class Ends {
 public:
  explicit Ends(size_t streams) : running_(streams) {}

  void Add(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    MonitorLock lock(&mutex_);
    --running_;
    if (failure_.ok()) failure_ = std::move(status);
    mutex_.NotifyAll();
  }
  // False: all have ended, or one has failed.
  bool WaitFor(LoadClock::duration time) ABSL_LOCKS_EXCLUDED(mutex_) {
    const LoadClock::time_point until = LoadClock::now() + time;
    MonitorLock lock(&mutex_);
    while (running_ > 0 && failure_.ok() && LoadClock::now() < until) mutex_.WaitUntil(until);
    return running_ > 0 && failure_.ok();
  }
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MonitorLock lock(&mutex_);
    return failure_;
  }

 private:
  mutable Monitor mutex_;
  size_t running_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

int BenchRun::Run() {
  CatchInterrupts();
  if (const Outcome found = FindModel(); !found.ok()) return found.Report();
  Outcome outcome = RunLoads();
  over_ = true;
  WipeProgress();
  DeleteModel();
  const BenchReport report = MakeReport();
  if (outcome.ok()) Print(globals_.json() ? report.Json() + "\n" : report.Text());
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
  if (options_.name.empty()) return MakeModel();
  const absl::StatusOr<v1::Model> model = client_.GetModel(options_.name);
  if (!model.ok()) return Failed("bench", model.status());
  model_ = options_.name;
  return ReadShape(*model);
}

Outcome BenchRun::MakeModel() {
  model_ = absl::StrCat("bench-", RandomId().substr(0, 12));
  v1::Model model;
  model.set_description("Made by perceptronctl bench, which deletes it at its end.");
  model.mutable_feature_space()->mutable_dense()->set_dimension(options_.size);
  // Examples have no coordinate in common, so that those which are mistakes disturb no others.
  model.mutable_learner()->set_offset_value(0);
  const absl::StatusOr<v1::Model> created = client_.CreateModel(model_, model);
  if (!created.ok()) return Failed("bench", created.status());
  made_ = true;
  return {};
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
  if (!made_) return;
  const absl::Status status = client_.DeleteModel(model_);
  if (!status.ok())
    Complain(
        absl::StrCat("the model ", model_, " is left behind: ", std::string(status.message())));
}

LoadOptions BenchRun::Options(size_t stream) const {
  const auto streams = static_cast<double>(options_.streams);
  LoadOptions options;
  options.work = Work();
  options.model = model_;
  options.rate = options_.rate / streams / static_cast<double>(Batch());
  options.rows_per_message = Batch();
  options.window = options_.window;
  options.numbered = made_;
  options.retry = globals_.StreamRetry();
  options.patience = globals_.StreamTimeout();
  options.start = start_;
  // Not all at once.
  if (options.rate > 0)
    options.start += Seconds(static_cast<double>(stream) / streams / options.rate);
  options.counted_from = start_ + Seconds(options_.warmup);
  options.end = options.counted_from + Seconds(options_.seconds);
  return options;
}

Outcome BenchRun::RunLoads() {
  MadeRowsOptions rows = shape_;
  rows.parts = static_cast<uint32_t>(options_.streams);
  start_ = LoadClock::now();
  for (size_t i = 0; i < options_.streams; ++i) {
    rows.seed = options_.seed + static_cast<uint32_t>(i);
    rows.part = static_cast<uint32_t>(i);
    loads_.push_back(Load::Make(globals_.Connect(), Options(i), rows));
  }
  Ends ends(loads_.size());
  std::vector<std::thread> threads;
  threads.reserve(loads_.size());
  for (const std::unique_ptr<Load>& load : loads_)
    threads.emplace_back([&load, &ends] { ends.Add(load->Run()); });
  // After Ctrl-C what is under way gets a moment.
  int looks = 0;
  const InterruptWatch interrupt([this, &looks] {
    constexpr int kMostLooks = 10;
    for (const std::unique_ptr<Load>& load : loads_)
      looks < kMostLooks ? load->Stop() : load->Cancel();
    return ++looks <= kMostLooks;
  });
  while (ends.WaitFor(std::chrono::milliseconds(100))) DrawProgress();
  if (!ends.failure().ok()) {
    for (const std::unique_ptr<Load>& load : loads_) load->Cancel();
  }
  for (std::thread& thread : threads) thread.join();
  const absl::Status failure = ends.failure();
  if (failure.ok() || Interrupted()) return {};
  return Failed(absl::StrCat("bench ", model_), failure);
}

void BenchRun::DrawProgress() const {
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  const BenchReport report = MakeReport();
  const double whole = options_.warmup + options_.seconds;
  Progress progress;
  progress.fraction =
      std::min(1.0, std::chrono::duration<double>(LoadClock::now() - start_).count() / whole);
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
  // Of a run that came to its end: all that was to be counted, also if the last message was due
  // before that.
  const std::chrono::duration<double> elapsed = LoadClock::now() - start_;
  report.seconds = over_ && !Interrupted()
                       ? options_.seconds
                       : std::clamp(elapsed.count() - options_.warmup, 0.0, options_.seconds);
  for (const std::unique_ptr<Load>& load : loads_) report.tally.Add(load->tally());
  return report;
}

}  // namespace perceptrond::client
