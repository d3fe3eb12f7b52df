// One run of `perceptronctl bench`.

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/bench/bench.h"
#include "client/ctl/command.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"
#include "client/load/load.h"
#include "core/sync/mutex.h"

namespace perceptrond::client {
namespace {

// The threads of a bench, one per load: they prepare, wait for each other, and start together.
// Threads: one.
class BenchStreams {
 public:
  // Starts to prepare the loads, which must outlive this.
  explicit BenchStreams(const std::vector<std::unique_ptr<Load>>* loads);
  // Waits for all threads to end. Loads that were not started do not run.
  ~BenchStreams();

  // Waits for at most `time` until all are prepared or one has failed; whether that is so.
  bool WaitPrepared(LoadClock::duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts the loads. Call when all are prepared.
  void Start(const std::vector<LoadTimes>& times) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for at most `time` until all have ended or one has failed; whether that is so.
  bool WaitEnded(LoadClock::duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first failure; OK if there is none.
  absl::Status failure() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void RunOne(size_t i) ABSL_LOCKS_EXCLUDED(mutex_);
  // The times of load i; absent: do not run it.
  std::optional<LoadTimes> WaitForStart(size_t i) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decrements *count and records a failure.
  void CountDown(absl::Status status, size_t* count) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::unique_ptr<Load>>& loads_;
  mutable Mutex mutex_;
  size_t unprepared_ ABSL_GUARDED_BY(mutex_);
  size_t running_ ABSL_GUARDED_BY(mutex_);
  std::vector<LoadTimes> times_ ABSL_GUARDED_BY(mutex_);
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

// Threads: one.
class BenchRun {
 public:
  // Both arguments must outlive the run.
  BenchRun(const Globals& globals, const BenchOptions& options)
      : globals_(globals), options_(options), model_(globals, options) {}

  // Returns the exit code.
  int Run();

 private:
  Outcome MakeLoads();
  Outcome RunLoads();
  LoadOptions Options() const;
  std::vector<LoadTimes> Times() const;
  void DrawProgress() const;
  BenchReport MakeReport() const;
  // Measured seconds so far, warm-up excluded.
  double MeasuredSeconds() const;

  const Globals& globals_;
  const BenchOptions& options_;
  BenchModel model_;
  // Start of the load; zero until all streams are prepared.
  LoadClock::time_point start_;
  // End of the load; absent while it runs.
  std::optional<LoadClock::time_point> ended_;
  std::vector<std::unique_ptr<Load>> loads_;
};

BenchStreams::BenchStreams(const std::vector<std::unique_ptr<Load>>* loads)
    : loads_(*loads), unprepared_(loads->size()), running_(loads->size()) {
  threads_.reserve(loads_.size());
  try {
    for (size_t i = 0; i < loads_.size(); ++i) threads_.emplace_back([this, i] { RunOne(i); });
  } catch (const std::system_error& error) {
    MutexLock lock(&mutex_);
    failure_ = absl::ResourceExhaustedError(absl::StrCat("cannot start more than ", threads_.size(),
                                                         " threads: ", error.what(),
                                                         "; use fewer --streams"));
  }
}

BenchStreams::~BenchStreams() {
  {
    MutexLock lock(&mutex_);
    given_up_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void BenchStreams::RunOne(size_t i) {
  CountDown(loads_[i]->Prepare(), &unprepared_);
  const std::optional<LoadTimes> times = WaitForStart(i);
  CountDown(times.has_value() ? loads_[i]->Run(*times) : absl::OkStatus(), &running_);
}

std::optional<LoadTimes> BenchStreams::WaitForStart(size_t i) {
  MutexLock lock(&mutex_);
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return given_up_ || !times_.empty() || !failure_.ok();
  };
  mutex_.Await(absl::Condition(&decided));
  if (times_.empty() || !failure_.ok()) return std::nullopt;
  return times_[i];
}

bool BenchStreams::WaitPrepared(LoadClock::duration time) {
  MutexLock lock(&mutex_);
  const auto prepared = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return unprepared_ == 0 || !failure_.ok();
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&prepared), absl::FromChrono(time));
}

void BenchStreams::Start(const std::vector<LoadTimes>& times) {
  MutexLock lock(&mutex_);
  times_ = times;
}

bool BenchStreams::WaitEnded(LoadClock::duration time) {
  MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ == 0 || !failure_.ok();
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&ended), absl::FromChrono(time));
}

absl::Status BenchStreams::failure() const {
  MutexLock lock(&mutex_);
  return failure_;
}

void BenchStreams::CountDown(absl::Status status, size_t* count) {
  MutexLock lock(&mutex_);
  --*count;
  if (failure_.ok()) failure_ = std::move(status);
}

LoadClock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<LoadClock::duration>(std::chrono::duration<double>(seconds));
}

int BenchRun::Run() {
  CatchInterrupts();
  Outcome outcome = model_.Find();
  // Steps that can fail on the client come before the model is created.
  if (outcome.ok()) outcome = MakeLoads();
  if (outcome.ok()) outcome = model_.Create();
  if (!outcome.ok()) return outcome.Report();
  outcome = RunLoads();
  WipeProgress();
  model_.Delete();
  const BenchReport report = MakeReport();
  if (outcome.ok() || report.tally.messages > 0)
    Print(globals_.json() ? report.Json() + "\n" : report.Text());
  if (outcome.ok() && Interrupted()) outcome.code = kExitInterrupted;
  return outcome.Report();
}

LoadOptions BenchRun::Options() const {
  LoadOptions options;
  options.work = options_.Work();
  options.model = model_.name();
  options.rate =
      options_.rate / static_cast<double>(options_.streams) / static_cast<double>(options_.Batch());
  options.rows_per_message = options_.Batch();
  options.window = options_.window;
  options.compact = options_.compact;
  options.numbered = options_.name.empty();
  options.retry = globals_.StreamRetry();
  options.response_timeout = globals_.StreamTimeout();
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
    // Streams send at staggered times.
    const double streams_rate = options_.rate / static_cast<double>(options_.Batch());
    if (streams_rate > 0) times.start += Seconds(static_cast<double>(i) / streams_rate);
    all.push_back(times);
  }
  return all;
}

