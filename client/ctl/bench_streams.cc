#include "client/ctl/bench_streams.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perceptrond::client {

BenchStreams::BenchStreams(const std::vector<std::unique_ptr<Load>>* loads)
    : loads_(*loads), unprepared_(loads->size()), running_(loads->size()) {
  threads_.reserve(loads_.size());
  try {
    for (size_t i = 0; i < loads_.size(); ++i) threads_.emplace_back([this, i] { RunOne(i); });
  } catch (const std::system_error& error) {
    MonitorLock lock(&mutex_);
    failure_ = absl::ResourceExhaustedError(absl::StrCat(
        "this machine starts no more than ", threads_.size(), " streams: ", error.what()));
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
  Count(loads_[i]->Prepare(), &unprepared_);
  const std::optional<LoadTimes> times = WaitForStart(i);
  Count(times.has_value() ? loads_[i]->Run(*times) : absl::OkStatus(), &running_);
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

void BenchStreams::Count(absl::Status status, size_t* of) {
  MonitorLock lock(&mutex_);
  --*of;
  if (failure_.ok()) failure_ = std::move(status);
  mutex_.NotifyAll();
}

}  // namespace perceptrond::client
