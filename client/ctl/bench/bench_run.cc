#include "client/ctl/bench/bench_run.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/bench/options.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/terminal.h"

namespace perceptrond::client {

BenchStreams::BenchStreams(const std::vector<std::unique_ptr<Load>>* loads)
    : loads_(*loads), unprepared_(loads->size()), running_(loads->size()) {
  threads_.reserve(loads_.size());
  try {
    for (size_t i = 0; i < loads_.size(); ++i) threads_.emplace_back([this, i] { RunOne(i); });
  } catch (const std::system_error& error) {
    MonitorLock lock(&mutex_);
    failure_ = absl::ResourceExhaustedError(absl::StrCat("cannot start more than ", threads_.size(),
                                                         " threads: ", error.what(),
                                                         "; use fewer --streams"));
  }
}

BenchStreams::~BenchStreams() {
  {
    MonitorLock lock(&mutex_);
    given_up_ = true;
    mutex_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void BenchStreams::RunOne(size_t i) {
  CountDown(loads_[i]->Prepare(), &unprepared_);
  const std::optional<LoadTimes> times = WaitForStart(i);
  CountDown(times.has_value() ? loads_[i]->Run(*times) : absl::OkStatus(), &running_);
}

std::optional<LoadTimes> BenchStreams::WaitForStart(size_t i) {
  MonitorLock lock(&mutex_);
  while (!given_up_ && times_.empty() && failure_.ok()) mutex_.Wait();
  if (times_.empty() || !failure_.ok()) return std::nullopt;
  return times_[i];
}

bool BenchStreams::WaitPrepared(LoadClock::duration time) {
  const LoadClock::time_point until = LoadClock::now() + time;
  MonitorLock lock(&mutex_);
  while (unprepared_ > 0 && failure_.ok() && LoadClock::now() < until) mutex_.WaitUntil(until);
  return unprepared_ == 0 || !failure_.ok();
}

void BenchStreams::Start(const std::vector<LoadTimes>& times) {
  MonitorLock lock(&mutex_);
  times_ = times;
  mutex_.NotifyAll();
}

bool BenchStreams::WaitEnded(LoadClock::duration time) {
  const LoadClock::time_point until = LoadClock::now() + time;
  MonitorLock lock(&mutex_);
  while (running_ > 0 && failure_.ok() && LoadClock::now() < until) mutex_.WaitUntil(until);
  return running_ == 0 || !failure_.ok();
}

absl::Status BenchStreams::failure() const {
  MonitorLock lock(&mutex_);
  return failure_;
}

void BenchStreams::CountDown(absl::Status status, size_t* count) {
  MonitorLock lock(&mutex_);
  --*count;
  if (failure_.ok()) failure_ = std::move(status);
  mutex_.NotifyAll();
}

namespace {

LoadClock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<LoadClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

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

}  // namespace perceptrond::client