Outcome BenchRun::MakeLoads() {
  const LoadOptions options = Options();
  const std::string too_much = CheckMemory(options, model_.shape(), options_.streams);
  if (!too_much.empty()) return UsageError("bench: " + too_much);
  SyntheticRowsOptions rows = model_.shape();
  for (size_t i = 0; i < options_.streams; ++i) {
    if (Interrupted()) return {kExitInterrupted, ""};
    rows.seed = options_.seed + static_cast<uint32_t>(i);
    rows.part = static_cast<uint32_t>(i);
    loads_.push_back(Load::Make(globals_.Connect(), options, rows));
  }
  return {};
}

Outcome BenchRun::RunLoads() {
  constexpr std::chrono::milliseconds kPollInterval(100);
  // After Ctrl-C messages in flight get a second before they are cancelled.
  int polls = 0;
  const InterruptWatch interrupt([this, &polls] {
    constexpr int kMostPolls = 10;
    for (const std::unique_ptr<Load>& load : loads_)
      polls < kMostPolls ? load->Stop() : load->Cancel();
    return ++polls <= kMostPolls;
  });
  absl::Status failure;
  {
    BenchStreams streams(&loads_);
    while (!streams.WaitPrepared(kPollInterval) && !Interrupted()) {
    }
    if (streams.failure().ok() && !Interrupted()) {
      // Slightly in the future, so that all threads are ready by then.
      start_ = LoadClock::now() + kPollInterval;
      streams.Start(Times());
      while (!streams.WaitEnded(kPollInterval)) DrawProgress();
      ended_ = LoadClock::now();
    }
    failure = streams.failure();
    // The whole measured time counts, also if the last message was due before its end.
    if (failure.ok() && !Interrupted()) ended_ = std::max(*ended_, Times().front().end);
    if (!failure.ok()) {
      for (const std::unique_ptr<Load>& load : loads_) load->Cancel();
    }
  }
  if (failure.ok() || Interrupted()) return {};
  return Failed(absl::StrCat("bench ", model_.name()), failure);
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
  report.model = model_.name();
  report.streams = options_.streams;
  report.batch = options_.Batch();
  report.rate = options_.rate;
  report.requested_mistakes = options_.mistakes;
  for (const std::unique_ptr<Load>& load : loads_) report.tally.Add(load->tally());
  report.seconds = MeasuredSeconds();
  if (report.tally.overdue == 0) report.seconds = std::min(report.seconds, options_.seconds);
  return report;
}

double BenchRun::MeasuredSeconds() const {
  if (start_ == LoadClock::time_point()) return 0;
  const std::chrono::duration<double> counted =
      ended_.value_or(LoadClock::now()) - start_ - Seconds(options_.warmup);
  return std::max(counted.count(), 0.0);
}

}  // namespace

int RunBench(const Globals& globals, const BenchOptions& options) {
  return BenchRun(globals, options).Run();
}

}  // namespace perceptrond::client
